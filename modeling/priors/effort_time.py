"""Models of time for every call path of an experiment, constrained by effort where effort was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, RegionKind
from ..pmnf.calibration import UNCHECKED_GROWTH
from ..pmnf.data.noise import combine
from ..pmnf.data.preparation import not_executed
from ..pmnf.hypotheses.library import SLOW_GROWTH
from ..pmnf.model import Model
from ..pmnf.modeler import DEFAULT, Options, fit_models
from .beyond import transfer_times, with_growth, with_waiting
from .dedicated import dedicated_times
from .fit import Prior, fit_priors, take
from .path_model import TIME_ONLY, PathModel


def model_time(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> tuple[PathModel, ...]:
    """Return the model of exclusive time of each call path, given its priors (`choices.time_priors`).

    Computation has the order of its block model, communication follows Table I, and what has no effort (Python
    regions, code without instrumented blocks) gets a model from time alone. Waiting that was measured, and growth
    beyond effort that the diagnosis finds, are part of the models (`beyond`).
    """
    found = fit_time(experiment, choices, options)
    rest = [path for path in range(len(experiment.tree)) if path not in found]
    found |= _time_only(experiment, rest, options)
    transfer, waiting = transfer_times(experiment)
    if waiting:
        apart = fit_time(transfer, [one if path in waiting else () for path, one in enumerate(choices)], options)
        found |= with_waiting(experiment, found, apart, choices, options)
    found |= with_growth(experiment, found, options)
    return tuple(found[path] for path in range(len(experiment.tree)))


def fit_time(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> dict[int, PathModel]:
    """Return the models that the priors of call paths (`choices.time_priors`) make of measured time.

    Call paths without a prior, or without a measurement, are left out. Those that were executed at the same
    configurations are fitted together. Oversubscribed configurations are left out where the others are enough.
    """
    values, oversubscribed = dedicated_times(experiment, "time", choices)
    executed = experiment.executed
    repetitions = combine(np.where(np.isinf(values), np.nan, values), options.aggregation)
    measured = ~np.isnan(repetitions.centre)
    repetitions = replace(repetitions, centre=np.where(measured, repetitions.centre, 0.0))
    where = np.asarray(measured & ((repetitions.centre > 0) if executed is None else executed), dtype=bool)
    largest = repetitions.centre.max(axis=1, initial=0.0)
    candidates = np.array([path for path, priors in enumerate(choices) if priors and largest[path] > 0], dtype=np.int64)
    result: dict[int, PathModel] = {}
    patterns, group = np.unique(where[candidates], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if not pattern.any():
            continue
        paths = candidates[group.reshape(-1) == number]
        part = take(repetitions, paths)
        part = replace(part, centre=part.centre[:, pattern])
        notes = not_executed(experiment.parameters, experiment.points, measured[paths[0]] & ~pattern)
        priors = [choices[path] for path in paths.tolist()]
        fits = fit_priors(priors, experiment.parameters, experiment.points[pattern], part, notes)
        for path, found in zip(paths.tolist(), fits, strict=True):
            if found is not None:
                basis, prior = found.prior.basis, found.prior.text
                result[path] = PathModel(found.model, basis, prior, bool(oversubscribed[path]))
    return result


def _time_only(experiment: Experiment, paths: Sequence[int], options: Options) -> dict[int, PathModel]:
    """Model time without effort; of MPI (setting up, communicators) only slow growth is considered.

    Such operations take long and scatter widely, and nothing measured says how they grow: the constant must be
    refuted, and no more than linear growth is considered.
    """
    is_mpi = {path: experiment.tree.region_of(path).kind is RegionKind.MPI for path in paths}
    cautious = replace(options, library=SLOW_GROWTH, growth_penalty=UNCHECKED_GROWTH)
    times, oversubscribed = dedicated_times(experiment, "time")
    result: dict[int, PathModel] = {}
    for rows, how in (
        ([path for path in paths if not is_mpi[path]], options),
        ([path for path in paths if is_mpi[path]], cautious),
    ):
        executed = None if experiment.executed is None else experiment.executed[rows]
        metric = experiment.metric("time")
        models = fit_models(experiment.points, times[rows], metric, experiment.parameters, how, executed)
        for path, model in zip(rows, models, strict=True):
            shared = bool(oversubscribed[path]) and isinstance(model, Model)
            result[path] = PathModel(model, TIME_ONLY, oversubscribed=shared)
    return result
