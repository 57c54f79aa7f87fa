# SPDX-License-Identifier: Apache-2.0
"""Compute the times and visits of call paths at one point, from which regions are selected.

Measuring a visit has an overhead for its enter and its exit. The measured exclusive time of the region contains a part
of this overhead (`HookCost.inside`). The exclusive time of the caller contains the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..analysis import Analysis
from ..errors import ModelingError
from ..evaluation import evaluate
from ..experiment import CallTree, FloatArray, Region, RegionKind

WAITING = (RegionKind.MPI, RegionKind.OPENMP)
"""Kinds of regions whose exclusive time is mostly waiting."""
ALWAYS_MEASURED = (RegionKind.MPI, RegionKind.PYTHON)
"""Kinds of regions that a filter cannot exclude from the measurement."""


def is_always_measured(region: Region) -> bool:
    """Return whether a filter cannot exclude a region: an MPI operation, a Python function, or no function at all."""
    return region.kind in ALWAYS_MEASURED or region.is_made_up


@dataclass(frozen=True)
class HookCost:
    """The overhead of one visit of a region (enter and exit) in seconds.

    - pair: the whole overhead.
    - inside: the part of the overhead that the measured exclusive time of the region contains.

    Raises ModelingError unless 0 <= inside <= pair.
    """

    pair: float
    inside: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.inside <= self.pair:
            raise ModelingError("the cost of a visit must be 0 or more, and at most all of it is inside of the region")


FASTEST = 2e-11
"""Lower limit of the seconds per instruction: ten instructions per cycle at 5 GHz. No processor is faster."""

SCOREP = HookCost(76e-9, 38e-9)
"""The overhead of a visit with Score-P 8.4 (profiling), measured with an empty function (docs/design/refine.md)."""


@dataclass(frozen=True, eq=False)
class PathCosts:
    """The exclusive time without overhead (seconds) and the visits of each call path, shape (paths,).

    Both are values per rank, summed over the threads of the rank. point: the values of the parameters.
    """

    tree: CallTree
    point: dict[str, float]
    time: FloatArray
    visits: FloatArray

    @cached_property
    def total(self) -> float:
        """Return the time of the program in seconds, without the start and the end of MPI."""
        return float(self.time[~self.tree.start_and_end].sum())

    @cached_property
    def work(self) -> float:
        """Return the time outside of MPI and OpenMP operations in seconds; these operations mostly wait."""
        waits = np.array([region.kind in WAITING for region in self.tree.regions], dtype=bool)
        return float(self.time[~waits[self.tree.region] & ~self.tree.start_and_end].sum())

    @cached_property
    def of_regions(self) -> dict[int, tuple[float, float]]:
        """Return the exclusive seconds and visits of each region that a filter can exclude, by number."""
        found: dict[int, tuple[float, float]] = {}
        for path in range(len(self.tree)):
            number = int(self.tree.region[path])
            if is_always_measured(self.tree.regions[number]) or self.tree.start_and_end[path]:
                continue
            time, visits = found.get(number, (0.0, 0.0))
            found[number] = time + float(self.time[path]), visits + float(self.visits[path])
        return found

    @cached_property
    def always_measured(self) -> float:
        """Return the seconds in regions that no filter can exclude."""
        kinds = np.array([is_always_measured(region) for region in self.tree.regions], dtype=bool)
        return float(self.time[kinds[self.tree.region] & ~self.tree.start_and_end].sum())

    def inclusive_share(self) -> dict[int, float]:
        """Return the largest inclusive share of the program among the call paths of each region, by number."""
        shares: dict[int, float] = {}
        for path, seconds in enumerate(self.tree.inclusive(self.time).tolist()):
            number = int(self.tree.region[path])
            shares[number] = max(shares.get(number, 0.0), seconds / self.total if self.total > 0 else 0.0)
        return shares

    def in_callers(self, regions: AbstractSet[int]) -> PathCosts:
        """Return the costs of a measurement that leaves out the regions with these numbers.

        The time of these regions is added to their callers. Regions without a caller are not left out.
        """
        gone = np.isin(self.tree.region, sorted(regions)) & (self.tree.parent >= 0)
        place = np.cumsum(~gone) - 1
        for path in np.flatnonzero(gone).tolist():  # callers come before their callees
            place[path] = place[self.tree.parent[path]]
        kept = np.flatnonzero(~gone)
        parent = self.tree.parent[kept]
        tree = CallTree(self.tree.regions, self.tree.region[kept], np.where(parent < 0, -1, place[parent]))
        time: FloatArray = np.bincount(place, weights=self.time, minlength=kept.size).astype(np.float64)
        return PathCosts(tree, self.point, time, self.visits[kept])


def costs_at(analysis: Analysis, point: Mapping[str, float], measured: HookCost) -> PathCosts:
    """Return the predicted costs at a point. measured: the overhead of a visit in the runs of the models.

    Raises ModelingError without models of time and visits, or if the parameters of the point do not match.
    """
    time = evaluate(analysis, point, THREAD_TIME if THREAD_TIME in analysis.exclusive else "time")
    visits = evaluate(analysis, point, "visits")
    seconds = np.array([prediction.value for prediction in time.exclusive])
    numbers = np.array([prediction.value for prediction in visits.exclusive])
    counted = "instructions" in analysis.exclusive
    effort = evaluate(analysis, point, "instructions").exclusive if counted else ()
    instructions = np.array([prediction.value for prediction in effort]) if counted else None
    return path_costs(analysis.tree, time.point, seconds, numbers, measured, instructions=instructions)


def path_costs(
    tree: CallTree,
    point: Mapping[str, float],
    time: FloatArray,
    visits: FloatArray,
    measured: HookCost,
    others: FloatArray | None = None,
    instructions: FloatArray | None = None,
) -> PathCosts:
    """Return exclusive times without the overhead of measuring, and visits.

    - time, visits: exclusive seconds and visits per rank, shape (paths,); NaN: not measured.
    - measured: overhead of a visit in the measured runs.
    - others: seconds of other overhead in `time`, such as that of counters, shape (paths,).
    - instructions: executed instructions, shape (paths,). The resulting time is at least FASTEST seconds for each
      instruction (at most `time`), because the difference may be nearly 0 if overhead took most of the time.
    """
    time, visits = np.nan_to_num(time), np.nan_to_num(visits)
    hooked = np.array([not is_always_measured(region) for region in tree.regions], dtype=bool)[tree.region]
    own = time - np.where(hooked, visits * measured.inside, 0.0)
    if others is not None:
        own -= np.nan_to_num(others)
    outside = visits * (measured.pair - measured.inside) * hooked
    inner = tree.parent >= 0
    np.subtract.at(own, tree.parent[inner], outside[inner])
    least = 0.0 if instructions is None else np.minimum(FASTEST * np.nan_to_num(instructions), time)
    return PathCosts(tree, dict(point), np.maximum(own, np.maximum(least, 0.0)), np.maximum(visits, 0.0))


THREAD_TIME = "thread_time"
"""The metric of the time of all threads of a rank. It is preferred to `time`, because each thread has overhead."""


def is_main(region: Region) -> bool:
    """Return whether a region is the main program, in C, C++ or Fortran."""
    return region.name in ("main", "_QQmain", "MAIN__") or region.display == "main"
