# SPDX-License-Identifier: Apache-2.0
"""Estimate the duration and memory of a count-only run from earlier runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..points import Point

LEAST_SECONDS = 0.1
"""Processor seconds per process that are assumed while no earlier run allows an estimate. Measured: examples/heat takes
6.1 processor seconds with 64 ranks and Open MPI 4.1, which is 0.1 s per rank."""
_MOST_GROWTH = 2.0
"""Largest assumed exponent e of processor time ~ ranks^e. If each rank communicates with all others, e is 2."""


@dataclass(frozen=True)
class Cost:
    """The cost of one finished run.

    - others: the values of all parameters except the number of ranks, in the order of the campaign.
    - seconds: elapsed time of the run.
    - simulated: whether SimGrid simulated the ranks; otherwise each rank was a process.
    - memory: sum of the peak memory of all ranks in bytes; 0 if unknown.
    """

    ranks: int
    others: Point
    seconds: float
    counts_only: bool
    simulated: bool
    memory: int = 0


class Costs:
    """The costs of finished runs, and estimates for further runs."""

    def __init__(self, processors: int) -> None:
        """Start without runs. processors: number of processors of this machine."""
        self._processors = processors
        self._known: list[Cost] = []

    def add(self, cost: Cost) -> None:
        """Add a successful run."""
        self._known.append(cost)

    def counted(self, simulated: bool) -> bool:
        """Return whether there is a count-only run of this kind (with simulated ranks, or with processes)."""
        return any(one.counts_only and one.simulated == simulated for one in self._known)

    def seconds(self, ranks: int, others: Point, simulated: bool, unknown: float = 1.0) -> float | None:
        """Return the estimated elapsed time of a count-only run in seconds; None if no run allows an estimate.

        The estimate needs a count-only run of the same kind (`simulated`), or a run with times of the same kind and
        the same `others`. It extrapolates from the run with the largest number of ranks that does not exceed `ranks`
        (if there is none, from the run with the fewest ranks):

        estimate = seconds of this run · (ratio of the ranks)^exponent / ratio of the processors · ratio of the sizes

        - With simulated ranks, all ranks share one processor.
        - exponent: log(ratio of processor seconds) / log(ratio of ranks) between this run and the run with the next
          fewer ranks and the same `others`. Processor seconds are seconds · processors. The exponent is limited to
          1 .. 2 for processes and to 0 .. 2 for simulated ranks. `unknown` is the exponent if there is no second run.
        - ratio of the sizes: see `_of_size`.
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
            processors = self._used(last.ranks, simulated) / self._used(before[-1].ranks, simulated)
            growth = math.log(last.seconds / before[-1].seconds * processors) / math.log(last.ranks / before[-1].ranks)
            growth = min(max(growth, 0.0 if simulated else 1.0), _MOST_GROWTH)
        processors = self._used(ranks, simulated) / self._used(last.ranks, simulated)
        longer: float = (ranks / last.ranks) ** growth / processors
        return last.seconds * longer * self._of_size(last.others, others)

    def memory(self, ranks: int) -> float:
        """Return the estimated memory of this number of processes in bytes; 0 if unknown."""
        known = [one.memory / one.ranks for one in self._known if one.memory and not one.simulated]
        return ranks * max(known, default=0.0)

    def _used(self, ranks: int, simulated: bool) -> int:
        """Return the number of processors that a run uses. A simulation runs all ranks on one processor."""
        return 1 if simulated else min(ranks, self._processors)

    def _of_size(self, known: Point, wanted: Point) -> float:
        """Return the factor from the duration with the parameters `known` to the duration with `wanted`.

        The factor is the largest ratio between two runs that have the same number of ranks and that both count only or
        both measure times. It is 1 if there is no such pair.
        """
        ratios = [
            large.seconds / small.seconds
            for small in self._known
            for large in self._known
            if small.others == known and large.others == wanted and small.seconds > 0
            if (small.ranks, small.counts_only) == (large.ranks, large.counts_only)
        ]
        return max(ratios, default=1.0) if known != wanted else 1.0


def total(seconds: Sequence[float | None]) -> tuple[float, bool]:
    """Return the sum of the known durations (seconds), and whether no duration is None (unknown)."""
    known = [one for one in seconds if one is not None]
    return sum(known), len(known) == len(seconds)
