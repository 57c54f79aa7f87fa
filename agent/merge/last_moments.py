# SPDX-License-Identifier: Apache-2.0
"""Add the time from the latest event of a killed process to its end, to the call path that was active.

An event is the moment at which the program enters or leaves a region. The runtime updates a profile at each event, so
no counter contains the time after the latest event. The profile of a killed process contains the time of its latest
event and the active call path. The time of its end comes from the first available source:

1. The node agent, which the kernel notifies of the end of a process (exact).
2. The latest sample of the node agent, if the agent was killed, too (at most one interval too early, by default 0.2 s).
3. The end of the launch, if there was no node agent (the process may have ended earlier).
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import numpy as np
from quipu.modeling.experiment import FloatArray

from ..archive.metadata import RunMetadata
from ..profile.reader import Clock, ProcessProfile, ProfileState

_UNKNOWN = "the time of its end is unknown, so the time after its latest event is missing"
_CLOCKS_DISAGREE = "its clock differs from the clock of the launch: its times were reduced to the length of the run"
_WENT_ON = (
    "it measured longer than the launch took: it continued after the launch, or its clock jumped; its "
    "times were reduced to the time before the end"
)
_CLOCKS_DIFFER = 0.01  # largest relative difference between a duration in ticks and by the system clock
_MOMENT = 0.1  # largest number of seconds between the readings of two clocks for the same moment
_LATEST = 1 << 63


@dataclass(frozen=True)
class HostEnds:
    """The ends of processes that the node agent of one host recorded. Times are CLOCK_MONOTONIC of this host (ns).

    ended: process id → time of its end. alive: the latest time at which all other processes were alive; None if the
    agent ended regularly after all processes.
    """

    ended: Mapping[int, int] = field(default_factory=dict)
    alive: int | None = None


def ends_by_host(nodes: Sequence[Mapping[str, Any]], alive: Mapping[str, int]) -> dict[str, HostEnds]:
    """Return the ends that the node agent of each host recorded, by host.

    nodes: the contents of the files node-<host>.json. alive: the times in the files alive-<host>, by host.
    """
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
    """Return the end of the launch, with the times that are known."""
    began, host = metadata.launcher.get("began_ns"), metadata.launcher.get("host")
    simulated = metadata.launcher.get("family") == "smpi"  # simulated time may be longer than the launch
    seconds = None if simulated or metadata.seconds is None else max(0.0, metadata.seconds)
    if seconds is not None and _is_moment(began) and isinstance(host, str):
        return LaunchEnd(_epoch_of_end(metadata), host, began + int(seconds * 1e9), seconds)
    return LaunchEnd(_epoch_of_end(metadata), seconds=seconds)


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
    """The end of a launch; None stands for unknown.

    epoch: time of the end, ns since 1970. host: the host of the launch. at: time of the end, CLOCK_MONOTONIC of this
    host in ns. seconds: duration of the launch; None also for simulated ranks, whose time may be longer.
    """

    epoch: int | None = None
    host: str = ""
    at: int | None = None
    seconds: float | None = None

    def is_exceeded_by(self, seconds: float) -> bool:
        """Return whether a duration (seconds) is longer than a process of the launch can have run."""
        return self.seconds is not None and seconds > self.seconds * (1 + _CLOCKS_DIFFER) + _MOMENT


NOT_KNOWN = LaunchEnd()


@dataclass(frozen=True)
class End:
    """The end of a process. Times are CLOCK_MONOTONIC of its host (ns); None: unknown.

    killed: whether the process was killed. at: time of the end of a killed process. launch: time of the end of the
    launch; time after it does not count. longest: duration of the launch (seconds).
    """

    killed: bool = False
    at: int | None = None
    launch: int | None = None
    longest: float | None = None


def ends_of(
    profiles: Sequence[ProcessProfile], hosts: Mapping[str, HostEnds], launch: LaunchEnd = NOT_KNOWN
) -> tuple[End, ...]:
    """Return the end of the process of each profile. The call paths of the profiles are not used.

    If a process calls exec, each of its programs has a profile with the same process id. A program then ends when the
    next program begins. The time after the end of the launch does not count, although background processes may run
    longer.
    """
    begins: dict[tuple[str, int], list[ProcessProfile]] = defaultdict(list)
    for profile in sorted(profiles, key=lambda profile: profile.stage):
        begins[profile.attributes.get("host", ""), profile.pid].append(profile)
    result: list[End] = []
    for profile in profiles:
        host = profile.attributes.get("host", "")
        limit = launch.at if host == launch.host else None
        later = [other for other in begins[host, profile.pid] if other.stage > profile.stage]
        if later and limit is not None and profile.start_ns <= later[0].start_ns:
            limit = min(limit, later[0].start_ns)  # from then on, the process id belongs to the next program
        if profile.state is ProfileState.ENDED:
            result.append(End(launch=limit, longest=launch.seconds))
        else:
            at = later[0].start_ns if later else _end_of(profile, hosts.get(host), launch)
            at = at if at is None or limit is None else min(at, limit)
            result.append(End(True, at, limit, launch.seconds))
    return tuple(result)


def until_the_end(profile: ProcessProfile, end: End | None) -> ProcessProfile:
    """Return the profile with times that end at the end of its process.

    For a killed process, the time between its latest event and its end is added. The times of a process that continued
    after the launch are reduced to the time before the end of the launch. end: None: return the profile unchanged. The
    problems of the result contain a text if the end is unknown, or if times were reduced.
    """
    if end is None:
        return profile
    profile = _within(profile, end)
    if not end.killed or not _needs_end(profile):
        return profile
    lived = _lifetime(profile, end.at, end.longest)
    if lived is None:
        return replace(profile, problems=(*profile.problems, _UNKNOWN))
    return _until(profile, lived)


def _lifetime(profile: ProcessProfile, end_ns: int | None, longest: float | None) -> float | None:
    """Return the seconds from the start of a process to the time `end_ns` (CLOCK_MONOTONIC).

    Returns None if `end_ns` is None, or if the result contradicts the duration `longest` of the launch in seconds.
    """
    if end_ns is None:
        return None
    lived = (end_ns - profile.start_ns) * 1e-9
    if longest is None:
        return max(0.0, lived)
    return lived if -_MOMENT <= lived <= longest * (1 + _CLOCKS_DIFFER) + _MOMENT else None


def _within(profile: ProcessProfile, end: End) -> ProcessProfile:
    """Return the profile with reduced times for threads whose time is longer than their process can have run."""
    if profile.clock is Clock.NONE or "time" not in profile.values or not profile.parent.size:
        return profile
    lived, problem = _lifetime(profile, end.launch, end.longest), _WENT_ON
    if lived is None:
        lived, problem = end.longest, _CLOCKS_DISAGREE
    if lived is None:
        return profile
    lived = max(0.0, lived)
    time = profile.values["time"].astype(np.float64)
    share = np.ones(time.size)
    for location in np.unique(profile.location).tolist():
        nodes = np.flatnonzero(profile.location == location)
        share[nodes] = _share_within(np.nan_to_num(time[nodes]), lived)
    if (share == 1).all():
        return profile
    times = {
        metric.name: profile.values[metric.name] * share
        for metric in profile.metrics
        if metric.unit == "s" and not metric.is_effort
    }
    return replace(profile, values={**profile.values, **times}, problems=(*profile.problems, problem))


def _share_within(time: FloatArray, lived: float) -> FloatArray:
    """Return a factor for the time of each call path of a thread, so that the sum of the times is at most `lived`.

    time: seconds of each call path; lived: seconds. Only the longest times are reduced, all to the same time, because a
    jump of the clock makes one time too long.
    """
    if time.sum() <= lived * (1 + _CLOCKS_DIFFER):
        return np.ones(time.size)
    ascending = np.sort(time)
    before = np.concatenate([[0.0], np.cumsum(ascending)[:-1]])
    levels = (lived - before) / np.arange(time.size, 0, -1)  # for each index: the common time of all longer times
    level = max(0.0, float(levels[np.argmax(levels <= ascending)]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(time > level, level / time, 1.0)


def _needs_end(profile: ProcessProfile) -> bool:
    """Return whether the process was killed while threads were active and measured time."""
    if profile.state is ProfileState.ENDED or profile.clock is Clock.NONE or "time" not in profile.values:
        return False
    return bool(np.isfinite(profile.seconds_per_tick)) and bool((profile.threads.node >= 0).any())


def _end_of(profile: ProcessProfile, host: HostEnds | None, launch: LaunchEnd) -> int | None:
    if host is not None and profile.pid in host.ended:
        return host.ended[profile.pid]
    if host is not None and host.alive is not None:
        return host.alive
    return None if launch.epoch is None else profile.start_ns + launch.epoch - profile.started_epoch_ns


def _until(profile: ProcessProfile, lived: float) -> ProcessProfile:
    """Return the profile with, for each thread, the time from its latest event to the end of the process.

    This time is added to the active call path of the thread. lived: duration of the process in seconds, which limits
    the time of each thread.
    """
    time = profile.values["time"].astype(np.float64)
    threads = np.bincount(profile.location, weights=np.nan_to_num(time))
    for node, last in zip(profile.threads.node.tolist(), profile.threads.last.tolist(), strict=True):
        if node >= 0:
            counted = max(0, last - profile.start_ticks) * profile.seconds_per_tick
            time[node] += max(0.0, lived - max(counted, threads[profile.location[node]]))
    return replace(profile, values={**profile.values, "time": time})
