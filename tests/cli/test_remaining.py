# SPDX-License-Identifier: Apache-2.0
"""Long commands show the remaining time on a terminal, and remove this line at the end."""

from __future__ import annotations

import io

import pytest
from quipu.agent.cli.remaining import Remaining
from quipu.modeling.progress import shown_by, steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, seconds: float, stop_at: int = 99) -> str:
    """Return the output of at most four steps of `seconds` each."""
    clock = [100.0]
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with shown_by(Remaining()):
        for step in steps("reading runs", range(4)):
            if step == stop_at:
                break
            clock[0] += seconds
    return stream.getvalue()


def test_long_work_shows_what_is_left_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown(monkeypatch, Terminal(), 2.5)
    assert "reading runs, 1 of 4, about 8 s left" in written
    assert "reading runs, 3 of 4, about 2 s left" in written
    assert written.endswith("\r\x1b[K")


def test_short_steps_are_shown_a_few_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, stream = [100.0], Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with shown_by(Remaining()):
        for work in ("first", "second", "third"):  # each of them 1.5 s
            for _ in steps(work, range(1500)):
                clock[0] += 1e-3
    lines = stream.getvalue().split("\r")
    assert "first" not in stream.getvalue()
    assert 10 <= sum("of 1500" in line for line in lines) <= 15
    assert all(f"quipu: {work}, " in stream.getvalue() for work in ("second", "third"))


def test_nothing_is_left_behind_by_work_that_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), 2.5, stop_at=2).endswith("\r\x1b[K")


def test_short_work_and_pipes_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), 0.4) == ""
    assert shown(monkeypatch, io.StringIO(), 9.0) == ""
