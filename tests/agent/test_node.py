"""The node agent, with a clock of its own and processes that this test starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from quipu.agent.node import GIVE_UP, MOST_SAMPLES, NodeAgent, main


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
    time = Time()

    def end() -> None:
        child.communicate()

    time.events = {3: end}
    agent(tmp_path, time).run()
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


def test_ranks_that_ended_before_the_agent_came(tmp_path: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    note(tmp_path, 0, child.pid)
    time = Time()
    agent(tmp_path, time).run()
    assert time.sleeps == 0
    assert written(tmp_path)["ended"] is True


def test_gives_up_without_ranks(tmp_path: Path) -> None:
    time = Time()
    agent(tmp_path, time).run()
    assert GIVE_UP <= time.now < GIVE_UP + 1
    assert written(tmp_path)["ranks"] == []


def test_ends_when_the_raw_folder_is_gone(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    note(raw, 0, os.getpid())
    time = Time()

    def remove() -> None:
        for path in raw.iterdir():
            path.unlink()
        raw.rmdir()

    time.events = {2: remove}
    agent(raw, time).run()
    assert time.sleeps == 2
    assert not raw.exists()


def test_ends_when_told(tmp_path: Path) -> None:
    note(tmp_path, 0, os.getpid())
    time = Time()
    node = agent(tmp_path, time)
    time.events = {4: node.stop}
    node.run()
    assert time.sleeps == 4


def test_a_long_run_keeps_a_bounded_number_of_samples(tmp_path: Path) -> None:
    note(tmp_path, 0, os.getpid())
    time = Time()
    node = agent(tmp_path, time)
    time.events = {3 * MOST_SAMPLES: node.stop}
    node.run()
    assert len(node.samples) <= MOST_SAMPLES + 1
    assert node.samples[-1]["seconds"] == pytest.approx(time.now, abs=2.0)
    assert time.now == pytest.approx(time.sleeps * node.interval)


def test_imports_little() -> None:
    script = "import sys, quipu.agent.node; print(sorted({'numpy', 'pyarrow', 'scipy'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_wrong_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err
