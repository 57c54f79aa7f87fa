# SPDX-License-Identifier: Apache-2.0
"""Select the regions that contain most of the time of a program, within a budget of overhead.

This is a knapsack problem. The value of a region is its exclusive time. Its cost is its number of visits × the overhead
of one enter and exit. A greedy selection takes the regions in descending order of value per cost. Exception: if one
region within the budget has a larger value than the greedy selection, the result is this region.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from ..errors import ModelingError
from .costs import HookCost, PathCosts, is_main
from .selection import Choice, RegionSelection, tenths

RELEVANT = 0.001
"""Default of `threshold`: regions with a smaller share of the time of the program are not selected for their time."""


def select_within(
    costs: PathCosts, hook: HookCost, budget: float = 0.05, threshold: float = RELEVANT
) -> RegionSelection:
    """Return the regions whose exclusive times contain most of the time of the program, within a budget of overhead.

    - budget: largest overhead, as a share of the time of the program.
    - hook: overhead of a visit.
    - threshold: a region with a smaller share of the time outside of MPI and OpenMP is not selected for its time. (The
      time in MPI and OpenMP is mostly waiting.) It is kept only if it is on a call path from main to a selected region,
      and the budget permits it.

    `main` is always kept. The time of a region that is too expensive to measure is added to the value of its callers.

    Raises ModelingError for arguments out of range, or if no region took time.
    """
    if not budget > 0.0:
        raise ModelingError(f"the budget for overhead must be a share above 0, not {budget:g}")
    if not 0.0 <= threshold <= 1.0:
        raise ModelingError(f"threshold must be a share between 0 and 1, not {threshold:g}")
    if not costs.total > 0.0:
        raise ModelingError("no region took time at this point, so no region can be selected")
    regions, most, least = costs.of_regions, budget * costs.total, threshold * costs.work
    cost = {number: visits * hook.pair for number, (_, visits) in regions.items()}
    mains = [number for number in regions if is_main(costs.tree.regions[number])]
    left = most - sum(cost[number] for number in mains)
    chosen, worth = _chosen(costs, cost, left, least, frozenset(mains))
    reasons = {number: _share(regions[number][0], worth[number], costs.total) for number in chosen}
    for number in mains:
        reasons[number] = "main is always kept"
    spent, leads_to = sum(cost[number] for number in reasons), dict[int, str]()
    for number, callee in _callers(costs, chosen).items():
        if number not in reasons and spent + cost[number] <= most:
            spent += cost[number]
            reasons[number], leads_to[number] = "", callee
    return _selection(costs, reasons, leads_to, cost, threshold)


def _chosen(
    costs: PathCosts, cost: Mapping[int, float], most: float, least: float, mains: AbstractSet[int]
) -> tuple[set[int], dict[int, float]]:
    """Return the numbers of the selected regions, and the value (seconds) of each region.

    If candidates are too expensive, their time is added to their callers, and the selection is repeated until all
    candidates fit.

    - cost: overhead of each region (seconds). most: largest sum of the overhead (seconds).
    - least: smallest value of a candidate (seconds).
    - mains: regions that are always selected.
    """
    costly: frozenset[int] = frozenset()
    while True:
        regions = costs.in_callers(costly).of_regions
        worth = {number: time for number, (time, _) in regions.items() if number not in costly}
        candidates = [number for number in worth if worth[number] >= least and number not in mains]
        chosen = _knapsack(candidates, worth, cost, most)
        if chosen.issuperset(candidates):
            return chosen, worth
        costly |= set(candidates) - chosen


def _knapsack(candidates: list[int], worth: Mapping[int, float], cost: Mapping[int, float], most: float) -> set[int]:
    ordered = sorted(candidates, key=lambda n: (cost[n] / worth[n] if worth[n] > 0 else float("inf"), -worth[n], n))
    chosen: set[int] = set()
    spent = 0.0
    for number in ordered:
        if spent + cost[number] <= most:
            chosen.add(number)
            spent += cost[number]
    single = max((n for n in candidates if cost[n] <= most), key=lambda n: worth[n], default=None)
    if single is not None and worth[single] > sum(worth[number] for number in chosen):
        return {single}
    return chosen


def _callers(costs: PathCosts, chosen: AbstractSet[int]) -> dict[int, str]:
    """Return the regions on call paths to selected regions, each with the name of one such selected region.

    The regions with the fewest visits come first.
    """
    tree = costs.tree
    found: dict[int, str] = {}
    for path in range(len(tree)):
        if int(tree.region[path]) in chosen:
            for node in tree.ancestry(path)[:-1]:
                if (number := int(tree.region[node])) in costs.of_regions:
                    found.setdefault(number, tree.name(path))
    return dict(sorted(found.items(), key=lambda item: (costs.of_regions[item[0]][1], item[0])))


def _selection(
    costs: PathCosts, reasons: dict[int, str], leads_to: dict[int, str], cost: dict[int, float], threshold: float
) -> RegionSelection:
    regions, shares = costs.of_regions, costs.inclusive_share()
    kept: list[Choice] = []
    dropped: list[Choice] = []
    for number, (time, visits) in regions.items():
        region = costs.tree.regions[number]
        part = time / costs.total
        if number in reasons:
            reason = reasons[number]
        elif time < threshold * costs.work:
            reason = f"{tenths(time / costs.work)} of the program without MPI, less than {100 * threshold:.3g} %"
        else:
            reason = f"{tenths(part)} of the program, but measuring it takes {tenths(cost[number] / costs.total)}"
        to = leads_to.get(number, "")
        choice = Choice(region, reason, shares.get(number, 0.0), visits, cost[number], to)
        (kept if number in reasons else dropped).append(choice)
    explained = costs.always_measured + sum(regions[number][0] for number in reasons)
    return RegionSelection(
        costs.point,
        _ordered(kept),
        _ordered(dropped),
        sum(choice.overhead for choice in kept),
        costs.total,
        float(costs.time[costs.tree.start_and_end].sum()),
        explained / costs.total,
    )


def _ordered(choices: list[Choice]) -> tuple[Choice, ...]:
    return tuple(sorted(choices, key=lambda choice: (-choice.share, choice.region.name)))


def _share(exclusive: float, worth: float, total: float) -> str:
    share, whole = tenths(exclusive / total), tenths(worth / total)
    return f"{share} of the program" + (f", {whole} with callees too costly to measure" if whole != share else "")
