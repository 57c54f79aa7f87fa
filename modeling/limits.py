# SPDX-License-Identifier: Apache-2.0
"""What reading one file of somebody else may cost: the limits of all readers, in bytes, expansion, time and depth.

A reader opens a `reading` of its file and says what it is about to take, before it takes it. A limit that is too low
for an honest file is raised by the environment variable that the error names.
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
"""Memory for one file; how often that may be its size; processor seconds; depth of documents and call trees."""
_FREE = 256 << 20  # bytes that any file may take, however small it is


def limit(variable: str) -> int:
    """Return the limit of an environment variable of `DEFAULTS`. Raises UsageError if that is no number above 0."""
    text = os.environ.get(variable, "") or str(DEFAULTS[variable])
    number = whole_number(text, 9)
    if not number:
        raise UsageError(f"{variable}={text[:40]}: give a whole number above 0")
    return number


def whole_number(text: str, digits: int = 18) -> int | None:
    """Return the whole number that a text is: at most so many digits and nothing else; None if it is none.

    int() reads more (signs, spaces, `_`, digits of all alphabets), and raises at thousands of digits; str.isdigit
    takes ², which is none. 18 digits fit into 64 bits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


class Reading:
    """What reading a file has cost so far."""

    def __init__(self, source: object, size: int | None = None) -> None:
        """Begin to read `source`. size: its bytes on disk, None: not known."""
        self.source = source
        self._memory = limit(MIB) << 20
        self._expanded = self._memory if size is None else max(_FREE, limit(EXPANSION) * size)
        self._spent = 0
        self._end = time.thread_time() + limit(SECONDS)

    def spend(self, size: int) -> None:
        """Count bytes that are going to be taken. Raises FormatError if they are too many for the file."""
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
    """Count what is read within the block as the cost of one file; size: its bytes on disk, if they are known."""
    token = _current.set(Reading(source, size))
    try:
        yield current()
    finally:
        _current.reset(token)


def current() -> Reading:
    """Return the reading whose block this is called in; outside of any, that of an input of unknown size."""
    return _current.get() or Reading("the input")


@contextmanager
def reading_file(path: Path, special: bool = False) -> Iterator[bytes]:
    """Give the bytes of a file, and count what is read within the block as its cost.

    special: it may be a pipe or a device, too, as for files that users name on the command line and that no other file
    names. Raises FormatError if it cannot be read or is too large; it never waits for the writer of a pipe unasked.
    """
    try:
        with open(path, "rb", opener=None if special else without_waiting) as file:
            status = os.fstat(file.fileno())
            if not special and not stat.S_ISREG(status.st_mode):
                raise FormatError(path, "is a folder" if stat.S_ISDIR(status.st_mode) else "is no regular file")
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
    """Open a file as `open` asks its opener to; that of a pipe that nobody writes to returns, too."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _all_of(descriptor: int, cost: Reading) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        cost.spend(len(part))
        parts.append(part)
    return b"".join(parts)
