# SPDX-License-Identifier: Apache-2.0
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
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import numpy as np

from ..archive.metadata import RunMetadata
from ..profile.reader import Clock, ProcessProfile, ProfileState

_UNKNOWN = "it is not known when it ended: time after its latest event is missing"
_WENT_ON = "it went on after the end of the launch: its counts contain that, its time was reduced to the time before"
_CLOCKS_DIFFER = 0.01  # of a time: counted in ticks, and by the system
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


def launch_end(metadata: RunMetadata) -> LaunchEnd:
    """Return when the launch ended, as far as that is known."""
    began, host = metadata.launcher.get("began_ns"), metadata.launcher.get("host")
    simulated = metadata.launcher.get("family") == "smpi"  # time of its own, which may be longer
    if not simulated and metadata.seconds is not None and _is_moment(began) and isinstance(host, str):
        return LaunchEnd(_epoch_of_end(metadata), host, began + int(metadata.seconds * 1e9))
    return LaunchEnd(_epoch_of_end(metadata))


def _epoch_of_end(metadata: RunMetadata) -> int | None:
    if metadata.seconds is None:
        return None
    try:
        began = datetime.datetime.fromisoformat(metadata.started)
        end = int((began.timestamp() + metadata.seconds) * 1e9)
    except (ValueError, OverflowError, OSError):
        return None
    return end if _is_moment(end) else None


@dataclass(frozen=True)
class LaunchEnd:
    """When a launch ended, as far as that is known: ns since 1970 (epoch), and of CLOCK_MONOTONIC of its host (at)."""

    epoch: int | None = None
    host: str = ""
    at: int | None = None


NOT_KNOWN = LaunchEnd()


@dataclass(frozen=True)
class End:
    """How a process ended, in ns of CLOCK_MONOTONIC of its host.

    killed: it did not end by itself. at: when it ended then; None: not known. launch: when the launch ended, before
    which all that counts has happened; None: not known.
    """

    killed: bool = False
    at: int | None = None
    launch: int | None = None


def ends_of(
    profiles: Sequence[ProcessProfile], hosts: Mapping[str, HostEnds], launch: LaunchEnd = NOT_KNOWN
) -> tuple[End, ...]:
    """Return for each profile how its process ended. Call paths are not looked at.

    A program that calls exec leaves a profile for each of its programs under one pid: it ended when the next began. No
    process lasts longer than the launch, which may end before its background processes.
    """
    begins: dict[tuple[str, int], list[ProcessProfile]] = defaultdict(list)
    for profile in sorted(profiles, key=lambda profile: profile.started_epoch_ns):
        begins[profile.attributes.get("host", ""), profile.pid].append(profile)
    result: list[End] = []
    for profile in profiles:
        host = profile.attributes.get("host", "")
        limit = launch.at if host == launch.host else None
        later = [other for other in begins[host, profile.pid] if other.started_epoch_ns > profile.started_epoch_ns]
        if profile.state is ProfileState.ENDED:
            result.append(End(launch=limit))
        else:
            at = later[0].start_ns if later else _end_of(profile, hosts.get(host), launch)
            result.append(End(True, at if at is None or limit is None else min(at, limit), limit))
    return tuple(result)


def until_the_end(profile: ProcessProfile, end: End | None) -> ProcessProfile:
    """Return the profile; that of a process that was killed has its time up to the end.

    Time of a process that went on after the launch is that up to the end of the launch.
    """
    if end is None:
        return profile
    profile = _within(profile, end.launch)
    if not end.killed or not _needs_end(profile):
        return profile
    if end.at is None:
        return replace(profile, problems=(*profile.problems, _UNKNOWN))
    return _until(profile, end.at)


def _within(profile: ProcessProfile, launch_end_ns: int | None) -> ProcessProfile:
    """Return the profile with times reduced in proportion where a thread counted longer than the launch lasted."""
    if launch_end_ns is None or profile.clock is Clock.NONE or "time" not in profile.values or not profile.parent.size:
        return profile
    lived = max(0.0, (launch_end_ns - profile.start_ns) * 1e-9)
    time = profile.values["time"].astype(np.float64)
    counted = np.bincount(profile.location, weights=np.nan_to_num(time))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(counted > lived * (1 + _CLOCKS_DIFFER), lived / counted, 1.0)
    if (factor == 1).all():
        return profile
    times = {
        metric.name: profile.values[metric.name] * factor[profile.location]
        for metric in profile.metrics
        if metric.unit == "s" and not metric.is_effort
    }
    return replace(profile, values={**profile.values, **times}, problems=(*profile.problems, _WENT_ON))


def _needs_end(profile: ProcessProfile) -> bool:
    """Whether threads of the process were active, and kept time, when it ended."""
    if profile.state is ProfileState.ENDED or profile.clock is Clock.NONE or "time" not in profile.values:
        return False
    return bool(np.isfinite(profile.seconds_per_tick)) and bool((profile.threads.node >= 0).any())


def _end_of(profile: ProcessProfile, host: HostEnds | None, launch: LaunchEnd) -> int | None:
    if host is not None and profile.pid in host.ended:
        return host.ended[profile.pid]
    if host is not None and host.alive is not None:
        return host.alive
    return None if launch.epoch is None else profile.start_ns + launch.epoch - profile.started_epoch_ns


def _until(profile: ProcessProfile, end_ns: int) -> ProcessProfile:
    """Return the profile with the time from the latest event of each thread to `end_ns` on its active call path."""
    lived = (end_ns - profile.start_ns) * 1e-9
    time = profile.values["time"].astype(np.float64)
    for node, last in zip(profile.threads.node.tolist(), profile.threads.last.tolist(), strict=True):
        if node >= 0:
            counted = max(0, last - profile.start_ticks) * profile.seconds_per_tick
            time[node] += max(0.0, lived - counted)
    return replace(profile, values={**profile.values, "time": time})
