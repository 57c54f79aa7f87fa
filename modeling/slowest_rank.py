# SPDX-License-Identifier: Apache-2.0
"""The time of the slowest rank of a run, relative to the mean over ranks: the run takes as long as this rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .documents import Real

# If the slowest rank takes at least this many times the mean over ranks, the mean does not represent the run time.
DOMINATES = 1.25


@dataclass(frozen=True)
class SlowestRank:
    """The slowest rank at a measured configuration.

    mean: seconds of the program, mean over ranks. low, high: bounds of the seconds of the slowest rank, which are equal
    if the time of each rank is known.
    """

    point: tuple[Real, ...]
    mean: Real
    low: Real
    high: Real

    @property
    def ratio(self) -> float:
        """Return the ratio of the upper bound of the slowest rank to the mean."""
        return self.high / self.mean


@dataclass(frozen=True, eq=False)
class RankTimes:
    """Seconds of the program, without the start and the end of MPI, in the ranks of runs.

    mean: over ranks. low, high: bounds of the slowest rank, equal if the time of each rank is known. Shape
    (configurations, repetitions); NaN: unknown.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def chosen(self, places: Sequence[int]) -> RankTimes:
        """Return the times of some configurations, in this order."""
        return RankTimes(self.mean[places], self.low[places], self.high[places])

    def dominating(self, points: NDArray[np.float64]) -> list[SlowestRank | None]:
        """Return the slowest rank of each configuration (mean of its repetitions), None if it does not dominate.

        points: the configurations, shape (configurations, parameters).
        """
        return [self._dominating(tuple(point), where) for where, point in enumerate(points.tolist())]

    def _dominating(self, point: tuple[float, ...], where: int) -> SlowestRank | None:
        known = ~np.isnan(self.mean[where])
        if not known.any():
            return None
        mean, low, high = (float(one[where][known].mean()) for one in (self.mean, self.low, self.high))
        if not (mean > 0.0 and math.isfinite(high) and high > DOMINATES * mean):
            return None
        return SlowestRank(point, mean, low, high)


def most_dominating(
    times: RankTimes | None, points: NDArray[np.float64], dedicated: NDArray[np.bool_]
) -> SlowestRank | None:
    """Return the slowest rank at the configuration with the largest difference to the mean; None if it never dominates.

    The difference in seconds is compared, because ratios in short runs are mostly noise. dedicated: the configurations
    with a processor for each rank; in other configurations ranks may wait for a processor.
    """
    each = [] if times is None else zip(times.dominating(points), dedicated.tolist(), strict=True)
    found = [one for one, own in each if one is not None and own]
    return max(found, key=lambda one: one.high - one.mean, default=None)
