# SPDX-License-Identifier: Apache-2.0
"""Run the launched process: pass its output through, forward signals, keep to the time limit."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

GRACE = 10.0
"""Seconds between asking a process to end and killing it."""


@dataclass(frozen=True)
class Ending:
    """How a launched process ended. exit_code is -N if signal N ended it; stopped_by is a signal that we received.

    processor_seconds: of it and of the processes that it waited for.
    """

    exit_code: int
    seconds: float
    timed_out: bool = False
    stopped_by: int | None = None
    processor_seconds: float = 0.0

    @property
    def crashed(self) -> bool:
        """Return whether a segmentation fault ended the process or a process that it ran."""
        return self.exit_code in (-signal.SIGSEGV, 128 + signal.SIGSEGV)

    @property
    def text(self) -> str:
        """The ending in words, empty if all went well."""
        if self.timed_out:
            return f"was stopped at its time limit, after {self.seconds:.0f} s"
        if self.stopped_by is not None:
            return f"was stopped by {signal_name(self.stopped_by)}"
        if self.exit_code == 0:
            return ""
        if self.exit_code < 0:
            return f"was killed by {signal_name(-self.exit_code)}"
        if self.exit_code > 128 and self.exit_code - 128 in set(signal.Signals):
            name = signal_name(self.exit_code - 128)
            return f"ended with exit code {self.exit_code} ({name} in a process that it ran)"
        return f"ended with exit code {self.exit_code}"


def signal_name(number: int) -> str:
    """Return the name of a signal, like SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_process(
    argv: Sequence[str], environment: Mapping[str, str], timeout: float | None = None, folder: Path | None = None
) -> Ending:
    """Run a command to its end and say how it ended.

    Its output goes where ours goes. It has a process group of its own: SIGINT and SIGTERM that we receive are sent
    on to it (the second time as SIGTERM, then as SIGKILL), and we wait for it, so that what it measured is kept. As
    such a group may not read from a terminal, its input is empty then. Raises OSError if it cannot be started.
    """
    started, processor = time.perf_counter(), _processor_seconds()
    received: list[int] = []
    group: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if group:
            send(group[0], (number, signal.SIGTERM, signal.SIGKILL)[min(len(received), 3) - 1])

    with _handlers(forward):
        stdin = subprocess.DEVNULL if sys.stdin is None or os.isatty(0) else None
        process = subprocess.Popen(list(argv), cwd=folder, env=dict(environment), stdin=stdin, process_group=0)
        group.append(process.pid)
        if received:
            send(process.pid, received[0])
        timed_out = False
        try:
            exit_code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            exit_code = _end(process)
        except BaseException:
            _end(process)
            raise
    seconds = time.perf_counter() - started
    used = _processor_seconds() - processor
    return Ending(exit_code, seconds, timed_out, received[0] if received else None, used)


def _processor_seconds() -> float:
    """Return the processor time of the processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def send(group: int, number: int) -> None:
    """Send a signal to a process group that may be gone."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _end(process: subprocess.Popen[bytes]) -> int:
    send(process.pid, signal.SIGTERM)
    try:
        return process.wait(GRACE)
    except subprocess.TimeoutExpired:
        send(process.pid, signal.SIGKILL)
        return process.wait()


@contextmanager
def _handlers(handler: object) -> Iterator[None]:
    """Handle SIGINT and SIGTERM so while the context lasts; other threads than the main one cannot and do not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handler) for number in numbers}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
