# SPDX-License-Identifier: Apache-2.0
"""What measuring cost at each call path of a process: an estimate (docs/design/overhead.md).

Each process measures at its start what an event costs on its machine (agent/runtime/overhead.cpp) and says so in its
profile; here that is multiplied by how many events there were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import FloatArray, IntArray, Metric, Region, RegionKind

from ..layout import LAYOUT
from .effort import Counters, Weights, sums_of
from .nodes import NodeArrays

OVERHEAD = Metric("overhead", "s", "cost", "sum", "time that measuring took, estimated from numbers of events")
# Events of nodes in addition to their visits. The events of left-out regions belong to the callers, as effort does.
EVENTS = (
    Metric("pairs", "1", "effort"),
    Metric("visits without a hook", "1", "effort"),
    Metric("additions of counting", "1", "effort"),
)


@dataclass(frozen=True)
class EventCosts:
    """Seconds that events take in one process.

    pair: a region is entered and left; inside: the part of it that is in the region's own time, the rest is in its
    caller's. mpi: a pair, and the clock readings that separate waiting. quiet: a visit without a hook. counter: one
    addition of counting.
    """

    pair: float
    inside: float
    mpi: float
    quiet: float
    counter: float


def event_costs(attributes: Mapping[str, str]) -> EventCosts | None:
    """Return the costs of events that a process measured at its start; None if they are missing or implausible."""
    found = []
    for name in ("pair_ns", "pair_inside_ns", "quiet_ns", "counter_ns", "clock_ns"):
        try:
            value = float(attributes.get(name, "nan"))
        except ValueError:
            value = math.nan
        if not 0 <= value <= 1e9:
            return None
        found.append(value * 1e-9)
    pair, inside, quiet, counter, clock = found
    waits = attributes.get("mpi_wait", "off") != "off"
    return EventCosts(pair, min(inside, pair), pair + clock * waits, quiet, counter)


def with_events(
    nodes: NodeArrays,
    read: NodeArrays,
    counters: Counters,
    additions: Sequence[Weights],
    unhooked: Set[int],
    metrics: Sequence[Metric],
) -> NodeArrays:
    """Return the nodes with columns more in their counts: `EVENTS`. read: the nodes as they are in the profile.

    additions: how many counting does, by row of weights. unhooked: regions without a hook.

    Where the profile has no visits of a region without a hook, its counters stand for them. Visits of what was inlined
    cost nothing. Entering and leaving an untimed call path counts as a number of visits without a hook.
    """
    names = [metric.name for metric in metrics]
    nothing = np.uint64(0)
    visits = complete = np.zeros(nodes.id.size, dtype=np.uint64)
    if "visits" in names:
        visits, complete = (each.counts[:, names.index("visits")] for each in (read, nodes))
    is_quiet = np.isin(nodes.region, np.fromiter(unhooked, dtype=np.int64, count=len(unhooked)))
    quiet = np.where(is_quiet & (nodes.owner < 0), np.where(visits > 0, visits, complete), nothing)
    quiet = np.where(is_quiet | ~nodes.untimed, quiet, visits * np.uint64(LAYOUT.numbers["UNTIMED_PAIR"]))
    added = np.maximum(sums_of(additions, read, counters, visits).view(np.int64), 0).astype(np.uint64)
    events = np.stack((np.where(is_quiet | nodes.untimed, nothing, visits), quiet, added), axis=1)
    return replace(nodes, counts=np.concatenate((nodes.counts, events), axis=1))


def seconds_of_nodes(
    costs: EventCosts,
    is_mpi: NDArray[np.bool_],
    events: NDArray[np.uint64] | NDArray[np.int64],
) -> FloatArray:
    """Return what measuring took at each node, seconds. is_mpi: of MPI functions; events: (nodes, 3), `EVENTS`."""
    each = np.where(is_mpi, costs.mpi, costs.pair)
    seconds = events[:, 0] * each + events[:, 1] * costs.quiet + events[:, 2] * costs.counter
    return np.asarray(seconds, dtype=np.float64)


def are_mpi(regions: Mapping[int, Region], region: IntArray) -> NDArray[np.bool_]:
    """Return which nodes are MPI functions. region: of each node, a key of `regions`."""
    mpi = np.array([number for number, entry in regions.items() if entry.kind is RegionKind.MPI], dtype=np.int64)
    return np.isin(region, mpi)
