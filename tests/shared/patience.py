# SPDX-License-Identifier: Apache-2.0
"""Time limits of tests on loaded machines, and waiting for a condition."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

PATIENCE = 600.0
"""Seconds until a test stops waiting for a process or a condition. The limit ends hanging tests; it tests no speed."""


def until(condition: Callable[[], object], what: str, pause: float = 0.01) -> None:
    """Return when the condition holds. Raises AssertionError if it does not hold within `PATIENCE`.

    what: the condition in words, for the error. pause: seconds between two looks.
    """
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(pause)


@contextmanager
def running_process(environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process with this environment until it is killed or the block ends.

    Popen returns before the kernel shows the environment of the new program in /proc. The process has it when it
    writes its first line.
    """
    command = ["sh", "-c", "echo started; read line"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        yield process
