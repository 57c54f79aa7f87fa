# SPDX-License-Identifier: Apache-2.0
"""Compute all models of an experiment: first the models of effort, then the models of time with priors from effort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .absence import with_absence
from .catalogue import EMPTY_EXPERIMENT, LOADED_MACHINE
from .counts.models import models_of
from .counts.predictions import CountModels, count_models
from .domain import possible_grids
from .errors import ModelingError
from .experiment import Experiment, TimedPart
from .heap_moments import heap_moments
from .models import MEASURED, Analysis
from .negative_values import negative_notes
from .pmnf.changes.ranges import fit_models
from .pmnf.data.preparation import ranges
from .pmnf.model import Model
from .pmnf.modeler import fit_counts
from .pmnf.options import DEFAULT, NoModel, Options
from .pmnf.uncertainty.doubt import far_off
from .printable import counted
from .priors.choices import time_priors
from .priors.dedicated import dedicated_times
from .priors.effort_time import model_time_and_waiting
from .priors.path_model import PathModel
from .priors.untimed import with_times_at_callers
from .progress import steps
from .run_scatter import run_scatter
from .slowest_rank import most_dominating
from .times.predictions import time_models

__all__ = ["Analysis", "analyze", "fit_metrics"]

_ROUNDING = 1e-6  # relative errors of models that reproduce all counts
_NOT_TIMED = "only count-only runs executed this call path"


def analyze(experiment: Experiment, options: Options = DEFAULT) -> Analysis:
    """Return the models of every metric of an experiment.

    Models of effort are exact formulas if possible. Models of time have priors from effort. Models of other costs are
    fitted to the values alone. Count-only runs are not used for models of costs.

    options.selector: criteria other than "evidence" are for comparisons only; models of time then have no priors.

    Raises ModelingError if there are no call paths or configurations.
    """
    if not len(experiment.tree) or not experiment.configurations:
        raise ModelingError(EMPTY_EXPERIMENT(name=experiment.name))
    if experiment.timed is not None:
        return _apart(experiment, experiment.timed, options)
    experiment = with_times_at_callers(experiment)
    if not options.grids:
        options = replace(options, grids=possible_grids(experiment, options.library), ranked=True)
    with_priors = options.selector == "evidence" and "time" in experiment.values
    together = ("time", "wait_time") if with_priors else ()
    left_out = {*together, "threads"}  # the metric "threads" depends on the schedule, not on the work
    alone = [name for name in experiment.metrics if name in experiment.values and name not in left_out]
    counts = count_models(experiment) if options.selector == DEFAULT.selector else None
    models = fit_metrics(experiment, alone, options, counts)
    exclusive = {name: _measured(experiment, name, found) for name, found in models.items()}
    notes: tuple[str, ...] = ()
    if with_priors:
        found = model_time_and_waiting(experiment, time_priors(experiment, models, options), options)
        if "wait_time" in experiment.values:
            exclusive["wait_time"] = _waiting(experiment, found.waiting, options)
        exclusive["time"], notes = found.time, found.notes
    exclusive = with_absence(experiment, exclusive)
    return Analysis(
        experiment.name,
        experiment.parameters,
        ranges(experiment.points),
        experiment.tree,
        {name: experiment.metrics[name] for name in exclusive},
        exclusive,
        experiment.over_ranks,
        (*experiment.notes, *_disturbed_notes(experiment), *negative_notes(experiment), *notes),
        tuple(tuple(point) for point in experiment.points[experiment.shares_processors].tolist()),
        most_dominating(experiment.rank_times, experiment.points, experiment.dedicated),
        run_scatter(experiment),
        experiment.quality,
        counts,
        times=time_models(experiment, counts, exclusive),
        heap_moments=heap_moments(experiment, options),
    )


def _apart(experiment: Experiment, timed: TimedPart, options: Options) -> Analysis:
    """Return the models of an experiment with count-only runs: of effort from all runs, of costs from timed runs."""
    effort = [name for name, metric in experiment.metrics.items() if metric.is_effort]
    counts = analyze(replace(experiment.only(effort), timed=None, loaded=None, oversubscribed=None), options)
    times = analyze(timed.experiment, options)
    nowhere = PathModel(NoModel(_NOT_TIMED), MEASURED)
    exclusive = dict(counts.exclusive)
    for name, entries in times.exclusive.items():
        if not times.metrics[name].is_effort:
            placed = [nowhere] * len(experiment.tree)
            for path, entry in zip(timed.paths.tolist(), entries, strict=True):
                placed[path] = entry
            exclusive[name] = tuple(placed)
    exclusive = {name: exclusive[name] for name in experiment.metrics if name in exclusive}
    further = [note for note in times.notes if note not in timed.experiment.notes]
    return replace(
        times,
        ranges=counts.ranges,
        timed_ranges=times.ranges,
        tree=experiment.tree,
        metrics={name: experiment.metrics[name] for name in exclusive},
        exclusive=exclusive,
        notes=tuple(dict.fromkeys((*counts.notes, *further))),
        counts=counts.counts,
        heap_moments=counts.heap_moments,
        times=time_models(experiment, counts.counts, counts.exclusive),
    )


def _disturbed_notes(experiment: Experiment) -> list[str]:
    """Return a note on configurations in which other programs disturbed all runs; [] without any."""
    number = int(experiment.disturbed.sum())
    if not number:
        return []
    return [LOADED_MACHINE(loaded=number, points=counted(experiment.configurations, "point", "points"))]


def fit_metrics(
    experiment: Experiment,
    metrics: Iterable[str],
    options: Options = DEFAULT,
    laws: CountModels | None = None,
) -> dict[str, list[Model | NoModel]]:
    """Return the models of the exclusive values of these metrics, one per call path.

    Each cost is modeled separately. Costs of oversubscribed configurations are not used if enough other configurations
    exist.

    laws: the laws of counts (modeling.counts), if they have been computed already. If the executions of loops were
    counted, an exact law is always the model of a count. Otherwise, it is the model of a count only if no formula of
    modeling.pmnf reproduces the count.
    """
    points, parameters, executed = experiment.points, experiment.parameters, experiment.executed
    names = list(metrics)
    effort = [name for name in names if experiment.metrics[name].is_effort]
    if options.selector != DEFAULT.selector:
        laws = None
    elif laws is None:
        laws = count_models(experiment.only(effort))
    exact = {name: _exact_laws(laws, name, len(experiment.tree)) for name in effort}
    if experiment.classes is None:
        paths = {name: list(range(len(experiment.tree))) for name in effort}
    else:
        paths = {name: [path for path, law in enumerate(own) if law is None] for name, own in exact.items()}
    flags = None if executed is None else [executed[own] for own in paths.values()]
    values = [experiment.values[name][own] for name, own in paths.items()]
    found = fit_counts(points, values, parameters, options, flags, "modeling counts")
    result: dict[str, list[Model | NoModel]] = {}
    for name, models in zip(effort, found, strict=True):
        others = dict(zip(paths[name], models, strict=True))
        result[name] = [
            law if law is not None and not _reproduces(others.get(path)) else others[path]
            for path, law in enumerate(exact[name])
        ]
    for name in steps("modeling costs", [name for name in names if name not in result]):
        costs = dedicated_times(experiment, name)[0]
        result[name] = fit_models(points, costs, experiment.metrics[name], parameters, options, executed)
    result = {name: result[name] for name in names}
    for name in effort:
        result[name] = [far_off(model) if isinstance(model, Model) else model for model in result[name]]
    return result


def _exact_laws(laws: CountModels | None, metric: str, paths: int) -> list[Model | NoModel | None]:
    """Return the exact laws of a metric as models, one per call path; None without an exact law.

    If executions of loops were not counted, at least one count must confirm the coefficients of a law.
    """
    if laws is None or metric not in laws.metrics:
        return [None] * paths
    sure = laws.experiment.classes is not None
    return [
        model
        if laws.is_exact(metric, path)
        and isinstance(model, Model)
        and _reproduces(model)
        and (sure or laws.can_confirm(metric, path, len(model.terms) + (model.constant != 0)))
        else None
        for path, model in enumerate(models_of(laws, metric))
    ]


def _reproduces(model: Model | NoModel | None) -> bool:
    """Return whether a model reproduces all counts up to rounding errors."""
    return isinstance(model, Model) and model.quality is not None and model.quality.rms_relative < _ROUNDING


def _waiting(experiment: Experiment, known: Mapping[int, PathModel], options: Options) -> tuple[PathModel, ...]:
    """Return the models of waiting, one per call path.

    known: by call path, the waiting part of the model of time. Call paths without such a part get models of the
    measured waiting.
    """
    rest = np.array([path for path in range(len(experiment.tree)) if path not in known], dtype=np.int64)
    values, shared = dedicated_times(experiment, "wait_time")
    executed = None if experiment.executed is None else experiment.executed[rest]
    metric, points, parameters = experiment.metric("wait_time"), experiment.points, experiment.parameters
    models = fit_models(points, values[rest], metric, parameters, options, executed)
    result = dict(known)
    for path, model in zip(rest.tolist(), models, strict=True):
        result[path] = PathModel(model, MEASURED, oversubscribed=bool(shared[path]) and isinstance(model, Model))
    return tuple(result[path] for path in range(len(experiment.tree)))


def _measured(experiment: Experiment, metric: str, models: Sequence[Model | NoModel]) -> tuple[PathModel, ...]:
    """Return the result of `fit_metrics` for a metric as models of call paths, marked if oversubscribed."""
    if experiment.metrics[metric].is_effort:
        return tuple(PathModel(model, MEASURED) for model in models)
    flags = dedicated_times(experiment, metric)[1].tolist()
    return tuple(
        PathModel(model, MEASURED, oversubscribed=flag and isinstance(model, Model))
        for model, flag in zip(models, flags, strict=True)
    )
