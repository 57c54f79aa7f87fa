# SPDX-License-Identifier: Apache-2.0
"""Compare the time of the slowest rank of a run with the mean over ranks. A run takes as long as its slowest rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .documents import Real

# The slowest rank dominates if its time is more than this multiple of the mean over ranks. The mean then does not
# describe the run time.
DOMINATES = 1.25


@dataclass(frozen=True)
class SlowestRank:
    """The slowest rank at a measured configuration.

    point: the values of the parameters. mean: seconds of the program, mean over ranks. low, high: bounds of the seconds
    of the slowest rank, which are equal if the time of each rank is known.
    """

    point: tuple[Real, ...]
    mean: Real
    low: Real
    high: Real

    @property
    def ratio(self) -> float:
        """Return the upper bound of the time of the slowest rank, divided by the mean over ranks."""
        return self.high / self.mean


@dataclass(frozen=True, eq=False)
class RankTimes:
    """The time of the program in the ranks of all runs (seconds), without the start and the end of MPI.

    mean: over ranks. low, high: bounds of the time of the slowest rank, equal if the time of each rank is known. Shape
    (configurations, repetitions); NaN: unknown.
    """

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def chosen(self, places: Sequence[int]) -> RankTimes:
        """Return the times of the configurations with these numbers, in this order."""
        return RankTimes(self.mean[places], self.low[places], self.high[places])

    def dominating(self, points: NDArray[np.float64]) -> list[SlowestRank | None]:
        """Return for each configuration the slowest rank, as mean over repetitions; None if it does not dominate.

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
    """Return the slowest rank at the configuration where it exceeds the mean most; None if it dominates nowhere.

    Configurations are compared by differences in seconds, because ratios in short runs are mostly noise.

    points: shape (configurations, parameters). dedicated: mask of the configurations with a processor for each rank.
    Other configurations are not used, because their ranks may wait for a processor.
    """
    each = [] if times is None else zip(times.dominating(points), dedicated.tolist(), strict=True)
    found = [one for one, own in each if one is not None and own]
    return max(found, key=lambda one: one.high - one.mean, default=None)
