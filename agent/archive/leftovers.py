# SPDX-License-Identifier: Apache-2.0
"""Remove unfinished archives that killed processes left in an experiment folder, under the lock of its writers."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

WRITE_LOCK = ".write.lock"
TEMPORARY = ".tmp-"
MERGED = ".merged-"
_LEFT = re.compile(rf"(?:{re.escape(TEMPORARY)}.*-|{re.escape(MERGED)})[0-9a-f]{{32}}", re.DOTALL)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Hold the shared lock of the writers of an experiment folder, and first remove the leftovers of killed writers.

    Leftovers are unfinished archives, and raw folders that were merged already. They are removed only if no process
    holds the lock; the kernel releases the lock of a killed process. The last writer removes the lock file. If the file
    system has no locks or the lock file cannot be opened, no leftovers are removed and no lock is held.
    """
    path = folder / WRITE_LOCK
    if _left(folder):
        _remove_left(folder, path)
    descriptor = _shared(path)
    try:
        yield
    finally:
        if descriptor is not None:
            _end(path, descriptor)


def _remove_left(folder: Path, path: Path) -> None:
    descriptor = _opened(path)
    if descriptor is None:
        return
    if _alone(path, descriptor):
        for left in _left(folder):
            shutil.rmtree(left, ignore_errors=True)
    _end(path, descriptor)


def _end(path: Path, descriptor: int) -> None:
    """Release the lock, and remove its file if no other process holds it."""
    if _alone(path, descriptor):
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)


def _shared(path: Path) -> int | None:
    """Return a descriptor of the lock file that holds the shared lock; None if the file cannot be locked."""
    while (descriptor := _opened(path)) is not None:
        if _locked(descriptor, fcntl.LOCK_SH) and _is_file(path, descriptor):
            return descriptor
        removed = not _is_file(path, descriptor)  # another writer ended in the meantime and removed the file: try again
        os.close(descriptor)
        if not removed:
            return None
    return None


def _alone(path: Path, descriptor: int) -> bool:
    """Try to take the exclusive lock, and return whether this process holds it now."""
    return _locked(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) and _is_file(path, descriptor)


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def _opened(path: Path) -> int | None:
    """Return a descriptor of a lock file, which is created if missing; None if it cannot be opened.

    The descriptor is read-only if this user must not write the file.
    """
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    return None


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _left(folder: Path) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [Path(one.path) for one in entries if _LEFT.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
    return []
