# SPDX-License-Identifier: Apache-2.0
"""Estimate the overhead of measuring for each call path of a process (docs/design/overhead.md).

At its start, each process measures the seconds of one event of each kind, such as entering and leaving a region
(agent/runtime/overhead.cpp), and records them in its profile. The overhead is these seconds times the number of events.
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
# Numbers of events of each node. "pairs": entering and leaving by hooks, which are the calls of the runtime at the
# begin and end of a region. Events of regions that a filter excludes count for their callers, like their effort.
EVENTS = (
    Metric("pairs", "1", "effort"),
    Metric("visits without a hook", "1", "effort"),
    Metric("additions of counting", "1", "effort"),
)


@dataclass(frozen=True)
class EventCosts:
    """Seconds per event in one process.

    - pair: entering and leaving a region. inside: the part of `pair` that is contained in the time of the region; the
      rest is contained in the time of its caller.
    - mpi: entering and leaving an MPI operation, with the additional clock reading that separates waiting.
    - quiet: a visit of a region without hooks. counter: one addition to a counter.
    """

    pair: float
    inside: float
    mpi: float
    quiet: float
    counter: float


def event_costs(attributes: Mapping[str, str]) -> EventCosts | None:
    """Return the seconds per event that a process measured; None if they are missing, negative or above 1 s.

    attributes: the attributes of its profile.
    """
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

    read: the nodes as in the file, without the effort of counters. additions: weights that give the number of additions
    to counters. unhooked: ids of the regions without hooks.

    If the file has no visits of a region without hooks, the visits that follow from its counters are used. Visits of
    inlined functions take no time. Entering and leaving a node without time counts as UNTIMED_PAIR visits without
    hooks.
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
    """Return the overhead of each node in seconds, shape (nodes,).

    is_mpi: whether the node is an MPI operation, shape (nodes,). events: numbers of `EVENTS`, shape (nodes, 3).
    """
    each = np.where(is_mpi, costs.mpi, costs.pair)
    seconds = events[:, 0] * each + events[:, 1] * costs.quiet + events[:, 2] * costs.counter
    return np.asarray(seconds, dtype=np.float64)


def are_mpi(regions: Mapping[int, Region], region: IntArray) -> NDArray[np.bool_]:
    """Return whether each node is an MPI operation, shape (nodes,). region: key in `regions` of each node."""
    mpi = np.array([number for number, entry in regions.items() if entry.kind is RegionKind.MPI], dtype=np.int64)
    return np.isin(region, mpi)
