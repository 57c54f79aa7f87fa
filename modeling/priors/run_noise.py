# SPDX-License-Identifier: Apache-2.0
"""Noise of whole runs: what makes all call paths of a run take longer, or less long, than in the other runs.

Clocks change with the temperature, and other programs use memory and cores for minutes. Noise is therefore shared by
the call paths of a run, by each in proportion to its sensitivity. The common part of the deviations of many call paths
from their models shows the disturbance; the times of one call path cannot show it:

    ln(time / model) of call path i in run r = load_i · disturbance_r + rest

The disturbance of a run is the median over the call paths that compute, less the part of its variance that their rest
explains; loads are slopes. Models of all call paths may miss the same configurations, so that only the differences
between the runs of a configuration tell how large disturbances are. docs/design/priors-evaluation.md has measurements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..experiment import Experiment, FloatArray, RegionKind, median_over_repetitions
from ..pmnf.model import Model
from .path_model import PathModel

# Smallest number of runs of a configuration for which the median is not an extreme; the same for call paths.
_LEAST_REPETITIONS = _LEAST_PATHS = 3
# A disturbance with a standard deviation below this part of the time is none, and so is one whose variance is mostly
# that of the noise of single call paths.
_LEAST, _LEAST_RELIABILITY = 0.01, 0.5
# The variance of a median over that of a mean.
_OF_MEDIAN = np.pi / 2.0
# A call path feels at most so many times what the others feel, and those that feel less than the other number tell
# nothing of it: the disturbances are estimated again without them.
_MOST_LOAD, _LEAST_LOAD, _ROUNDS = 4.0, 0.2, 2
# What the runs of a configuration have in common is chance if its variance over the configurations is no more than this
# many times what the differences between runs make of it: of 25 with five runs, one in a hundred is above by
# chance (F test).
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
        """The note for models that use times without these disturbances."""
        return (
            f"whole runs were faster or slower than others, by {100 * self.deviation:.0f} % (standard deviation), in "
            "all of their call paths: models of time are those of the run in the middle"
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
    telling = computing & np.isfinite(deviations).any(axis=(1, 2))
    loads = np.ones(len(tree))
    for _ in range(_ROUNDS):
        found = _disturbances(deviations[telling] / loads[telling, None, None])
        if found is None:
            return None
        felt, deviation = found
        squares = np.maximum((np.isfinite(deviations) * felt**2).sum(axis=(1, 2)), 1e-300)
        loads = np.clip((np.nan_to_num(deviations) * felt).sum(axis=(1, 2)) / squares, 0.0, _MOST_LOAD)
        telling &= loads > _LEAST_LOAD
    return RunNoise(np.exp(loads[:, None, None] * felt), deviation)


def _disturbances(parts: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the disturbances of runs (C, R) and their standard deviation, given those that call paths feel, (N, C, R).

    None if there are none, or they cannot be told from the noise of each call path.
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
    """Return logarithms of times over models (paths, C, R), each with the median 0; NaN where nothing was measured."""
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
    """Return the mean square of values, NaN left out."""
    known = values[np.isfinite(values)]
    return float((known**2).mean()) if known.size else 0.0
