# SPDX-License-Identifier: Apache-2.0
"""What disturbs a whole run: all of its call paths take longer, or less long, than in the other runs.

Clocks change with the temperature, other programs use memory and cores for minutes: noise is not drawn anew for each
call path, but shared by those of a run, by each as far as it depends on what was disturbed. So the deviations of many
call paths from their models tell what a run has in common, which the times of one call path alone cannot tell:

    ln(time / model) of call path i in run r = load_i · disturbance_r + rest

Runs of the same configuration must differ for all of these alike, beyond chance (`_agree`): models of all call paths
may miss the same configurations. The disturbance of a run is the median over the call paths that compute, loads are
robust slopes (Huber, Robust Statistics, 1981, section 7), in turns: a factor analysis with one factor (Lawley and
Maxwell, Factor Analysis as a Statistical Method, 1963) that single call paths cannot mislead.
docs/design/priors-evaluation.md has measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.model import Model
from .one_sided import NORMAL
from .path_model import PathModel

# Runs of a configuration of which a median is none of the extremes; call paths likewise.
_LEAST_REPETITIONS = _LEAST_PATHS = 3
# A call path feels at most so many times what the others feel, and those that feel less than the other number tell
# nothing of it.
_MOST_LOAD, _LEAST_LOAD = 4.0, 0.2
# In turns until loads change by less, at most so often.
_SETTLED, _ROUNDS = 1e-3, 10
# Deviations of more than so many standard deviations count less (Huber's constant, 95 % efficient); the variance of a
# median over that of a mean.
_HUBER, _OF_MEDIAN = 1.345, np.pi / 2.0
_HUBER_ROUNDS = 10
# Call paths agree on runs where chance makes them agree as much in one of a hundred cases.
_SIGNIFICANT = 0.01
# Below this, most of what call paths seem to share is their own noise; of fewer runs the reliability is not known.
_LEAST_RELIABILITY, _LEAST_RUNS = 0.5, 12
# What the runs of a configuration have in common is chance if its variance over the configurations is no more than this
# many times what the differences between runs make of it: of 25 with five runs, one in a hundred is above by
# chance (F test).
_BY_CHANCE = 2.0
# A disturbance with a standard deviation below this part of the time is none.
_LEAST = 0.01


@dataclass(frozen=True, eq=False)
class RunNoise:
    """Disturbances of runs, and what they do to each call path.

    factors: by which times (paths, C, R) are too long, 1 where nothing is known. deviation: the standard deviation of
    the disturbance of a run, in parts of the time.
    """

    factors: FloatArray
    deviation: float

    @property
    def note(self) -> str:
        """What is to be said of models that rest on times without these disturbances."""
        return (
            f"whole runs were faster or slower than others, by {100 * self.deviation:.0f} % (standard deviation), in "
            "all of their call paths: models of time are those of the run in the middle"
        )

    def without(self, experiment: Experiment) -> Experiment:
        """Return the experiment with times, and waiting in them, as in an undisturbed run."""
        known = {name: experiment.values[name] for name in ("time", "wait_time") if name in experiment.values}
        return replace(
            experiment, values={**experiment.values, **{name: own / self.factors for name, own in known.items()}}
        )


def run_noise(experiment: Experiment, models: Mapping[int, PathModel]) -> RunNoise | None:
    """Return what disturbed whole runs; None if there are too few repetitions or call paths to tell, or nothing did.

    models: of exclusive time, by call path. Runs of oversubscribed configurations are left as they are.
    """
    tree, times = experiment.tree, experiment.values["time"]
    runs = (np.nan_to_num(times) > 0).any(axis=0).sum(axis=1)
    if np.median(runs) < _LEAST_REPETITIONS:
        return None
    paths = [
        path
        for path, entry in sorted(models.items())
        if isinstance(entry.model, Model) and not tree.start_and_end[path] and np.isfinite(times[path]).any()
    ]
    computing = np.array([tree.region_of(path).kind is not RegionKind.MPI for path in paths], dtype=bool)
    deviations = _deviations(experiment, models, paths)
    telling = computing if computing.sum() >= _LEAST_PATHS else np.ones(len(paths), dtype=bool)
    measured = np.asarray(np.isfinite(deviations).any(axis=0).reshape(times.shape[1:]), dtype=bool)
    if telling.sum() < _LEAST_PATHS or not (measured.sum(axis=1) >= _LEAST_REPETITIONS).any():
        return None
    if not _agree(deviations[telling].reshape(-1, *times.shape[1:])):
        return None
    loads, disturbance = _one_factor(deviations, np.flatnonzero(telling))
    reliability = _reliability(deviations, loads, np.flatnonzero(telling & (loads > _LEAST_LOAD)))
    deviation = float(np.sqrt(reliability * _variance(disturbance)))
    if reliability < _LEAST_RELIABILITY or deviation < _LEAST:
        return None
    factors = np.ones(times.shape)
    by_run = _noise_of(disturbance.reshape(times.shape[1:]), measured)
    shared = reliability * loads[:, None] * by_run.reshape(-1)
    factors[paths] = np.exp(shared).reshape(len(paths), *times.shape[1:])
    return RunNoise(factors, deviation)


def _noise_of(disturbance: FloatArray, measured: NDArray[np.bool_]) -> FloatArray:
    """Return disturbances (C, R) without what the runs of a configuration have in common beyond chance.

    That is no noise but something that the models lack.
    """
    middle = np.array(
        [np.median(row[own]) if own.any() else 0.0 for row, own in zip(disturbance, measured, strict=True)]
    )
    apart = np.where(measured, disturbance - middle[:, None], np.nan)
    count = measured.sum(axis=1)
    several = count >= _LEAST_REPETITIONS
    unbiased = np.sqrt(count / np.maximum(count - 1, 1))[:, None]
    chance = _OF_MEDIAN * _variance((apart * unbiased)[several]) / float(np.median(count[several]))
    common = _variance(middle[several])
    part = min(1.0, _BY_CHANCE * chance / common) if common > 0 else 1.0
    return np.where(measured, apart + part * middle[:, None], 0.0)


def _deviations(experiment: Experiment, models: Mapping[int, PathModel], paths: Sequence[int]) -> FloatArray:
    """Return logarithms of times over models (paths, C·R), each with the median 0; NaN where nothing was measured."""
    result = np.full((len(paths), experiment.configurations, experiment.values["time"].shape[2]), np.nan)
    for row, path in enumerate(paths):
        model = models[path].model
        assert isinstance(model, Model)
        fitted, times = model.evaluate(experiment.points)[:, None], experiment.values["time"][path]
        known = np.isfinite(times) & (times > 0) & (fitted > 0) & experiment.dedicated[:, None]
        logs = np.log(np.where(known, times, 1.0) / np.where(known, fitted, 1.0))
        if known.any():
            result[row] = np.where(known, logs - np.median(logs[known]), np.nan)
    return result.reshape(len(paths), -1)


def _agree(deviations: FloatArray) -> bool:
    """Whether call paths agree, beyond chance, on which runs of a configuration took longer: deviations (N, C, R).

    Friedman's test (Journal of the American Statistical Association 32, 1937) of each configuration, summed over all of
    them. What the models lack is the same in all runs of a configuration, and changes no ranks.
    """
    total, freedom = 0.0, 0
    for logs in deviations.transpose(1, 0, 2):
        measured = logs[np.isfinite(logs).any(axis=1)]
        usual = measured[:, 2 * np.isfinite(measured).sum(axis=0) > len(measured)]
        complete = usual[np.isfinite(usual).all(axis=1)]
        runs = complete.shape[1]
        if len(complete) < _LEAST_PATHS or runs < _LEAST_REPETITIONS:
            continue
        ranks = sum(np.sign(complete - complete[:, [run]]) for run in range(runs))  # doubled, around 0
        size = np.sqrt((ranks**2).mean(axis=1))
        scores = ranks[size > 0] / size[size > 0, None]
        total += float((scores.sum(axis=0) ** 2).sum()) * (runs - 1) / (runs * max(len(scores), 1))
        freedom += runs - 1
    return freedom > 0 and bool(special.chdtrc(freedom, total) < _SIGNIFICANT)


def _one_factor(deviations: FloatArray, telling: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return loads (N,) and disturbances (runs,) of deviations (N, runs). telling: rows that disturbances follow."""
    loads, disturbance = np.ones(len(deviations)), np.zeros(deviations.shape[1])
    for _ in range(_ROUNDS):
        some = telling[loads[telling] > _LEAST_LOAD]
        parts = deviations[some] / loads[some, None]
        enough = np.isfinite(parts).sum(axis=0) >= _LEAST_PATHS
        if not enough.any():
            return loads, np.zeros(deviations.shape[1])
        disturbance = np.zeros(deviations.shape[1])
        disturbance[enough] = np.nanmedian(parts[:, enough], axis=0)
        disturbance[enough] -= np.median(disturbance[enough])
        before, loads = loads, _slopes(deviations, disturbance)
        if np.abs(loads - before).max() < _SETTLED:
            break
    return loads, disturbance


