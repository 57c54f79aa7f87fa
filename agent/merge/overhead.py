# SPDX-License-Identifier: Apache-2.0
"""Compute the overhead of a run, and find the call paths whose time is mostly overhead (docs/design/overhead.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from quipu.modeling.experiment import CallTree, FloatArray
from quipu.modeling.limits import whole_number

from ..archive.run import RunArchive
from ..profile.overhead import OVERHEAD, EventCosts, are_mpi, event_costs
from ..profile.reader import ProcessProfile

DOMINATED = 0.2
"""Overhead dominates a call path if it takes more than this share of the inclusive time."""
MATTERS = 0.01
"""A call path with less than this share of the time of the program causes no warning."""


def costs_of(profile: ProcessProfile) -> dict[str, float]:
    """Return the overhead of a process, with the keys of `totals`; empty if it did not record the costs of events.

    An event is an entry into and exit from a region, a visit of a function without hooks, or an addition to a counter.
    """
    costs = event_costs(profile.attributes)
    if costs is None or OVERHEAD.name not in profile.values:
        return {}
    pairs = profile.pairs
    of_mpi = float(pairs[are_mpi(profile.regions, profile.region)].sum())
    time = float(np.nansum(profile.values["time"][profile.region != 0])) if "time" in profile.values else 0.0
    seconds = float(profile.values[OVERHEAD.name].sum())
    setup = profile.setup_seconds
    return _of_process(profile.attributes, costs, float(pairs.sum()), of_mpi, seconds, time, setup)


def costs_of_events(
    attributes: Mapping[str, str],
    pairs: int,
    of_mpi: int,
    time: float,
    events: tuple[int, int],
    setup: float = 0.0,
) -> dict[str, float]:
    """Return the overhead of a process like `costs_of`, from sums over all its call paths.

    - attributes: of the profile of the process.
    - pairs: number of enter and exit pairs, including `of_mpi` pairs of MPI functions.
    - time: measured seconds, without the time outside of all regions.
    - events: numbers of the other two elements of `EVENTS`: visits of functions without hooks, additions to counters.
    - setup: `ProcessProfile.setup_seconds`.
    """
    costs = event_costs(attributes)
    if costs is None:
        return {}
    seconds = (pairs - of_mpi) * costs.pair + of_mpi * costs.mpi + events[0] * costs.quiet + events[1] * costs.counter
    return _of_process(attributes, costs, pairs, of_mpi, seconds, 0.0 if math.isnan(time) else time, setup)


def _of_process(
    attributes: Mapping[str, str],
    costs: EventCosts,
    visits: float,
    of_mpi: float,
    seconds: float,
    time: float,
    setup: float,
) -> dict[str, float]:
    hooks, calls = (visits - of_mpi) * costs.pair, of_mpi * costs.mpi
    return {
        "visits": float(visits),
        "mpi_visits": float(of_mpi),
        "hooks": hooks,
        "mpi": calls,
        "counters": max(0.0, seconds - hooks - calls),
        "probes": _seconds(attributes.get("mpi_wait_probe_seconds", "0")),
        "probed": float(whole_number(attributes.get("mpi_wait_probes", "0"), 15) or 0),
        "collectives": float(whole_number(attributes.get("mpi_wait_collectives", "0"), 15) or 0),
        "total": 0.0,
        "time": time,
        "setup": setup,
        "pair": costs.pair,
        "outside": costs.pair - costs.inside,
        "untimed": float(whole_number(attributes.get("untimed_paths", "0"), 9) or 0),
        "untimed_first": _seconds(attributes.get("untimed_first_seconds", "inf"), math.inf),
        "untimed_last": _seconds(attributes.get("untimed_last_seconds", "0")),
    }


def totals(processes: Iterable[Mapping[str, float]], nodes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the overhead of a run for run.json; empty if no process recorded its overhead.

    processes: `costs_of` for each process. nodes: records of the node agents. A pair is an entry into and the exit from
    a region. A quiet function has no hooks, but counts its effort. A probe is a barrier that Quipu adds before a
    collective operation, to separate waiting from transfer.

    - visits, mpi_visits: numbers of pairs of all regions, and of MPI functions.
    - hooks, mpi, counters, probes: overhead in seconds, summed over processes and threads: of the pairs of functions
      and MPI functions, of counters and quiet functions, and of probes without the waiting in them. total: their sum.
    - collectives, probed: number of calls of collective operations that could have a probe, and that had a probe.
    - time: measured seconds, including this overhead, summed over processes and threads.
    - pair, outside: seconds of one pair, and the part of it that the time of the caller contains; means over processes.
    - untimed: number of call paths whose time belongs to their callers, because they were entered too often.
      untimed_first, untimed_last: seconds from the start of the process until the first and the last of them became
      untimed.
    - setup: processor seconds to start and to end the measurement and to register regions, summed over the processes.
      total does not contain them, because most of them are outside of the measured time.
    - agents: processor seconds of the node agents.
    """
    known = [costs for costs in processes if costs]
    if not known:
        return {}
    apart = ("pair", "outside", "untimed_first", "untimed_last")
    sums = {name: sum(costs[name] for costs in known) for name in known[0] if name not in apart}
    sums["total"] = sums["hooks"] + sums["mpi"] + sums["counters"] + sums["probes"]
    agents = [node.get("agent_seconds") for node in nodes]
    seconds = sum(float(value) for value in agents if isinstance(value, int | float) and math.isfinite(value))
    means = {name: float(np.mean([costs[name] for costs in known])) for name in ("pair", "outside")}
    first = min(costs["untimed_first"] for costs in known)
    span = {"untimed_first": first, "untimed_last": max(costs["untimed_last"] for costs in known)}
    return {**sums, **means, **(span if sums["untimed"] and first < math.inf else {}), "agents": float(seconds)}


