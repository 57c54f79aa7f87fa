# SPDX-License-Identifier: Apache-2.0
"""Select the regions to instrument in the next run by their share of the time of the program at a point."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..analysis import Analysis
from ..errors import ModelingError
from ..evaluation import Evaluation, evaluate
from ..experiment import Region, RegionKind
from .costs import THREAD_TIME, is_always_measured, is_main


@dataclass(frozen=True)
class Choice:
    """A region, and the reason why it is kept or dropped.

    - own_reason: the reason as text; "" if `leads_to` is the reason.
    - share: largest inclusive share of the program among the call paths of the region (as in `evaluation`).
    - visits, overhead: predicted visits per rank, and their overhead (seconds), over all call paths of the region; NaN
      if unknown.
    - leads_to: name of another kept region, if this region is kept because it is on a call path to it; otherwise "".
    """

    region: Region
    own_reason: str
    share: float
    visits: float
    overhead: float
    leads_to: str = ""

    @property
    def reason(self) -> str:
        """Return the reason as text, with the full name of the region in `leads_to`."""
        return self.reason_with(lambda name: name)

    def reason_with(self, shortened: Callable[[str], str]) -> str:
        """Return the reason as text. shortened: function that shortens the name of the region in `leads_to`."""
        return f"on the way to {shortened(self.leads_to)}" if self.leads_to else self.own_reason


@dataclass(frozen=True)
class RegionSelection:
    """The regions to instrument (kept) and not to instrument (dropped) for a run at `point`.

    - overhead: predicted overhead of the kept regions on a rank (seconds).
    - total: predicted time of the program (seconds), without the start and the end of MPI.
    - start_and_end: predicted time of the start and the end of MPI (seconds).
    - coverage: exclusive time of all regions that are measured (kept, or always measured), as a share of `total`.
    """

    point: dict[str, float]
    kept: tuple[Choice, ...]
    dropped: tuple[Choice, ...]
    overhead: float
    total: float
    start_and_end: float
    coverage: float

    @property
    def overhead_share(self) -> float:
        """Return the predicted overhead as a share of the run time."""
        return self.overhead / self.total if self.total > 0 else 0.0


def select(
    analysis: Analysis,
    point: Mapping[str, float],
    threshold: float = 0.01,
    cost_per_visit: float = 100e-9,
    most_overhead: float = 0.1,
) -> RegionSelection:
    """Return the regions to instrument for a run at `point`.

    - A region is kept if one of its call paths has an inclusive time of at least `threshold` of the program at the
      point. All regions on the call paths from main to this region are kept, too. (An OpenMP construct occurs in many
      functions. Its callers are kept only on call paths that also reach `threshold`.)
    - Exception: a region is dropped if its overhead (visits × cost_per_visit, in seconds) is more than `most_overhead`
      of its inclusive time, unless it is on a call path to another kept region.
    - `main` is always kept. MPI regions and Python functions are always measured, so they are in neither list.

    Shares refer to the program without the start and the end of MPI. Raises ModelingError for arguments out of range,
    or without models of time.
    """
    if not 0.0 <= threshold <= 1.0:
        raise ModelingError(f"threshold must be a share between 0 and 1, not {threshold:g}")
    if not cost_per_visit >= 0.0 or not most_overhead > 0.0:
        raise ModelingError("the cost of a visit must be 0 or more, the share of overhead above 0")
    tree = analysis.tree
    time = evaluate(analysis, point)
    visits = evaluate(analysis, point, "visits") if "visits" in analysis.exclusive else None
    measured = evaluate(analysis, point, THREAD_TIME) if THREAD_TIME in analysis.exclusive else time
    candidates = _candidates(time, measured, visits, cost_per_visit)
    kept, dropped = _decide(candidates, threshold, most_overhead)
    large, leads_to = set(kept), dict[int, str]()
    for path in range(len(tree)):
        if int(tree.region[path]) in large and _keeps_callers(time, path, threshold):
            for node in tree.ancestry(path)[:-1]:
                if (region := int(tree.region[node])) in candidates and region not in kept:
                    leads_to.setdefault(region, tree.name(path))
    kept |= dict.fromkeys(leads_to, "")
    chosen = _choices(candidates, kept, leads_to)
    explained = sum(
        time.exclusive[path].value
        for path in range(len(tree))
        if not tree.start_and_end[path]
        and not math.isnan(time.exclusive[path].value)
        and (int(tree.region[path]) in kept or int(tree.region[path]) not in candidates)
    )
    return RegionSelection(
        time.point,
        chosen,
        _choices(candidates, {region: reason for region, reason in dropped.items() if region not in kept}, {}),
        sum(choice.overhead for choice in chosen if not math.isnan(choice.overhead)),
        time.total.value,
        time.start_and_end.value,
        explained / time.total.value if time.total.value > 0 else 0.0,
    )


def _keeps_callers(time: Evaluation, path: int, threshold: float) -> bool:
    """Return whether the callers on a call path that ends in a kept region are kept, too.

    The same OpenMP construct occurs as one region in many functions. Its callers are only kept on call paths with an
    inclusive time of at least `threshold` of the program.
    """
    of_openmp = time.analysis.tree.region_of(path).kind is RegionKind.OPENMP
    return not of_openmp or time.share(time.inclusive[path]) >= threshold


@dataclass
class _Candidate:
    """A region that a filter can exclude.

    share: largest inclusive share among its call paths. visits, inclusive (seconds), overhead (seconds): sums over its
    call paths. Recursive calls count once in the inclusive time.
    """

    region: Region
    share: float = 0.0
    visits: float = 0.0
    inclusive: float = 0.0
    overhead: float = 0.0


def _candidates(
    time: Evaluation, of_threads: Evaluation, visits: Evaluation | None, cost_per_visit: float
) -> dict[int, _Candidate]:
    """Return the regions that a filter can exclude, by number.

    of_threads: evaluated models of the time of all threads, if it was measured. visits: None if they were not measured.
    """
    tree = time.analysis.tree
    result: dict[int, _Candidate] = {}
    for path, inclusive in enumerate(time.inclusive):
        number = int(tree.region[path])
        region = tree.regions[number]
        if is_always_measured(region):
            continue
        candidate = result.setdefault(number, _Candidate(region))
        candidate.share = max(candidate.share, time.share(inclusive))
        candidate.visits += math.nan if visits is None else visits.exclusive[path].value
        spent = of_threads.inclusive[path].value
        recursive = number in [int(tree.region[node]) for node in tree.ancestry(path)[:-1]]
        if not recursive and not math.isnan(spent):
            candidate.inclusive += spent
        candidate.overhead = candidate.visits * cost_per_visit
    return result


def tenths(share: float) -> str:
    """Return a share in percent as text, with at most one decimal."""
    return f"{round(100 * share, 1):.3g} %"


def _decide(
    candidates: Mapping[int, _Candidate], threshold: float, most_overhead: float
) -> tuple[dict[int, str], dict[int, str]]:
    """Return the regions that are kept for their own share, and the other regions, by number with reasons."""
    kept: dict[int, str] = {}
    dropped: dict[int, str] = {}
    for number, candidate in candidates.items():
        share = f"{tenths(candidate.share)} of the program"
        if is_main(candidate.region):
            kept[number] = "main is always kept"
        elif candidate.share < threshold:
            dropped[number] = f"{share}, less than {100 * threshold:g} %"
        elif candidate.overhead > most_overhead * candidate.inclusive:
            part = candidate.overhead / candidate.inclusive if candidate.inclusive > 0 else math.inf
            dropped[number] = f"{share}, but measuring it takes {100 * part:.3g} % of its time"
        else:
            kept[number] = share
    return kept, dropped


def _choices(
    candidates: Mapping[int, _Candidate], reasons: Mapping[int, str], leads_to: Mapping[int, str]
) -> tuple[Choice, ...]:
    """Return the regions in `reasons` as choices, the largest share first."""
    found = [(candidates[number], reason, leads_to.get(number, "")) for number, reason in sorted(reasons.items())]
    choices = [Choice(one.region, reason, one.share, one.visits, one.overhead, to) for one, reason, to in found]
    return tuple(sorted(choices, key=lambda choice: (-choice.share, choice.region.name)))
