# SPDX-License-Identifier: Apache-2.0
"""Fit models of time for every call path, constrained by effort where effort was measured."""

from __future__ import annotations

import math
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
from .dedicated import dedicated_times
from .fit import fit_where
from .growth import with_growth
from .measured import one_by_one
from .path_model import TIME_ONLY, PathModel
from .prior import Prior
from .run_noise import run_noise
from .times_at import of_effort_beyond_one, of_larger_values
from .untimed import with_untimed
from .waiting import transfer_times, with_waiting
from .waiting_part import parts_that_wait


@dataclass(frozen=True)
class TimeModels:
    """Models of the exclusive time of each call path, and of the waiting of call paths that waited.

    Waiting is never longer than the time of its call path, and both grow in the same way. notes: notes on all models.
    """

    time: tuple[PathModel, ...]
    waiting: Mapping[int, PathModel]
    notes: tuple[str, ...]


def model_time_and_waiting(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> TimeModels:
    """Return the models of the exclusive time of call paths from their priors (`choices.time_priors`), and of waiting.

    The time of computation grows like the model of basic blocks. The time of communication follows Table I. Call paths
    without effort (Python regions, code without instrumented blocks) get a model from time alone. The models contain
    measured waiting, and growth beyond effort that the diagnosis finds (`waiting`, `growth`). If repetitions show that
    whole runs were disturbed, the models use times without the disturbances (`run_noise`).
    """
    experiment = with_untimed(experiment)
    left_out = of_effort_beyond_one(experiment, choices)
    for one in left_out:
        experiment = one.only(experiment)
    transfer, waiting = transfer_times(experiment)
    for one in of_larger_values(transfer, choices, options):
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
        several_parts = with_waiting(experiment, found, apart, choices, options)
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
    """Return the models of all call paths; models of computation contain growth beyond effort.

    Ranks wait for computation including this growth.
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
    """Return the models of measured time from the priors of call paths (`choices.time_priors`).

    Omits call paths without a prior or a measurement. Fits call paths with equal executed configurations together.
    Leaves out oversubscribed configurations if enough others exist.
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
    """Model time without effort. For MPI (initialization, communicators), only slow growth is tried.

    Growth must improve the fit by an additional penalty (`UNCHECKED_GROWTH`) in three cases:

    - Operations of MPI take long and scatter widely, and no effort shows how they grow. Their growth is at most linear.
    - OpenMP constructs contain short operations, or waiting that may grow like the work of the threads.
    - Call paths that do the same at all configurations. Noise makes the time of some of them grow, so the penalty
      increases with their number.
    """
    doubting = replace(options, growth_penalty=UNCHECKED_GROWTH)
    cautious = replace(doubting, library=SLOW_GROWTH)
    same = {path for path in paths if _has_constant_work(experiment, path)}
    unlikely = replace(options, growth_penalty=UNCHECKED_GROWTH + 2.0 * math.log(max(len(same), 1)))
    how_of = dict.fromkeys(same, unlikely)
    kinds = {RegionKind.OPENMP: doubting, RegionKind.MPI: cautious}
    how_of |= {path: kinds[kind] for path in paths if (kind := experiment.tree.region_of(path).kind) in kinds}
    times, oversubscribed = dedicated_times(experiment, "time")
    result: dict[int, PathModel] = {}
    for how in (options, doubting, cautious, unlikely):
        rows = [path for path in paths if how_of.get(path, options) is how]
        executed = None if experiment.executed is None else experiment.executed[rows]
        metric = experiment.metric("time")
        models = fit_models(experiment.points, times[rows], metric, experiment.parameters, how, executed)
        for path, model in zip(rows, models, strict=True):
            shared = bool(oversubscribed[path]) and isinstance(model, Model)
            result[path] = PathModel(model, TIME_ONLY, oversubscribed=shared)
    return result


def _has_constant_work(experiment: Experiment, path: int) -> bool:
    """Return whether visits and all effort of a call path are equal at all configurations where it was executed."""
    visits = experiment.values.get("visits")
    if visits is None or not (visits[path][np.isfinite(visits[path])] > 0).all():
        return False
    effort = [own[path] for name, own in experiment.values.items() if experiment.metrics[name].is_effort]
    return all(np.nanmin(own, initial=np.inf) >= np.nanmax(own, initial=-np.inf) for own in effort)