def _seconds(text: str, otherwise: float = 0.0) -> float:
    try:
        value = float(text)
    except ValueError:
        return otherwise
    return value if 0 <= value < 1e12 else otherwise


def overhead_share(costs: Mapping[str, float]) -> float:
    """Return the overhead as a share of the measured time; 0 if it is unknown. costs: the result of `totals`."""
    return costs.get("total", 0.0) / costs["time"] if costs.get("time", 0.0) > 0 else 0.0


@dataclass(frozen=True)
class Dominated:
    """Call paths that overhead dominates for the same reason.

    - path: the call path with the largest overhead. share: the overhead as a share of its inclusive time, 0 to 1.
    - culprit: the call path (`path` or a call path below it) with the largest exclusive overhead.
    - hook: whether the hooks of the culprit cause at least half of its overhead; otherwise counters and functions
      without hooks cause it.
    - paths: number of dominated call paths with this culprit.
    """

    path: int
    share: float
    culprit: int
    hook: bool
    paths: int


def dominated(
    tree: CallTree, time: FloatArray, overhead: FloatArray, visits: FloatArray, costs: Mapping[str, float]
) -> list[Dominated]:
    """Return the call paths with an overhead above `DOMINATED` and a time of at least `MATTERS` of the program.

    time, overhead, visits: exclusive values per call path, summed over ranks, shape (call paths,). costs: the result of
    `totals`. The overhead of a call path contains only the part of its own enter and exit hooks that its time contains.
    Call paths whose culprits are the same region are combined. The largest overhead comes first.
    """
    time, overhead = np.nan_to_num(time), np.nan_to_num(overhead)
    inclusive = tree.inclusive(time)
    inside = tree.inclusive(overhead) - visits * costs.get("outside", 0.0)
    share = np.divide(inside, inclusive, out=np.zeros_like(inside), where=inclusive > 0)
    concerned = (share > DOMINATED) & (inclusive >= MATTERS * float(tree.program_total(time)))
    worst = np.arange(len(tree))
    for path in range(len(tree) - 1, 0, -1):  # parents come before children
        above = int(tree.parent[path])
        if above >= 0 and overhead[worst[path]] > overhead[worst[above]]:
            worst[above] = worst[path]
    groups: dict[int, list[int]] = {}
    for path in np.flatnonzero(concerned).tolist():
        groups.setdefault(int(tree.region[worst[path]]), []).append(path)
    result = []
    for paths in groups.values():
        path = max(paths, key=lambda number: (inside[number], -number))
        culprit = int(worst[path])
        hook = bool(visits[culprit] * costs.get("pair", 0.0) * 2 >= overhead[culprit])
        result.append(Dominated(path, min(1.0, float(share[path])), culprit, hook, len(paths)))
    return sorted(result, key=lambda entry: -inside[entry.path])


def dominated_in(archive: RunArchive) -> list[Dominated]:
    """Return the result of `dominated` for a run; empty if the run did not record the overhead of call paths.

    The result is also empty if time = effort × rate was simulated, because such times contain no overhead.
    """
    found = archive.statistics
    if archive.metadata.simulated_by_effort or not {"time", OVERHEAD.name, "visits"} <= found.keys():
        return []
    own = "thread_time" if "thread_time" in found else "time"
    time, overhead, visits = (found[name].sum for name in (own, OVERHEAD.name, "visits"))
    return dominated(archive.tree, time, overhead, visits, archive.metadata.overhead)
