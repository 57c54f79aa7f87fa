# SPDX-License-Identifier: Apache-2.0
"""Estimate the noise of whole runs, which makes all call paths of a run slower or faster than in the other runs.

Clocks change with the temperature, and other programs use memory and cores for minutes. Noise is therefore shared by
the call paths of a run, by each in proportion to its sensitivity. The common part of the deviations of many call paths
from their models shows the disturbance; the times of one call path cannot show it:

    ln(time / model) of call path i in run r = load_i · disturbance_r + rest

The load of a call path is its sensitivity, a slope of a linear fit. The disturbance of a run is the median over the
call paths that compute. It is reduced by the part of its variance that the rest explains. The models of all call paths
may have errors at the same configurations. The size of the disturbances is therefore estimated only from the
differences between the runs of a configuration. docs/design/priors-evaluation.md has measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..experiment import Experiment, FloatArray, RegionKind, median_over_repetitions
from ..pmnf.model import Model
from .path_model import PathModel

# Smallest number of runs of a configuration, and of call paths, whose median is not an extreme value.
_LEAST_REPETITIONS = _LEAST_PATHS = 3
# Disturbances are ignored if their standard deviation is below this share of the time, or if more than half of their
# variance is noise of single call paths.
_LEAST, _LEAST_RELIABILITY = 0.01, 0.5
# The variance of a median divided by the variance of a mean.
_OF_MEDIAN = np.pi / 2.0
# Largest load; call paths with less than the smallest load are left out of the next estimate; number of estimates.
_MOST_LOAD, _LEAST_LOAD, _ROUNDS = 4.0, 0.2, 2
# The common deviation of the runs of a configuration is explained by chance if its variance over the configurations is
# at most this multiple of the variance expected from the differences between runs. With 25 configurations of five runs,
# chance exceeds this multiple with probability 0.01 (F test).
_BY_CHANCE = 2.0


@dataclass(frozen=True, eq=False)
class RunNoise:
    """Disturbances of runs, and their effect on each call path.

    factors: factor by which a time is too long, (paths, C, R); 1 if unknown. deviation: standard deviation of the
    disturbance of a run, as a share of the time.
    """

    factors: FloatArray
    deviation: float

    @property
    def note(self) -> str:
        """Return the note for models that use times without these disturbances."""
        return (
            f"whole runs were faster or slower than others, by {100 * self.deviation:.0f} % (standard deviation), in "
            "all of their call paths: models of time describe the median run"
        )

    def without(self, experiment: Experiment) -> Experiment:
        """Return the experiment with times and waiting as in an undisturbed run."""
        known = {name: experiment.values[name] for name in ("time", "wait_time") if name in experiment.values}
        return replace(
            experiment, values={**experiment.values, **{name: own / self.factors for name, own in known.items()}}
        )


def run_noise(experiment: Experiment, models: Mapping[int, PathModel]) -> RunNoise | None:
    """Return the disturbances of whole runs; None if there are none, or too few repetitions or call paths.

    models: of exclusive time, by call path. Runs of oversubscribed configurations are not changed.
    """
    tree = experiment.tree
    deviations = _deviations(experiment, models)
    computing = np.array([tree.region_of(path).kind is not RegionKind.MPI for path in range(len(tree))], dtype=bool)
    informative = computing & np.isfinite(deviations).any(axis=(1, 2))
    loads = np.ones(len(tree))
    for _ in range(_ROUNDS):
        found = _disturbances(deviations[informative] / loads[informative, None, None])
        if found is None:
            return None
        felt, deviation = found
        squares = np.maximum((np.isfinite(deviations) * felt**2).sum(axis=(1, 2)), 1e-300)
        loads = np.clip((np.nan_to_num(deviations) * felt).sum(axis=(1, 2)) / squares, 0.0, _MOST_LOAD)
        informative &= loads > _LEAST_LOAD
    return RunNoise(np.exp(loads[:, None, None] * felt), deviation)


def _disturbances(parts: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the disturbances of runs (C, R) and their standard deviation, from the deviations of call paths (N, C, R).

    None without disturbances, or if they cannot be distinguished from the noise of each call path.
    """
    several = np.isfinite(parts).sum(axis=0) >= _LEAST_PATHS
    several &= (several.sum(axis=1) >= _LEAST_REPETITIONS)[:, None]
    if not several.any():
        return None
    centre = median_over_repetitions(parts)
    middle = np.where(several.any(axis=1), median_over_repetitions(centre.T), np.nan)
    differences = parts - centre[:, :, None]
    apart = np.where(several, median_over_repetitions(np.moveaxis(differences, 0, 2)), np.nan)
    own = float(np.median([_variance(row) for row in differences - apart]))
    variance, common = _variance(apart), _variance(middle)
    reliability = max(1.0 - _OF_MEDIAN * own / len(parts) / variance, 0.0) if variance > 0.0 else 0.0
    runs = float(np.median(several.sum(axis=1)[several.any(axis=1)]))
    deviation = float(np.sqrt(reliability * variance * runs / (runs - 1.0)))
    if reliability < _LEAST_RELIABILITY or deviation < _LEAST:
        return None
    part = min(1.0, _BY_CHANCE * _OF_MEDIAN * variance / (runs - 1.0) / common) if common > 0.0 else 1.0
    return reliability * np.nan_to_num(apart + part * middle[:, None]), deviation


def _deviations(experiment: Experiment, models: Mapping[int, PathModel]) -> FloatArray:
    """Return ln(time / model) minus its median for each call path, (paths, C, R); NaN where nothing was measured."""
    result = np.full(experiment.values["time"].shape, np.nan)
    for path, entry in models.items():
        if not isinstance(entry.model, Model) or experiment.tree.start_and_end[path]:
            continue
        times = experiment.values["time"][path]
        known = np.isfinite(times) & (times > 0) & experiment.dedicated[:, None]
        fitted = np.zeros((len(times), 1))
        there = known.any(axis=1)  # a model may have no value elsewhere, such as log2(p) at 0
        fitted[there, 0] = entry.model.evaluate(experiment.points[there])
        known &= fitted > 0
        logs = np.log(np.where(known, times, 1.0)) - np.log(np.where(known, fitted, 1.0))
        if known.any():
            result[path] = np.where(known, logs - np.median(logs[known]), np.nan)
    return result


def _variance(values: FloatArray) -> float:
    """Return the mean square of values; NaN is ignored."""
    known = values[np.isfinite(values)]
    return float((known**2).mean()) if known.size else 0.0
