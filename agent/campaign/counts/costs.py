# SPDX-License-Identifier: Apache-2.0
"""What a count-only run will cost, from what the runs before it took: seconds and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..points import Point

LEAST_SECONDS = 0.1
"""Processor time of one process, where no run says more (heat with 64 ranks, Open MPI 4.1: 6.1 s in all)."""
_MOST_GROWTH = 2.0
"""Largest exponent of the seconds in the number of ranks: each rank may communicate with all others."""


@dataclass(frozen=True)
class Cost:
    """What a run took.

    others: the values of the parameters but the number of ranks. memory: bytes of all ranks, 0 if it is not known.
    """

    ranks: int
    others: Point
    seconds: float
    counts_only: bool
    simulated: bool
    memory: int = 0


class Costs:
    """The costs of runs, and what they say of further ones."""

    def __init__(self, processors: int) -> None:
        """No run is known. processors: of this machine."""
        self._processors = processors
        self._known: list[Cost] = []

    def add(self, cost: Cost) -> None:
        """Take note of a run that ended well."""
        self._known.append(cost)

    def counted(self, simulated: bool) -> bool:
        """Whether there is a count-only run of this kind."""
        return any(one.counts_only and one.simulated == simulated for one in self._known)

    def seconds(self, ranks: int, others: Point, simulated: bool, unknown: float = 1.0) -> float | None:
        """Return how long a count-only run takes about, None if no run of this kind says anything of it.

        From the run with the next lower number of ranks it grows as between the two before: with a power of the ranks
        that a processor executes, which is at least 1 for processes. unknown: the power, if there is one run only.
        Another size takes as much longer as in the runs with times.
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
        """Return the bytes that so many processes take about, 0 if that is not known."""
        known = [one.memory / one.ranks for one in self._known if one.memory and not one.simulated]
        return ranks * max(known, default=0.0)

    def _shares(self, ranks: int, simulated: bool) -> float:
        """Return how many ranks a processor executes, at least 1."""
        return float(ranks) if simulated else max(ranks / self._processors, 1.0)

    def _of_size(self, known: Point, wanted: Point) -> float:
        """Return how many times longer a run of another size takes, by runs of both with as many ranks."""
        ratios = [
            large.seconds / small.seconds
            for small in self._known
            for large in self._known
            if small.others == known and large.others == wanted and small.seconds > 0
            if (small.ranks, small.counts_only) == (large.ranks, large.counts_only)
        ]
        return max(ratios, default=1.0) if known != wanted else 1.0


def total(seconds: Sequence[float | None]) -> tuple[float, bool]:
    """Return the sum of what is known, and whether all of it is."""
    known = [one for one in seconds if one is not None]
    return sum(known), len(known) == len(seconds)
