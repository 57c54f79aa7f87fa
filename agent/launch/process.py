# SPDX-License-Identifier: Apache-2.0
"""Run the launched command, forward signals to it, and apply its time limit."""

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
"""Seconds between SIGTERM and SIGKILL when a command is stopped at its time limit."""


@dataclass(frozen=True)
class Ending:
    """How a launched process ended.

    exit_code: -N if signal N ended the process. seconds: elapsed time. timed_out: whether Quipu stopped the process at
    its time limit. stopped_by: number of the signal that Quipu received and forwarded; None if there was none.
    processor_seconds: processor time of the process and of the child processes that it waited for.
    """

    exit_code: int
    seconds: float
    timed_out: bool = False
    stopped_by: int | None = None
    processor_seconds: float = 0.0

    @property
    def crashed(self) -> bool:
        """Return whether a segmentation fault ended the process, or a child process whose exit code it returned."""
        return self.exit_code in (-signal.SIGSEGV, 128 + signal.SIGSEGV)

    @property
    def text(self) -> str:
        """Return a text about the end, to follow the name of the program; empty after success."""
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
    """Return the name of a signal, such as SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_process(
    argv: Sequence[str], environment: Mapping[str, str], timeout: float | None = None, folder: Path | None = None
) -> Ending:
    """Run a command and return how it ended. Raises OSError if it cannot be started.

    The command inherits stdout and stderr, and runs in a separate process group. Quipu forwards SIGINT and SIGTERM to
    this group: the first signal as received, the second one as SIGTERM, further ones as SIGKILL. Quipu then still waits
    for the command, so that its measurements are kept. If stdin is a terminal, the command gets an empty input, because
    a background process group must not read from a terminal.

    timeout: seconds after which the command is stopped; None: no limit. folder: the working folder of the command;
    None: the current one.
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
    """Send a signal to a process group; do nothing if the group has ended."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _end(process: subprocess.Popen[bytes]) -> int:
    """Stop a process by SIGTERM, after GRACE seconds by SIGKILL; return its exit code."""
    send(process.pid, signal.SIGTERM)
    try:
        return process.wait(GRACE)
    except subprocess.TimeoutExpired:
        send(process.pid, signal.SIGKILL)
        return process.wait()


@contextmanager
def _handlers(handler: object) -> Iterator[None]:
    """Install a handler for SIGINT and SIGTERM in the context; in other threads than the main thread, do nothing."""
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
