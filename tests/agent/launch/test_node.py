# SPDX-License-Identifier: Apache-2.0
"""The node agent, with a clock of its own and processes that this test starts."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quipu.agent.launch import process_ends
from quipu.agent.launch.node import AFTER_STOP, GIVE_UP, MOST_SAMPLES, NodeAgent, main
from quipu.agent.launch.process_ends import ProcessEnds

PROGRAM = [sys.executable, "-I", "-S", str(Path(process_ends.__file__).with_name("start_node.py"))]


class Time:
    """A clock that goes on when someone sleeps; `events` happen at their number of sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps = 0
        self.events: dict[int, object] = {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1
        event = self.events.get(self.sleeps)
        if callable(event):
            event()


def agent(raw: Path, time: Time) -> NodeAgent:
    return NodeAgent(raw, "here", clock=time.clock, sleep=time.sleep)


def note(raw: Path, rank: int, pid: int, host: str = "here") -> None:
    content = {"rank": rank, "ranks": 2, "pid": pid, "host": host, "affinity": [0], "program": "app"}
    (raw / f"rank-{rank}.json").write_text(json.dumps(content))


def written(raw: Path) -> dict[str, object]:
    content = json.loads((raw / "node-here.json").read_text())
    assert isinstance(content, dict)
    return content


def test_watches_the_ranks_of_this_host_until_they_are_gone(tmp_path: Path) -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    note(tmp_path, 0, child.pid)
    note(tmp_path, 1, os.getpid(), host="elsewhere")
    (tmp_path / "rank-2.json").write_text("{broken")
    clock = Time()

    def end() -> None:
        child.communicate()

    clock.events = {3: end}
    agent(tmp_path, clock).run()
    content = written(tmp_path)
    assert content["ended"] is True
    assert isinstance(content["ranks"], list)
    (rank,) = content["ranks"]
    assert rank["rank"] == 0
    assert rank["max_rss_bytes"] > 0
    assert rank["affinity"]
    assert isinstance(content["samples"], list)
    assert len(content["samples"]) == 4
    assert set(content["samples"][0]) == {"seconds", "load", "cpu_percent", "frequency_mhz", "memory_used_bytes"}


def moment(raw: Path) -> int:
    return int((raw / "alive-here").read_text())


def ended(raw: Path) -> dict[int, int | None]:
    processes = written(raw)["processes"]
    assert isinstance(processes, list)
    return {process["pid"]: process["ended_ns"] for process in processes}


def test_notes_when_measured_processes_end(tmp_path: Path) -> None:
    rank, child = (subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(2))
    note(tmp_path, 0, rank.pid)
    (tmp_path / f"profile-here-{child.pid}-1.quipu").touch()  # what the rank started, after an exec
    (tmp_path / "profile-there-1.quipu").touch()
    moments: list[int] = []

    def end(process: subprocess.Popen[bytes]) -> None:
        moments.append(time.monotonic_ns())
        process.kill()
        process.wait()

    clock = Time()
    clock.events = {2: lambda: end(child), 4: lambda: end(rank)}
    agent(tmp_path, clock).run()
    after = time.monotonic_ns()
    found = ended(tmp_path)
    first, second = found[child.pid], found[rank.pid]
    assert set(found) == {child.pid, rank.pid}
    assert first is not None
    assert second is not None
    assert moments[0] <= first <= moments[1] <= second <= after


def test_the_kernel_tells_at_once_when_a_process_ends() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    ends = ProcessEnds()
    ends.watch(child.pid)
    ends.wait(0)
    assert ends.ended == {}
    child.kill()
    ends.wait(3600)  # returns when the last process has ended
    child.wait()
    assert set(ends.ended) == {child.pid}


def test_processes_are_looked_at_where_the_kernel_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def old_kernel(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", old_kernel)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    ends = ProcessEnds()
    ends.watch(child.pid)
    ends.wait(0)
    assert ends.ended == {}
    child.kill()
    child.wait()
    ends.wait(3600)
    assert set(ends.ended) == {child.pid}


def test_an_agent_that_is_killed_leaves_the_moment_when_it_looked_last(tmp_path: Path) -> None:
    note(tmp_path, 0, os.getpid())
    before = time.monotonic_ns()
    node = subprocess.Popen([*PROGRAM, str(tmp_path)], env={**os.environ, "QUIPU_NODE_INTERVAL": "0.01"})
    alive = tmp_path / f"alive-{socket.gethostname()}"
    try:
        while not (alive.exists() and alive.stat().st_size and int(alive.read_text()) > before):
            assert node.poll() is None
        seen = int(alive.read_text())
        while int(alive.read_text()) == seen:
            assert node.poll() is None
    finally:
        node.kill()
        node.wait()
    assert seen < int(alive.read_text()) <= time.monotonic_ns()


def test_ranks_that_ended_before_the_agent_came(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    note(tmp_path, 0, child.pid)
    clock = Time()
    agent(tmp_path, clock).run()
    assert clock.sleeps == 0
    assert written(tmp_path)["ended"] is True
    assert ended(tmp_path)[child.pid] is not None
    assert moment(tmp_path) > 0


def test_gives_up_without_ranks(tmp_path: Path) -> None:
    clock = Time()
    agent(tmp_path, clock).run()
    assert GIVE_UP <= clock.now < GIVE_UP + 1
    assert written(tmp_path)["ranks"] == []


def test_ends_when_the_raw_folder_is_gone(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    note(raw, 0, os.getpid())
    clock = Time()

    def remove() -> None:
        for path in raw.iterdir():
            path.unlink()
        raw.rmdir()

    clock.events = {2: remove}
    agent(raw, clock).run()
    assert clock.sleeps == 2
    assert not raw.exists()


def test_ends_when_told(tmp_path: Path) -> None:
    note(tmp_path, 0, os.getpid())
    clock = Time()
    node = agent(tmp_path, clock)
    clock.events = {4: node.stop}
    node.run()
    assert clock.now == pytest.approx(4 * node.interval + AFTER_STOP, abs=1)


def test_is_there_until_the_ranks_end_though_it_was_told_to_end(tmp_path: Path) -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    note(tmp_path, 0, child.pid)
    clock = Time()
    node = agent(tmp_path, clock)
    clock.events = {4: node.stop, 6: child.communicate}
    node.run()
    assert clock.sleeps == 6
    assert ended(tmp_path)[child.pid] is not None


def test_a_long_run_keeps_a_bounded_number_of_samples(tmp_path: Path) -> None:
    note(tmp_path, 0, os.getpid())
    clock = Time()
    node = agent(tmp_path, clock)
    clock.events = {3 * MOST_SAMPLES: node.stop}
    node.run()
    assert len(node.samples) <= MOST_SAMPLES + 1
    assert node.samples[-1]["seconds"] == pytest.approx(clock.now, abs=2.0)
    assert clock.now == pytest.approx(clock.sleeps * node.interval)


def test_imports_little() -> None:
    answer = subprocess.run([*PROGRAM, "no-such-folder"], capture_output=True, text=True, check=False)
    assert (answer.returncode, "is not a folder" in answer.stderr) == (2, True)
    trace = [sys.executable, "-X", "importtime", *PROGRAM[1:], "no-such-folder"]
    lines = subprocess.run(trace, capture_output=True, text=True, check=False).stderr.splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines if line.startswith("import time:")}
    assert "quipu_node" in {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert imported.isdisjoint({"numpy", "pathlib", "psutil", "quipu", "site", "socket", "subprocess", "typing"})


def test_wrong_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err
