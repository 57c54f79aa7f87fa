# SPDX-License-Identifier: Apache-2.0
"""The time of killed processes from their latest event to their end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profile_writer import Node, Profile, Thread, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.launch.raw_folder import read_raw_folder
from quipu.agent.merge.last_moments import HostEnds, LaunchEnd, ends_by_host, ends_of, launch_end, until_the_end
from quipu.agent.merge.run import combine
from quipu.agent.profile.reader import ProcessProfile, read_profile

SECOND = 1_000_000_000
START = 50 * SECOND  # CLOCK_MONOTONIC when the process began
EPOCH = 1_700_000_000 * SECOND


def with_time_to_the_end(
    profiles: list[ProcessProfile], hosts: dict[str, HostEnds], launch_end_ns: int | None
) -> list[ProcessProfile]:
    ends = ends_of(profiles, hosts, LaunchEnd(launch_end_ns))
    return [until_the_end(profile, end) for profile, end in zip(profiles, ends, strict=True)]


def killed(rank: int = 0, **changes: Any) -> Profile:
    """Return the profile of a process that began at START and was in solve (node 3) since 4 s, until it was killed."""
    threads = [Thread(3, START + 4 * SECOND), Thread(6, START + 5 * SECOND, 1)]
    clock: dict[str, Any] = {"ticks": (START, START + SECOND), "nanoseconds": (START, START + SECOND)}
    return rank_profile(rank, **{"state": 0, "threads": threads, "start_epoch_ns": EPOCH, **clock, **changes})


def seconds(profile: ProcessProfile) -> list[float]:
    return [round(float(value), 3) for value in profile.values["time"]]


def read(tmp_path: Path, profile: Profile) -> ProcessProfile:
    return read_profile(profile.write(tmp_path))


def test_the_active_call_paths_get_the_time_to_the_end(tmp_path: Path) -> None:
    ends = {"n1": HostEnds({100: START + 10 * SECOND})}
    (profile,) = with_time_to_the_end([read(tmp_path, killed())], ends, None)
    assert seconds(profile) == [0, 0, 6, 0, 0, 5, 0]
    assert profile.problems == ()


def test_ticks_are_made_seconds_by_the_calibration(tmp_path: Path) -> None:
    ticks: dict[str, Any] = {
        "clock": 2,
        "ticks": (1000, 3000),
        "threads": [Thread(3, 1000 + 4 * 2000)],
    }  # 2000 ticks are a second
    profile = read(tmp_path, killed(**ticks))
    (profile,) = with_time_to_the_end([profile], {"n1": HostEnds({100: START + 10 * SECOND})}, None)
    assert seconds(profile)[2] == pytest.approx(1 + 6, abs=0.01)  # it had counted 2000 ticks


@pytest.mark.parametrize(
    "changes",
    [{"state": 2}, {"clock": 0}, {"threads": []}, {"clock": 2, "ticks": (5, 5)}, {"threads": [Thread(99, START)]}],
)
def test_nothing_is_added_where_nothing_is_missing_or_no_time_is_kept(tmp_path: Path, changes: dict[str, Any]) -> None:
    before = read(tmp_path, killed(**changes))
    (after,) = with_time_to_the_end([before], {"n1": HostEnds({100: START + 10 * SECOND})}, EPOCH + 10 * SECOND)
    assert after is before


def test_the_latest_look_of_the_agent_counts_if_the_agent_was_killed(tmp_path: Path) -> None:
    ends = {"n1": HostEnds({77: START}, alive=START + 8 * SECOND)}
    (profile,) = with_time_to_the_end([read(tmp_path, killed())], ends, EPOCH + 100 * SECOND)
    assert seconds(profile)[2] == 4


def test_the_end_of_the_launch_counts_without_an_agent(tmp_path: Path) -> None:
    (profile,) = with_time_to_the_end([read(tmp_path, killed())], {"n2": HostEnds()}, EPOCH + 7 * SECOND)
    assert seconds(profile)[2] == 3


def test_an_end_before_the_latest_event_adds_nothing(tmp_path: Path) -> None:
    (profile,) = with_time_to_the_end([read(tmp_path, killed())], {"n1": HostEnds({100: START + SECOND})}, None)
    assert seconds(profile)[2] == 0


def test_an_unknown_end_is_told(tmp_path: Path) -> None:
    (profile,) = with_time_to_the_end([read(tmp_path, killed())], {}, None)
    assert "the time of its end is unknown" in profile.problems[0]


def test_a_program_that_was_replaced_by_exec_ended_when_the_next_began(tmp_path: Path) -> None:
    first = read(tmp_path, killed())
    later = 7 * SECOND
    path = first.path.with_name(first.path.name.replace(".quipu", "-1.quipu"))
    before = first.started_epoch_ns - later  # the time of day was set back in between
    second = replace(first, path=path, started_epoch_ns=before, start_ns=first.start_ns + later)
    assert (first.stage, second.stage) == (0, 1)
    found = with_time_to_the_end([first, second], {"n1": HostEnds({100: START + 10 * SECOND})}, None)
    assert seconds(found[0])[2] == 3  # from 4 s to 7 s


def test_simulated_ranks_do_not_wait_in_real_time(tmp_path: Path) -> None:
    killed(location_attributes={0: {"rank": "0"}, 1: {"rank": "1"}}).write(tmp_path)
    raw = read_raw_folder(tmp_path)
    run = combine(raw, RunMetadata({"p": 2}, started="2023-11-14T22:13:20+00:00", seconds=100.0, exit_code=137))
    assert [profile.attributes["rank"] for profile in raw.profiles] == ["0", "1"]
    assert run.values is not None
    assert run.values.metrics["time"].max() < 0.001


def test_what_agents_wrote_is_not_trusted() -> None:
    strange: list[dict[str, Any]] = [
        {"host": 3, "processes": []},
        {"host": "a", "processes": {}},
        {"host": "b", "processes": [1, {}, {"pid": "1"}, {"pid": 5, "ended_ns": -1}, {"pid": 6, "ended_ns": 1 << 70}]},
        {"host": "c", "ended": True, "processes": [{"pid": 5, "ended_ns": 9}]},
        {"host": "d", "ended": True, "processes": [{"pid": 5, "ended_ns": None}]},
    ]
    found = ends_by_host(strange, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert found["a"] == HostEnds(alive=1)
    assert found["b"] == HostEnds({}, alive=2)
    assert found["c"] == HostEnds({5: 9})  # the agent ended by itself: what it does not know it never saw
    assert found["d"] == HostEnds({}, alive=4)


@pytest.mark.parametrize("started", ["", "yesterday", "9999-12-31T23:59:59+00:00"])
def test_a_launch_without_an_end(started: str) -> None:
    assert launch_end(RunMetadata({}, started=started, seconds=1e300)) == LaunchEnd(seconds=1e300)
    assert launch_end(RunMetadata({}, started="2026-01-01T00:00:00+00:00")) == LaunchEnd()


def test_the_merge_uses_all_of_it(tmp_path: Path) -> None:
    for rank in (0, 1):
        killed(rank).write(tmp_path)
    node = {"ended": False, "host": "n1", "processes": [{"pid": 100, "ended_ns": START + 10 * SECOND}]}
    (tmp_path / "node-n1.json").write_text(json.dumps(node))
    (tmp_path / "alive-n1").write_text(f"{START + 20 * SECOND:020d}\n")
    run = combine(read_raw_folder(tmp_path), RunMetadata({"p": 2}, exit_code=137))
    assert run.values is not None
    solve = run.values.metrics["time"][(run.values.thread == 0) & (run.tree.region[run.values.callpath] == 1)]
    np.testing.assert_allclose(solve, [6, 16], atol=0.001)
    assert run.metadata.partial


@pytest.mark.parametrize("content", [b"", b"soon", b"-5", b"\xff" * 30])
def test_a_damaged_moment_is_none(tmp_path: Path, content: bytes) -> None:
    killed().write(tmp_path)
    (tmp_path / "alive-n1").write_bytes(content)
    assert read_raw_folder(tmp_path).alive == {}


@pytest.mark.parametrize("state", [0, 2], ids=["still at work", "ended"])
def test_no_process_has_more_time_than_the_launch(tmp_path: Path, state: int) -> None:
    """A background process continues after the end of the command: it is killed, or ends, or continues."""
    profile = read(tmp_path, killed(state=state))
    before = float(profile.values["time"].sum())
    launch = LaunchEnd(EPOCH + 2 * SECOND, "n1", START + 2 * SECOND)
    (end,) = ends_of([profile], {"n1": HostEnds({100: START + 10 * SECOND})}, launch)
    found = until_the_end(profile, end)
    for location in np.unique(found.location):
        assert found.values["time"][found.location == location].sum() <= 2 + 1e-9
    assert found.values["time"].sum() < before or not found.problems
    (elsewhere,) = ends_of([profile], {}, replace(launch, host="n2"))
    assert elsewhere.launch is None  # the clocks of two hosts may differ


def test_the_launch_of_a_simulation_does_not_bound_simulated_time() -> None:
    facts = {"host": "n1", "began_ns": START}
    assert launch_end(RunMetadata({}, seconds=1.0, launcher=facts)) == LaunchEnd(None, "n1", START + SECOND, 1.0)
    assert launch_end(RunMetadata({}, seconds=1.0, launcher={**facts, "family": "smpi"})) == LaunchEnd()


def test_a_clock_that_went_back_makes_no_negative_time(tmp_path: Path) -> None:
    """The difference of unsigned ticks wraps around."""
    nodes = [Node(1, 0, 0, (0, 0, 0, 0)), Node(2, 1, 1, (1, 500, 3, 0)), Node(3, 2, 2, (7, (1 << 64) - 400, 5, 0))]
    profile = read(tmp_path, rank_profile(0, nodes=nodes))
    assert seconds(replace(profile, values={"time": np.asarray(profile.values["time"] * 1e6, dtype=np.float64)}))[
        1:
    ] == [0.5, 0.0]
    assert profile.problems == ("the clock was set back: 1 call path has a time below zero, replaced by 0",)
    assert not profile.damaged and profile.values["visits"].tolist() == [0, 1, 7]


@pytest.mark.parametrize("host", ["n1", "n2"])
def test_a_clock_that_jumped_ahead_makes_no_time_beyond_the_run(tmp_path: Path, host: str) -> None:
    """Also of a process on another host than the launch: the call path with the jump is reduced, the others stay."""
    nodes = [Node(1, 0, 0, (0, 0, 0, 0)), Node(2, 1, 1, (1, SECOND, 3, 0)), Node(3, 2, 2, (7, 3600 * SECOND, 5, 0))]
    profile = read(tmp_path, rank_profile(0, nodes=nodes, clock=1, nanoseconds=(START, START + 3601 * SECOND)))
    launch = LaunchEnd(None, host, START + 4 * SECOND, 4.0)
    (end,) = ends_of([profile], {}, launch)
    profile = until_the_end(profile, end)
    assert seconds(profile) == [0, 1, 3]
    assert "its clock" in profile.problems[0] and "reduced" in profile.problems[0]


def test_a_start_that_cannot_be_bounds_times_by_the_length_of_the_run(tmp_path: Path) -> None:
    """The clock of the process was one hour ahead."""
    begun = START + 3600 * SECOND
    profile = read(tmp_path, rank_profile(0, clock=1, nanoseconds=(begun, begun + SECOND)))
    (end,) = ends_of([profile], {}, LaunchEnd(None, "n1", START + 4 * SECOND, 4.0))
    assert until_the_end(profile, end).values["time"].tolist() == profile.values["time"].tolist()
