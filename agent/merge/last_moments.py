"""Time of killed processes from their latest event to their end, for the call path that was active.

Counters of a profile are up to date at each event (a region is entered or left); what passes after the latest one is
in no counter until the next. A process that is killed in between left the moment of that event and the active call
path in its file; when it ended is known from, in this order:

1. the node agent, which the kernel notifies at once (exact);
2. the agent's latest look, if the agent was killed, too (at most one interval early, by default 0.2 s);
3. the end of the launch, if there was no agent or it came too late (the rank may have ended earlier).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import numpy as np

from ..archive.metadata import RunMetadata
from ..profile.reader import Clock, ProcessProfile, ProfileState

_UNKNOWN = "it is not known when it ended: time after its latest event is missing"
_LATEST = 1 << 63


@dataclass(frozen=True)
class HostEnds:
    """What the agent of one host saw. All times are CLOCK_MONOTONIC of that host in ns.

    ended: by pid when processes ended. alive: when processes that are not in `ended` were still there (None: the
    agent ended by itself, and does not know).
    """

    ended: Mapping[int, int] = field(default_factory=dict)
    alive: int | None = None


def ends_by_host(nodes: Sequence[Mapping[str, Any]], alive: Mapping[str, int]) -> dict[str, HostEnds]:
    """Return what all agents saw. nodes: contents of node-<host>.json; alive: of alive-<host>, by host."""
    result = {host: HostEnds(alive=moment) for host, moment in alive.items()}
    for node in nodes:
        host, processes = node.get("host"), node.get("processes")
        if not isinstance(host, str) or not isinstance(processes, list):
            continue
        pairs = [(p.get("pid"), p.get("ended_ns")) for p in processes if isinstance(p, dict)]
        ended = {pid: at for pid, at in pairs if _is_moment(pid) and _is_moment(at)}
        still = any(_is_moment(pid) and at is None for pid, at in pairs)
        known = still or node.get("ended") is not True
        result[host] = HostEnds(ended, alive.get(host) if known else None)
    return result


def _is_moment(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LATEST


def launch_end(metadata: RunMetadata) -> int | None:
    """Return when the launch ended, in ns since 1970; None if that is not known."""
    if metadata.seconds is None:
        return None
    try:
        began = datetime.datetime.fromisoformat(metadata.started)
        end = int((began.timestamp() + metadata.seconds) * 1e9)
    except (ValueError, OverflowError, OSError):
        return None
    return end if _is_moment(end) else None


@dataclass(frozen=True)
class End:
    """A process did not end by itself. at: when it ended, CLOCK_MONOTONIC of its host in ns; None: not known."""

    at: int | None


def ends_of(
    profiles: Sequence[ProcessProfile], hosts: Mapping[str, HostEnds], launch_end_ns: int | None
) -> tuple[End | None, ...]:
    """Return for each profile how its process ended, None if by itself. Call paths are not looked at.

    A program that calls exec leaves a profile for each of its programs under one pid: only the last was killed.
    """
    latest: dict[tuple[str, int], int] = {}
    for profile in profiles:
        key = (profile.attributes.get("host", ""), profile.pid)
        latest[key] = max(latest.get(key, 0), profile.started_epoch_ns)
    result: list[End | None] = []
    for profile in profiles:
        host = profile.attributes.get("host", "")
        killed = profile.state is not ProfileState.ENDED and profile.started_epoch_ns == latest[host, profile.pid]
        result.append(End(_end_of(profile, hosts.get(host), launch_end_ns)) if killed else None)
    return tuple(result)


def until_the_end(profile: ProcessProfile, end: End | None) -> ProcessProfile:
    """Return the profile; that of a process that was killed has its time up to the end."""
    if end is None or not _needs_end(profile):
        return profile
    if end.at is None:
        return replace(profile, problems=(*profile.problems, _UNKNOWN))
    return _until(profile, end.at)


def _needs_end(profile: ProcessProfile) -> bool:
    """Whether threads of the process were active, and kept time, when it ended."""
    if profile.state is ProfileState.ENDED or profile.clock is Clock.NONE or "time" not in profile.values:
        return False
    return bool(np.isfinite(profile.seconds_per_tick)) and bool((profile.threads.node >= 0).any())


def _end_of(profile: ProcessProfile, host: HostEnds | None, launch_end_ns: int | None) -> int | None:
    if host is not None and profile.pid in host.ended:
        return host.ended[profile.pid]
    if host is not None and host.alive is not None:
        return host.alive
    if launch_end_ns is None:
        return None
    return profile.start_ns + launch_end_ns - profile.started_epoch_ns


def _until(profile: ProcessProfile, end_ns: int) -> ProcessProfile:
    """Return the profile with the time from the latest event of each thread to `end_ns` on its active call path."""
    lived = (end_ns - profile.start_ns) * 1e-9
    time = profile.values["time"].astype(np.float64)
    for node, last in zip(profile.threads.node.tolist(), profile.threads.last.tolist(), strict=True):
        if node >= 0:
            counted = max(0, last - profile.start_ticks) * profile.seconds_per_tick
            time[node] += max(0.0, lived - counted)
    return replace(profile, values={**profile.values, "time": time})
