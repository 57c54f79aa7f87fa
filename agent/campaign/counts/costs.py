# SPDX-License-Identifier: Apache-2.0
"""Estimate the duration and memory of a count-only run from earlier runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..points import Point

LEAST_SECONDS = 0.1
"""Assumed processor seconds per process if no run shows more (heat with 64 ranks, Open MPI 4.1: 6.1 s in total)."""
_MOST_GROWTH = 2.0
"""Largest exponent of the seconds in the number of ranks: each rank may communicate with all others."""


@dataclass(frozen=True)
class Cost:
    """The cost of a run.

    others: the values of all parameters except the number of ranks. memory: bytes of all ranks, 0 if unknown.
    """

    ranks: int
    others: Point
    seconds: float
    counts_only: bool
    simulated: bool
    memory: int = 0


class Costs:
    """The costs of runs, and estimates for further runs."""

    def __init__(self, processors: int) -> None:
        """Start without runs. processors: number of processors of this machine."""
        self._processors = processors
        self._known: list[Cost] = []

    def add(self, cost: Cost) -> None:
        """Add a successful run."""
        self._known.append(cost)

    def counted(self, simulated: bool) -> bool:
        """Return whether there is a count-only run of this kind."""
        return any(one.counts_only and one.simulated == simulated for one in self._known)

    def seconds(self, ranks: int, others: Point, simulated: bool, unknown: float = 1.0) -> float | None:
        """Return the estimated seconds of a count-only run; None before the first run of this kind.

        The estimate extrapolates from the run with the next lower number of ranks. It grows with a power of the ranks
        per processor; the exponent is fitted to the two runs before, and is at least 1 for processes. unknown: the
        exponent if there is only one run. The ratio between sizes is the ratio in the runs with times.
        """
        own = [one for one in self._known if one.simulated == simulated]
        counted = [one for one in own if one.counts_only]
        same = (
            [one for one in counted if one.others == others] or counted or [one for one in own if one.others == others]
        )
        if not same:
            return None
        below = sorted(same, key=lambda one: one.ranks)
        last = max((one for one in below if one.ranks <= ranks), key=lambda one: one.ranks, default=below[0])
        growth = unknown
        before = [one for one in below if one.ranks < last.ranks and one.others == last.others]
        if before and min(before[-1].seconds, last.seconds) > 0:
            growth = math.log(last.seconds / before[-1].seconds) / math.log(last.ranks / before[-1].ranks)
            growth = min(max(growth, 0.0 if simulated else 1.0), _MOST_GROWTH)
        longer: float = (self._shares(ranks, simulated) / self._shares(last.ranks, simulated)) ** growth
        return last.seconds * longer * self._of_size(last.others, others)

    def memory(self, ranks: int) -> float:
        """Return the estimated bytes of this number of processes, 0 if unknown."""
        known = [one.memory / one.ranks for one in self._known if one.memory and not one.simulated]
        return ranks * max(known, default=0.0)

    def _shares(self, ranks: int, simulated: bool) -> float:
        """Return the number of ranks per processor, at least 1."""
        return float(ranks) if simulated else max(ranks / self._processors, 1.0)

    def _of_size(self, known: Point, wanted: Point) -> float:
        """Return the ratio of the times of two sizes, from runs with the same number of ranks."""
        ratios = [
            large.seconds / small.seconds
            for small in self._known
            for large in self._known
            if small.others == known and large.others == wanted and small.seconds > 0
            if (small.ranks, small.counts_only) == (large.ranks, large.counts_only)
        ]
        return max(ratios, default=1.0) if known != wanted else 1.0


def total(seconds: Sequence[float | None]) -> tuple[float, bool]:
    """Return the sum of the known seconds, and whether all are known."""
    known = [one for one in seconds if one is not None]
    return sum(known), len(known) == len(seconds)
