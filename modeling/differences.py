# SPDX-License-Identifier: Apache-2.0
"""Compare two experiments with the same call paths and configurations: effort exactly, time with a significance test.

The test of times is a rank test that is stratified by configuration (Mann and Whitney 1947; van Elteren 1960). The
statistic is the sum of the rank sums of all configurations. The null hypothesis is that the repetitions before and
after are exchangeable within each configuration. The exact distribution of the statistic, with ties, gives the p-value.
The p-values of all call paths are corrected by the method of Benjamini and Hochberg (1995) with a false discovery rate
of 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import false_discovery_control, rankdata

from .errors import ModelingError
from .expectations import highest, lowest
from .experiment import Experiment, FloatArray

FALSE_DISCOVERY_RATE = 0.05
# Largest number of repetitions of a configuration on each side. The test ignores further ones, because the time for its
# exact distribution grows with the third power of this number.
_MOST_REPETITIONS = 60


@dataclass(frozen=True)
class EffortDifference:
    """The difference of one effort metric of one call path.

    - configurations: indices of the configurations that differ. of: number of configurations that were compared.
    - at: index of the configuration with the largest difference. before, after: means of the values there.
    - certain: whether the repetitions of each side are equal. If they are not, the ranges of the values before and
      after do not overlap.
    """

    path: int
    metric: str
    configurations: tuple[int, ...]
    of: int
    at: int
    before: float
    after: float
    certain: bool = True

    @property
    def ratio(self) -> float:
        """Return the ratio after / before; infinite if the value before is 0."""
        return self.after / self.before if self.before else math.inf


@dataclass(frozen=True)
class TimeDifference:
    """The difference of a cost metric of a call path; path -1 is the whole program.

    - before, after: means over the configurations with values on both sides, in the unit of the metric.
    - ratio: after / before, by the estimate of Hodges and Lehmann: the median of the ratios of all pairs of repetitions
      of the same configuration.
    - chance: the p-value, the probability of this or a larger difference between equal programs. corrected: the p-value
      corrected for the tests of all call paths. least: the smallest p-value that is possible with these repetitions.
    - repetitions: smallest number of repetitions of a configuration, before and after.
    """

    path: int
    metric: str
    before: float
    after: float
    ratio: float
    chance: float
    corrected: float
    least: float
    repetitions: tuple[int, int]

    @property
    def significant(self) -> bool:
        """Return whether the corrected p-value is at most FALSE_DISCOVERY_RATE."""
        return self.corrected <= FALSE_DISCOVERY_RATE

    @property
    def testable(self) -> bool:
        """Return whether there are enough repetitions for any difference to be significant."""
        return self.least <= FALSE_DISCOVERY_RATE


def effort_differences(
    before: Experiment, after: Experiment, metrics: Sequence[str], inclusive: bool = False
) -> list[EffortDifference]:
    """Return the differences of effort metrics, in the order of the call tree.

    inclusive: compare inclusive instead of exclusive values. Values that were measured on one side only are not
    compared. Raises ModelingError if the experiments do not share one call tree, or have different configurations.
    """
    _require_same(before, after)
    found = []
    for metric in metrics:
        old = before.inclusive(metric) if inclusive else before.values[metric]
        new = after.inclusive(metric) if inclusive else after.values[metric]
        for path in range(len(before.tree)):
            low, high, least, most = lowest(old[path]), highest(old[path]), lowest(new[path]), highest(new[path])
            known = ~np.isnan(low) & ~np.isnan(least)
            differ = known & ((least > high) | (most < low))
            if not differ.any():
                continue
            gap = np.where(differ, np.maximum(least - high, low - most), -1.0)
            at = int(np.argmax(gap))
            certain = bool(np.all((low == high)[differ]) and np.all((least == most)[differ]))
            places = tuple(np.flatnonzero(differ).tolist())
            values = (float(np.nanmean(old[path, at])), float(np.nanmean(new[path, at])))
            found.append(EffortDifference(path, metric, places, int(known.sum()), at, *values, certain))
    order = {metric: place for place, metric in enumerate(metrics)}
    return sorted(found, key=lambda one: (one.path, order[one.metric]))


def time_differences(
    before: Experiment, after: Experiment, metric: str = "time", inclusive: bool = False
) -> list[TimeDifference]:
    """Return the differences of a cost metric, one entry per call path with values above 0 on both sides.

    An entry for the whole program, with path -1, comes last. inclusive, errors: as in `effort_differences`.
    """
    _require_same(before, after)
    old = before.inclusive(metric) if inclusive else before.values[metric]
    new = after.inclusive(metric) if inclusive else after.values[metric]
    pairs = [(path, old[path], new[path]) for path in range(len(before.tree))]
    pairs.append((-1, _total(before, metric), _total(after, metric)))
    rows = [row for path, mine, theirs in pairs if (row := _time_difference(path, metric, mine, theirs)) is not None]
    tested = [place for place, row in enumerate(rows) if not math.isnan(row[4])]
    corrected = np.full(len(rows), math.nan)
    if tested:
        corrected[tested] = false_discovery_control([rows[place][4] for place in tested])
    return [
        TimeDifference(path, metric, low, high, ratio, chance, float(value), least, counts)
        for (path, low, high, ratio, chance, least, counts), value in zip(rows, corrected, strict=True)
    ]


def _require_same(before: Experiment, after: Experiment) -> None:
    if before.tree is not after.tree or not np.array_equal(before.points, after.points):
        raise ModelingError(f"{before.name} and {after.name} have different call paths or configurations")


def _total(experiment: Experiment, metric: str) -> FloatArray:
    """Return a metric of the whole program (configurations, repetitions); NaN for repetitions that do not exist."""
    values = experiment.values[metric]
    measured = ~np.isnan(values).all(axis=0)
    return np.where(measured, experiment.program(metric), np.nan)


_Row = tuple[int, float, float, float, float, float, tuple[int, int]]


def _time_difference(path: int, metric: str, old: FloatArray, new: FloatArray) -> _Row | None:
    """Return the fields of a TimeDifference without the corrected p-value; None if all values of a side are 0."""
    strata = []
    for mine, theirs in zip(old, new, strict=True):
        a, b = mine[~np.isnan(mine)][:_MOST_REPETITIONS], theirs[~np.isnan(theirs)][:_MOST_REPETITIONS]
        if a.size and b.size and (a.any() or b.any()):
            strata.append((a, b))
    if not strata or not any(a.any() for a, _ in strata) or not any(b.any() for _, b in strata):
        return None
    ratios = [np.log(b[b > 0][None, :] / a[a > 0][:, None]).ravel() for a, b in strata]
    pairs = np.concatenate(ratios)
    ratio = math.exp(float(np.median(pairs))) if pairs.size else math.nan
    chance, least = rank_test(strata)
    means = (float(np.mean([a.mean() for a, _ in strata])), float(np.mean([b.mean() for _, b in strata])))
    counts = (min(a.size for a, _ in strata), min(b.size for _, b in strata))
    return path, *means, ratio, chance, least, counts


def rank_test(strata: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[float, float]:
    """Return the two-sided p-value of the stratified rank test, and the smallest possible p-value.

    strata: for each configuration, the values before and the values after.
    """
    total, distribution = 0, np.ones(1)
    for a, b in strata:
        doubled = np.rint(2.0 * rankdata(np.concatenate([a, b]))).astype(int)
        total += int(doubled[a.size :].sum())
        distribution = np.convolve(distribution, _rank_sums(tuple(sorted(doubled.tolist())), b.size))
    above, below = float(distribution[total:].sum()), float(distribution[: total + 1].sum())
    possible = np.flatnonzero(distribution)
    edges = float(distribution[possible[0]]), float(distribution[possible[-1]])
    return min(1.0, 2.0 * min(above, below)), min(1.0, 2.0 * min(edges))


@lru_cache(maxsize=4096)
def _rank_sums(ranks: tuple[int, ...], chosen: int) -> FloatArray:
    """Return the probabilities of the sums of `chosen` out of `ranks`, if all choices are equally likely.

    Entry s of the result is the probability of the sum s.
    """
    counts = np.zeros((chosen + 1, sum(ranks) + 1))
    counts[0, 0] = 1.0
    for rank in ranks:
        for taken in range(chosen, 0, -1):
            counts[taken, rank:] += counts[taken - 1, : counts.shape[1] - rank]
    return np.asarray(counts[chosen] / counts[chosen].sum())
