# SPDX-License-Identifier: Apache-2.0
"""Limit the resources for reading one untrusted file: memory, memory relative to its size, time, and depth.

The code that reads a file opens a block `reading`, and declares memory before it allocates the memory. If a limit is
too low for a valid file, the error names the environment variable with which the user can raise the limit.
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
"""The limits by environment variable: memory for one file (MiB); memory relative to its size; processor seconds; depth
of documents and call trees."""
_FREE = 256 << 20  # bytes of memory that every file may use, however small it is


def limit(variable: str) -> int:
    """Return the limit that an environment variable in `DEFAULTS` sets, or the default.

    Raises UsageError if the variable is not a whole number above 0.
    """
    text = os.environ.get(variable, "") or str(DEFAULTS[variable])
    number = whole_number(text, 9)
    if not number:
        raise UsageError(f"{variable}={text[:40]}: give a whole number above 0")
    return number


def whole_number(text: str, digits: int = 18) -> int | None:
    """Return the whole number in a text of at most `digits` decimal digits and nothing else; None for other texts.

    Unlike int(), the function rejects signs, spaces, `_`, digits of other alphabets and long texts. 18 digits fit into
    64 bits.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


class Reading:
    """The resources that reading a file has used so far."""

    def __init__(self, source: object, size: int | None = None) -> None:
        """Begin to read `source` (its name in errors). size: its bytes on disk; None if unknown."""
        self.source = source
        self._memory = limit(MIB) << 20
        self._expanded = self._memory if size is None else max(_FREE, limit(EXPANSION) * size)
        self._spent = 0
        self._end = time.thread_time() + limit(SECONDS)

    def spend(self, size: int) -> None:
        """Count bytes of memory before they are used. Raises FormatError beyond a limit of the file."""
        self._spent += size
        if self._spent > self._memory:
            raise self._refusal(f"takes more than {self._memory >> 20} MiB of memory", MIB)
        if self._spent > self._expanded:
            raise self._refusal(f"expands to more than {limit(EXPANSION)} times its size", EXPANSION)

    def check_time(self) -> None:
        """Raise FormatError if reading the file has used more processor time than the limit."""
        if time.thread_time() > self._end:
            raise self._refusal(f"takes more than {limit(SECONDS)} s to read", SECONDS)

    def check_depth(self, depth: int) -> None:
        """Raise FormatError if `depth` of a document or call tree is above the limit."""
        if depth > limit(DEPTH):
            raise self._refusal(f"is nested more than {limit(DEPTH)} levels deep", DEPTH)

    def _refusal(self, what: str, variable: str) -> FormatError:
        return FormatError(self.source, f"{what}: if you trust the file, set a larger {variable}")


_current: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def reading(source: object, size: int | None = None) -> Iterator[Reading]:
    """Count all resources that are declared inside of the block for one file.

    source: name of the file in errors. size: its bytes on disk; None if unknown.
    """
    token = _current.set(Reading(source, size))
    try:
        yield current()
    finally:
        _current.reset(token)


def current() -> Reading:
    """Return the `Reading` of the innermost block `reading`; without a block, a `Reading` of unknown size."""
    return _current.get() or Reading("the input")


@contextmanager
def reading_file(path: Path, special: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a file, and count all resources that are declared in the block for this file.

    special: whether the file may be a pipe or a device, which is only allowed for files that users name. Without
    `special`, a pipe raises an error and does not block. Raises FormatError if the file cannot be read, is too large,
    or is not a regular file.
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
    """Open a file; for the argument `opener` of open(). Does not wait for the writer of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _all_of(descriptor: int, cost: Reading) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 20):
        cost.spend(len(part))
        parts.append(part)
    return b"".join(parts)
