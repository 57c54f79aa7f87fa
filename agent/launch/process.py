# SPDX-License-Identifier: Apache-2.0
"""Run the launched process: pass its output through, forward signals, apply the time limit."""

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
"""Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True)
class Ending:
    """How a launched process ended.

    exit_code: -N if signal N ended the process. stopped_by: the signal that Quipu received. processor_seconds: of the
    process and of the processes that it waited for.
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
        """Return a text about the ending; empty after success."""
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
    """Run a command and return how it ended. Raises OSError if it cannot be started.

    The command inherits stdout and stderr, and runs in a separate process group. SIGINT and SIGTERM that Quipu receives
    are forwarded to the group (the second time as SIGTERM, then as SIGKILL). Quipu still waits for the command, so that
    its measurements are kept. If stdin is a terminal, the command gets an empty input, because a background group must
    not read from a terminal.
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
    """Return the processor time (seconds) of the processes that this process has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def send(group: int, number: int) -> None:
    """Send a signal to a process group, which may have ended."""
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
    """Install this handler for SIGINT and SIGTERM in the context; only the main thread can do this."""
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
