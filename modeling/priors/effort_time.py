"""Models of time for every call path of an experiment, constrained by effort where effort was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.data.noise import Repetitions, combine
from ..pmnf.data.preparation import not_executed
from ..pmnf.hypotheses.library import SLOW_GROWTH
from ..pmnf.model import Model
from ..pmnf.modeler import DEFAULT, NoModel, Options, fit_models
from .choices import executed, time_priors
from .fit import Prior, fit_priors

TIME_ONLY = "time only"
# Price of growth where nothing but noisy time is known of an operation (selector.score, in units of 2 log likelihood).
_GROWTH_PRICE = 4.0
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class PathModel:
    """The model of one call path and metric, and how it came about.

    basis: "effort" (time from the block model), "table I: MPI_Bcast" (from a communication model), "time only" or
    "measured" (from the values of the metric alone) or "sum" (inclusive, from the call paths below).
    prior: the prior as a formula, empty without one.
    """

    model: Model | NoModel
    basis: str
    prior: str = ""


def model_time(
    experiment: Experiment,
    effort: Mapping[str, list[Model | NoModel]] | None = None,
    options: Options = DEFAULT,
    metric: str = "time",
) -> list[PathModel]:
    """Return the model of exclusive time of each call path.

    Computation has the order of its block model, communication follows Table I, and what has no effort (Python
    regions, code without instrumented blocks) gets a model from time alone. effort: models of effort metrics by
    metric name, as far as they are made already.
    """
    values = experiment.values[metric]
    happened = executed(experiment)
    result = [PathModel(model, TIME_ONLY) for model in _time_only(experiment, values, metric, happened, options)]
    for path, fitted in fit_time(experiment, time_priors(experiment, effort, options), options, metric).items():
        result[path] = fitted
    return result


def _time_only(
    experiment: Experiment, values: FloatArray, metric: str, happened: _Flags | None, options: Options
) -> list[Model | NoModel]:
    """Model time without effort; of MPI (setting up, communicators) only slow growth is believed.

    Such operations take long and scatter widely, and nothing measured says how they grow: the constant must be
    refuted, and no more than linear growth is considered.
    """
    tree = experiment.tree
    is_mpi = np.array([tree.region_of(path).kind is RegionKind.MPI for path in range(len(tree))], dtype=bool)
    result: list[Model | NoModel] = [NoModel("not measured")] * len(tree)
    cautious = replace(options, library=SLOW_GROWTH, growth_price=_GROWTH_PRICE)
    for rows, own in ((~is_mpi, options), (is_mpi, cautious)):
        flags = None if happened is None else happened[rows]
        models = fit_models(
            experiment.points, values[rows], experiment.metric(metric), experiment.parameters, own, flags
        )
        for path, model in zip(np.flatnonzero(rows).tolist(), models, strict=True):
            result[path] = model
    return result


def fit_time(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT, metric: str = "time"
) -> dict[int, PathModel]:
    """Return the models that the priors of call paths (as `time_priors` gives them) make of measured time.

    Call paths without a prior, or without a measurement, are left out. Those that were executed at the same
    configurations are fitted together.
    """
    values, happened = experiment.values[metric], executed(experiment)
    repetitions = combine(np.where(np.isinf(values), np.nan, values), options.aggregation)
    measured = ~np.isnan(repetitions.centre)
    centre = np.where(measured, repetitions.centre, 0.0)
    where = np.asarray(measured & ((centre > 0) if happened is None else happened), dtype=bool)
    candidates = np.array([path for path, own in enumerate(choices) if own and centre[path].max() > 0], dtype=np.int64)
    result: dict[int, PathModel] = {}
    if not candidates.size:
        return result
    patterns, group = np.unique(where[candidates], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        paths = candidates[group.reshape(-1) == number]
        part = Repetitions(
            centre[paths][:, pattern],
            repetitions.scatter[paths],
            repetitions.freedom[paths],
            repetitions.count[paths],
            repetitions.differ[paths],
        )
        notes = not_executed(experiment.parameters, experiment.points, measured[paths[0]] & ~pattern)
        own = [choices[path] for path in paths.tolist()]
        for path, found in zip(
            paths.tolist(), fit_priors(own, experiment.parameters, experiment.points[pattern], part, notes), strict=True
        ):
            if found is not None:
                result[path] = PathModel(found.model, found.prior.basis, found.prior.text)
    return result
