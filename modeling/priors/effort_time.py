# SPDX-License-Identifier: Apache-2.0
"""Models of time for every call path of an experiment, constrained by effort where effort was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, RegionKind
from ..pmnf.calibration import UNCHECKED_GROWTH
from ..pmnf.changes.ranges import fit_models
from ..pmnf.data.noise import combine
from ..pmnf.data.preparation import not_executed
from ..pmnf.hypotheses.library import SLOW_GROWTH
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .algorithms import of_one_algorithm
from .dedicated import dedicated_times
from .discoveries import unproved_growth
from .fit import fit_where
from .growth import with_growth
from .measured import one_by_one
from .one_serves import served_by_one
from .path_model import TIME_ONLY, PathModel
from .prior import Prior
from .run_noise import run_noise
from .times_at import of_effort_beyond_one, of_several_processes
from .untimed import with_untimed
from .waiting import transfer_times, with_waiting
from .waiting_part import parts_that_wait
from .whole_grids import whole_grids

_NO_GROWTH = 1e9
"""A penalty that no evidence outweighs."""


def model_time(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> tuple[PathModel, ...]:
    """Return the model of exclusive time of each call path, given its priors (`choices.time_priors`).

    Computation has the order of its block model, communication follows Table I, and what has no effort (Python
    regions, code without instrumented blocks) gets a model from time alone. Waiting that was measured, and growth
    beyond effort that the diagnosis finds, are part of the models (`waiting`, `growth`). Where repetitions tell that
    whole runs were disturbed, models are those of times without it (`run_noise`).
    """
    return model_time_and_waiting(experiment, choices, options).time


@dataclass(frozen=True)
class TimeModels:
    """Models of exclusive time, one per call path, and of the waiting in it, of call paths that waited.

    No waiting is longer than the time of its call path, and both grow alike. notes: what is to be said of all of them.
    """

    time: tuple[PathModel, ...]
    waiting: Mapping[int, PathModel]
    notes: tuple[str, ...]


def model_time_and_waiting(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> TimeModels:
    """Return the same, with the waiting in time where it was measured."""
    experiment = with_untimed(experiment)
    several = of_several_processes(experiment)
    left_out = [] if several is None else [several]
    experiment = experiment if several is None else several.only(experiment)
    for one in of_effort_beyond_one(experiment, choices):
        experiment = one.only(experiment)
        left_out.append(one)
    transfer, waiting = transfer_times(experiment)
    whole = whole_grids(transfer, choices, options)
    if whole is not None:
        experiment, transfer = whole.only(experiment), whole.only(transfer)
        left_out.append(whole)
    for one in of_one_algorithm(transfer, choices, options):
        experiment, transfer = one.only(experiment), one.only(transfer)
        left_out.append(one)
    found = _computing_grown(experiment, choices, options)
    noise = run_noise(experiment, found)
    if noise is not None:
        experiment, transfer = noise.without(experiment), noise.without(transfer)
        found = _computing_grown(experiment, choices, options)
    waits: dict[int, PathModel] = {}
    if any(waiting):
        apart = fit_time(transfer, [one if own else () for one, own in zip(choices, waiting, strict=True)], options)
        apart |= with_growth(transfer, {**found, **apart}, options, apart.keys())
        served = served_by_one(experiment, {**found, **apart})
        several_parts = with_waiting(experiment, found, apart, choices, options, served)
        for own in (served[path].at for path in served.keys() & several_parts.keys()):
            experiment = own.only(experiment)
            left_out += [own] if own.note else []
        found |= {path: time for path, (time, _) in several_parts.items()}
        waits |= {path: wait for path, (_, wait) in several_parts.items()}
    found |= with_growth(experiment, found, options, found.keys() - _computing(experiment))
    if "wait_time" in experiment.values:
        rest = {path: entry for path, entry in found.items() if path not in waits}
        waits |= parts_that_wait(experiment, rest, choices, options)
    for left in left_out:
        found, waits = left.noted(found), left.noted(waits)
    everywhere = tuple(found[path] for path in range(len(experiment.tree)))
    return TimeModels(everywhere, waits, () if noise is None else (noise.note,))


def _computing_grown(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options
) -> dict[int, PathModel]:
    """Return the models of all call paths, those of computation with its growth beyond effort.

    What ranks wait for is computation as long as it takes.
    """
    found = fit_time(experiment, choices, options)
    rest = [path for path in range(len(experiment.tree)) if path not in found]
    found |= _time_only(experiment, rest, options)
    return found | with_growth(experiment, found, options, _computing(experiment))


def _computing(experiment: Experiment) -> set[int]:
    tree = experiment.tree
    return {path for path in range(len(tree)) if tree.region_of(path).kind is not RegionKind.MPI}


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
    known = {path: priors for path, priors in enumerate(choices) if priors and largest[path] > 0}

    def notes(path: int, pattern: NDArray[np.bool_]) -> tuple[str, ...]:
        return not_executed(experiment.parameters, experiment.points, measured[path] & ~pattern)

    singles = one_by_one(values, options)
    fits = fit_where(known, experiment.parameters, experiment.points, repetitions, where, notes, singles)
    return {
        path: PathModel(found.model, found.prior.basis, found.prior.text, bool(oversubscribed[path]))
        for path, found in fits.items()
    }


def _time_only(experiment: Experiment, paths: Sequence[int], options: Options) -> dict[int, PathModel]:
    """Model time without effort; of MPI (setting up, communicators) only slow growth is considered.

    Such operations take long and scatter widely, and nothing measured says how they grow: the constant must be
    refuted, and no more than linear growth is considered. It must be refuted of what OpenMP does between the threads,
    too, which is next to nothing or waiting: that may grow like the work of the threads. Growth of call paths that do
    the same everywhere must be significant among all of them (`discoveries`).
    """
    kinds = {path: experiment.tree.region_of(path).kind for path in paths}
    doubting = replace(options, growth_penalty=UNCHECKED_GROWTH)
    cautious = replace(doubting, library=SLOW_GROWTH)
    how_of = {RegionKind.OPENMP: doubting, RegionKind.MPI: cautious}
    times, oversubscribed = dedicated_times(experiment, "time")
    result: dict[int, PathModel] = {}
    for how in (options, doubting, cautious):
        rows = [path for path in paths if how_of.get(kinds[path], options) is how]
        executed = None if experiment.executed is None else experiment.executed[rows]
        metric = experiment.metric("time")
        models = list(fit_models(experiment.points, times[rows], metric, experiment.parameters, how, executed))
        constant = unproved_growth(experiment, rows, times[rows], models)
        flat = replace(how, growth_penalty=_NO_GROWTH)
        flags = None if executed is None else executed[constant]
        own = times[rows][constant]
        again = fit_models(experiment.points, own, metric, experiment.parameters, flat, flags) if constant else []
        for place, model in zip(constant, again, strict=True):
            models[place] = model
        for path, model in zip(rows, models, strict=True):
            shared = bool(oversubscribed[path]) and isinstance(model, Model)
            result[path] = PathModel(model, TIME_ONLY, oversubscribed=shared)
    return result
