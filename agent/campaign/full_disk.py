# SPDX-License-Identifier: Apache-2.0
"""Detect runs that failed because a disk is full. All further runs would fail, too."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

_NO_ROOM = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT)))


def full_disk(error: str, folders: Iterable[Path]) -> str:
    """Return a message for the user if a run failed because a disk is full, otherwise "".

    error: the message of the failed run. It contains the error text of the system if Quipu or its runtime could not
    write. folders: folders to which the program may have written; the function checks their free space.
    """
    said = next((text for text in _NO_ROOM if text in error), "")
    full = next((folder for folder in folders if _is_full(folder)), None)
    if not said and full is None:
        return ""
    where = "a disk is full" if full is None else f"the disk of {full} is full"
    return (
        f"stopped: {where}{f' ({said})' if said else ''}; free space and repeat the command, which merges the profiles "
        "and continues with the missing runs"
    )


def _is_full(folder: Path) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    # A read-only file system, such as the image of a container, has no free blocks either.
    return found.f_blocks > 0 and found.f_bavail == 0 and not found.f_flag & os.ST_RDONLY