def _reliability(deviations: FloatArray, loads: FloatArray, telling: NDArray[np.int64]) -> float:
    """Return which part of the variance of disturbances call paths agree on: Spearman-Brown of two halves of them.

    Their noise agrees on nothing, however well a factor follows that of one of them.
    """
    if len(telling) < _LEAST_PATHS:
        return 0.0
    parts = deviations[telling] / loads[telling, None]
    known = np.isfinite(parts[::2]).any(axis=0) & np.isfinite(parts[1::2]).any(axis=0)
    if known.sum() < _LEAST_RUNS:
        return 0.0
    halves = np.stack([np.nanmedian(half[:, known], axis=0) for half in (parts[::2], parts[1::2])])
    ranks = halves.argsort(axis=1).argsort(axis=1)
    correlation = float(np.atleast_2d(np.corrcoef(ranks))[0, 1])
    return 2.0 * correlation / (1.0 + correlation) if correlation > 0 else 0.0


def _slopes(deviations: FloatArray, disturbance: FloatArray) -> FloatArray:
    """Return the slopes of rows (N, runs) over disturbances, by iteratively reweighted least squares."""
    measured = np.isfinite(deviations)
    values = np.where(measured, deviations, 0.0)
    weights = measured.astype(np.float64)
    loads = np.zeros(len(values))
    for _ in range(_HUBER_ROUNDS):
        squares = np.maximum((weights * disturbance**2).sum(axis=1), 1e-300)
        loads = np.clip((weights * values * disturbance).sum(axis=1) / squares, 0.0, _MOST_LOAD)
        rest = np.where(measured, np.abs(values - loads[:, None] * disturbance), np.nan)
        usual = _HUBER * NORMAL * np.array([np.nanmedian(row) if np.isfinite(row).any() else 0.0 for row in rest])
        far = np.nan_to_num(rest) / np.maximum(usual, 1e-12)[:, None]
        weights = measured / np.maximum(far, 1.0)
    return loads


def _variance(values: FloatArray) -> float:
    """Return the variance of values around their median, NaN left out, that outliers do not change."""
    known = values[np.isfinite(values)]
    return float((NORMAL * np.median(np.abs(known - np.median(known)))) ** 2) if known.size else 0.0
