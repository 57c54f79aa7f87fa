# SPDX-License-Identifier: Apache-2.0
"""Limit the resources of reading one untrusted file, for all readers: bytes, expansion, time and depth.

A reader opens a `reading` of its file, and declares resources before it uses them. If a limit is too low for a valid
file, the error names the environment variable that raises it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from .errors import FormatError, UsageError

MIB, EXPANSION, SECONDS, DEPTH = (f"QUIPU_READ_{name}" for name in ("MIB", "EXPANSION", "SECONDS", "DEPTH"))
DEFAULTS = {MIB: 4096, EXPANSION: 1000, SECONDS: 300, DEPTH: 1000}
"""Memory for one file; memory relative to its size; processor seconds; depth of documents and call trees."""
_FREE = 256 << 20  # bytes that every file may use


def limit(variable: str) -> int:
    """Return the limit of an environment variable in `DEFAULTS`. Raises UsageError if it is not a number above 0."""
    text = os.environ.get(variable, "") or str(DEFAULTS[variable])
    number = whole_number(text, 9)
    if not number:
        raise UsageError(f"{variable}={text[:40]}: give a whole number above 0")
    return number


def whole_number(text: str, digits: int = 18) -> int | None:
    """Return the integer in a text with at most this number of digits and nothing else; None if there is none.

    int() accepts more (signs, spaces, `_`, digits of all alphabets), and fails at thousands of digits. str.isdigit
    accepts ², which is not a decimal digit. 18 digits fit into 64 bits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


class Reading:
    """The resources that reading a file has used so far."""

    def __init__(self, source: object, size: int | None = None) -> None:
        """Begin to read `source`. size: its bytes on disk; None: unknown."""
        self.source = source
        self._memory = limit(MIB) << 20
        self._expanded = self._memory if size is None else max(_FREE, limit(EXPANSION) * size)
        self._spent = 0
        self._end = time.thread_time() + limit(SECONDS)

    def spend(self, size: int) -> None:
        """Count bytes before they are used. Raises FormatError if they are too many for the file."""
        self._spent += size
        if self._spent > self._memory:
            raise self._refusal(f"takes more than {self._memory >> 20} MiB of memory", MIB)
        if self._spent > self._expanded:
            raise self._refusal(f"expands to more than {limit(EXPANSION)} times its size", EXPANSION)

    def check_time(self) -> None:
        """Raise FormatError if reading took too long."""
        if time.thread_time() > self._end:
            raise self._refusal(f"takes more than {limit(SECONDS)} s to read", SECONDS)

    def check_depth(self, depth: int) -> None:
        """Raise FormatError if a document, or a call tree, is nested too deep."""
        if depth > limit(DEPTH):
            raise self._refusal(f"is nested more than {limit(DEPTH)} levels deep", DEPTH)

    def _refusal(self, what: str, variable: str) -> FormatError:
        return FormatError(self.source, f"{what}: if you trust the file, set a larger {variable}")


_current: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(source: object, size: int | None = None) -> Iterator[Reading]:
    """Count everything that is read in the block as the cost of one file; size: its bytes on disk, if known."""
    token = _current.set(Reading(source, size))
    try:
        yield current()
    finally:
        _current.reset(token)


def current() -> Reading:
    """Return the reading of the current block; outside of all blocks, a reading of an input of unknown size."""
    return _current.get() or Reading("the input")


@contextmanager
def reading_file(path: Path, special: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a file, and count everything that is read in the block as its cost.

    special: whether it may be a pipe or a device, which users name on the command line and no other file names. Raises
    FormatError if it cannot be read or is too large. It waits for the writer of a pipe only with `special`.
    """
    try:
        with open(path, "rb", opener=None if special else without_waiting) as file:
            status = os.fstat(file.fileno())
            if not special and not stat.S_ISREG(status.st_mode):
                raise FormatError(path, "is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file")
            known = status.st_size if stat.S_ISREG(status.st_mode) else None
            with reading(path, known) as cost:
                cost.spend(known or 0)
                content = file.read(known + 1) if known is not None else _all_of(file.fileno(), cost)
    except FileNotFoundError as error:
        raise FormatError(path, "is missing") from error
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    with reading(path, known) as cost:
        cost.spend(len(content))
        yield content


def without_waiting(path: str, flags: int) -> int:
    """Open a file as an opener of `open`. Opening a pipe without a writer also returns."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _all_of(descriptor: int, cost: Reading) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        cost.spend(len(part))
        parts.append(part)
    return b"".join(parts)
