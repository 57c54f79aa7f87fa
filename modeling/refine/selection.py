"""Which regions to instrument in the next run, decided at the configuration that one wants to know about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..analysis import Analysis
from ..errors import ModelingError
from ..experiment import Region, RegionKind
from ..mpi_operations import operation_of


@dataclass(frozen=True)
class Choice:
    """A region and why it is kept or dropped.

    share: largest inclusive share of the program among its call paths. visits, overhead: predicted calls per rank,
    and the seconds that measuring them takes, summed over its call paths; exclusive_time likewise. NaN: unknown.
    """

    region: Region
    reason: str
    share: float
    visits: float
    exclusive_time: float
    overhead: float


@dataclass(frozen=True)
class Selection:
    """The regions to instrument and those not to, at `point`.

    overhead: predicted seconds of measuring the kept regions; total: predicted seconds of the program without the
    start and the end of MPI.
    """

    point: dict[str, float]
    kept: tuple[Choice, ...]
    dropped: tuple[Choice, ...]
    overhead: float
    total: float

    @property
    def overhead_share(self) -> float:
        """Predicted overhead as a share of the run time."""
        return self.overhead / self.total if self.total > 0 else 0.0


def select(
    analysis: Analysis,
    point: Mapping[str, float],
    threshold: float = 0.01,
    cost_per_visit: float = 100e-9,
    most_overhead: float = 0.1,
) -> Selection:
    """Return which regions to instrument to see the program as it will be at `point`.

    A region is kept if one of its call paths has an inclusive time of at least `threshold` of the whole program at
    the point, with every region on the paths from main to it. A region is dropped in spite of that if measuring it
    (visits × cost_per_visit, in seconds) takes more than `most_overhead` of the time inside of it; regions on the
    way to others that are kept stay. `main` is always kept. MPI regions and regions of interpreters are no part of
    a filter. The start and the end of MPI happen once however long the program runs; they count nowhere, or on many
    ranks they would hide everything else. Raises ModelingError for arguments out of range or without models of time.
    """
    if not 0.0 <= threshold <= 1.0:
        raise ModelingError(f"threshold must be a share between 0 and 1, not {threshold:g}")
    if not cost_per_visit >= 0.0 or not most_overhead > 0.0:
        raise ModelingError("the cost of a visit must be 0 or more, the share of overhead above 0")
    ranking = analysis.rank_at(point, "time", inclusive=True)
    tree = analysis.tree
    count = len(tree)
    exclusive = _values(analysis, point, "time")
    startup = _startup(analysis, exclusive)
    total = ranking.total.value - sum(startup[root] for root in tree.roots)
    inclusive, share = [0.0] * count, [0.0] * count
    for entry in ranking.entries:
        if not math.isnan(entry.value):
            inclusive[entry.path] = max(0.0, entry.value - startup[entry.path])
            share[entry.path] = inclusive[entry.path] / total if total > 0 else 0.0
    visits = _values(analysis, point, "visits") if "visits" in analysis.exclusive else [math.nan] * count
    facts = _facts(analysis, share, visits, exclusive, inclusive, cost_per_visit)
    large, reasons = _decide(facts, threshold, most_overhead)
    for path in range(count):
        if int(tree.region[path]) not in large:
            continue
        for node in tree.ancestry(path)[:-1]:
            region = int(tree.region[node])
            if region in facts and region not in large:
                reasons.setdefault(("kept", region), f"on the way to {tree.name(path)}")
    kept = tuple(
        facts[region].choice(reasons[("kept", region)]) for region in sorted(facts) if ("kept", region) in reasons
    )
    dropped = tuple(
        facts[region].choice(reasons[("dropped", region)])
        for region in sorted(facts)
        if ("kept", region) not in reasons
    )
    overhead = sum(choice.overhead for choice in kept if not math.isnan(choice.overhead))
    return Selection(ranking.point, _largest_first(kept), _largest_first(dropped), overhead, max(0.0, total))


@dataclass
class _Facts:
    region: Region
    share: float = 0.0
    visits: float = 0.0
    exclusive: float = 0.0
    inclusive: float = 0.0
    overhead: float = 0.0

    def choice(self, reason: str) -> Choice:
        return Choice(self.region, reason, self.share, self.visits, self.exclusive, self.overhead)


def _startup(analysis: Analysis, exclusive: list[float]) -> list[float]:
    """Return the predicted seconds that every call path spends in the start and the end of MPI, itself or below."""
    tree = analysis.tree
    operations = [operation_of(tree.region_of(path).name) for path in range(len(tree))]
    own = [
        value if operation is not None and operation.begins_or_ends and not math.isnan(value) else 0.0
        for operation, value in zip(operations, exclusive, strict=True)
    ]
    return [float(value) for value in tree.inclusive(np.array(own))]


def _values(analysis: Analysis, point: Mapping[str, float], metric: str) -> list[float]:
    values = [math.nan] * len(analysis.tree)
    for entry in analysis.rank_at(point, metric).entries:
        values[entry.path] = entry.value
    return values


def _facts(
    analysis: Analysis,
    share: list[float],
    visits: list[float],
    exclusive: list[float],
    inclusive: list[float],
    cost_per_visit: float,
) -> dict[int, _Facts]:
    """Collect call paths by region; recursive calls count once in inclusive time."""
    tree = analysis.tree
    facts: dict[int, _Facts] = {}
    for path in range(len(tree)):
        number = int(tree.region[path])
        region = tree.regions[number]
        if region.kind in (RegionKind.MPI, RegionKind.PYTHON):
            continue
        own = facts.setdefault(number, _Facts(region))
        own.share = max(own.share, share[path])
        own.visits += visits[path]
        own.exclusive += 0.0 if math.isnan(exclusive[path]) else exclusive[path]
        if number not in [int(tree.region[node]) for node in tree.ancestry(path)[:-1]]:
            own.inclusive += inclusive[path]
        own.overhead = own.visits * cost_per_visit
    return facts


def _decide(
    facts: Mapping[int, _Facts], threshold: float, most_overhead: float
) -> tuple[set[int], dict[tuple[str, int], str]]:
    """Return the regions that are worth measuring for themselves, and the reasons found so far."""
    large: set[int] = set()
    reasons: dict[tuple[str, int], str] = {}
    for number, own in facts.items():
        name = f"{100 * own.share:.3g} % of the program"
        costly = own.overhead > most_overhead * own.inclusive
        if "main" in (own.region.name, own.region.display):
            large.add(number)
            reasons[("kept", number)] = "main is always kept"
        elif own.share < threshold:
            reasons[("dropped", number)] = f"{name}, less than {100 * threshold:g} %"
        elif costly:
            part = own.overhead / own.inclusive if own.inclusive > 0 else math.inf
            reasons[("dropped", number)] = f"{name}, but measuring it takes {100 * part:.3g} % of its time"
        else:
            large.add(number)
            reasons[("kept", number)] = name
    return large, reasons


def _largest_first(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
    return tuple(sorted(choices, key=lambda choice: (-choice.share, choice.region.name)))
