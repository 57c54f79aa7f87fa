# SPDX-License-Identifier: Apache-2.0
"""Estimate of the overhead of each call path of a process (docs/design/overhead.md).

Each process measures the cost of an event at its start (agent/runtime/overhead.cpp) and records it in its profile. The
overhead is this cost times the number of events.
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
# Events of nodes in addition to their visits. Events and effort of left-out regions belong to the callers.
EVENTS = (
    Metric("pairs", "1", "effort"),
    Metric("visits without a hook", "1", "effort"),
    Metric("additions of counting", "1", "effort"),
)


@dataclass(frozen=True)
class EventCosts:
    """Seconds per event in one process.

    - pair: entering and leaving a region. inside: its part in the time of the region; the rest is in the caller.
    - mpi: a pair with the additional clock readings that separate waiting.
    - quiet: a visit without a hook. counter: one addition to a counter.
    """

    pair: float
    inside: float
    mpi: float
    quiet: float
    counter: float


def event_costs(attributes: Mapping[str, str]) -> EventCosts | None:
    """Return the measured costs of events of a process; None if they are missing or implausible."""
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
    """Return the nodes with `EVENTS` as additional columns of their counts.

    read: the nodes as in the profile. additions: number of additions to counters, by row of weights. unhooked: regions
    without a hook.

    If the profile has no visits of a region without a hook, its counters are used instead. Visits of inlined functions
    cost nothing. Entering and leaving an untimed call path counts as several visits without a hook.
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
    """Return the overhead of each node (seconds).

    is_mpi: whether the node is an MPI function. events: `EVENTS`, shape (nodes, 3).
    """
    each = np.where(is_mpi, costs.mpi, costs.pair)
    seconds = events[:, 0] * each + events[:, 1] * costs.quiet + events[:, 2] * costs.counter
    return np.asarray(seconds, dtype=np.float64)


def are_mpi(regions: Mapping[int, Region], region: IntArray) -> NDArray[np.bool_]:
    """Return which nodes are MPI functions. region: the key in `regions` of each node."""
    mpi = np.array([number for number, entry in regions.items() if entry.kind is RegionKind.MPI], dtype=np.int64)
    return np.isin(region, mpi)
