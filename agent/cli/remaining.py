# SPDX-License-Identifier: Apache-2.0
"""Show the remaining time of a command as a line on the terminal, after two seconds and until the end of the work."""

from __future__ import annotations

import sys
import time

_QUIET = 2.0  # seconds from the start of the command until the line appears
_EVERY = 0.2  # seconds between two updates of the line


class Remaining:
    """A listener of `quipu.modeling.progress`, which prints only if stderr is a terminal."""

    def __init__(self) -> None:
        """Start without work."""
        self._what = ""
        self._began = 0.0
        self._next = time.monotonic() + _QUIET
        self._shown = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """Record that `done` of `total` steps of `what` are done. Show the remaining time after two seconds."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._began = what, now
        if done >= total:
            self._what = ""
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False
        elif now >= self._next and sys.stderr.isatty():
            left = f", about {(now - self._began) / done * (total - done):.0f} s left" if done else ""
            sys.stderr.write(f"\r\x1b[Kquipu: {what}, {done} of {total}{left}")
            sys.stderr.flush()
            self._shown, self._next = True, now + _EVERY
