# SPDX-License-Identifier: Apache-2.0
"""Checksums of the files of a run archive, in the format of `sha256sum -c SHA256SUMS`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading, reading_file

from .tables import REMEDY, fsync

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([\w.-]+)")
_LARGEST = 1 << 16
_WITHOUT = f"remove it to read the archive without checksums; {REMEDY}"
_TABLES = (
    *("regions", "callpaths", "values", "statistics", "sketches", "ranks", "communication", "delays", "iterations"),
    *("classes", "places", "source"),  # only archives of older versions contain source.parquet
)
_FILES = ("run.json", *(f"{name}.parquet" for name in _TABLES))
"""Files that must have a checksum if the archive contains them."""


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in a folder, and wait until they are on the disk. Raises OSError."""
    files = sorted(path for path in folder.iterdir() if path.name != NAME)
    (folder / NAME).write_text("".join(f"{_sum(path)}  {path.name}\n" for path in files), encoding="ascii")
    fsync(folder / NAME)


def check_files(folder: Path, names: Iterable[str]) -> None:
    """Raise FormatError with the path of the first of the files `names` whose checksum is wrong.

    An archive without checksums is not checked. If the list of checksums lacks a file of the archive, the list is
    truncated, which is an error. Missing files and files that are not regular are ignored; their readers report them.
    """
    sums = _sums(folder / NAME)
    if sums is None:
        return
    for name in (*names, *_FILES):
        if name not in sums and (folder / name).is_file():
            raise FormatError(
                folder / NAME,
                f"is cut off, or was changed: it lacks {name}; {_WITHOUT}",
            )
    for name in names:
        path = folder / name
        try:
            changed = path.is_file() and sums[name] != _sum(path)
        except OSError as error:
            raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
        if changed:
            raise FormatError(
                path,
                f"does not fit its checksum in {NAME}: it is damaged, or was changed (then remove {NAME}); {REMEDY}",
            )


def is_archive(folder: Path) -> bool:
    """Return whether a folder is a run archive: the folder, or its list of checksums, contains run.json.

    Raises FormatError if the list of checksums is damaged.
    """
    return (folder / _FILES[0]).is_file() or _FILES[0] in (_sums(folder / NAME) or ())


def is_there(path: Path) -> bool:
    """Return whether an optional file of an archive exists.

    Raises FormatError if the file is missing, but has a checksum.
    """
    if path.exists():
        return True
    if path.name in (_sums(path.parent / NAME) or ()):
        raise FormatError(path, f"is missing, but has a checksum in {NAME}: the archive is incomplete; {REMEDY}")
    return False


def _sums(path: Path) -> dict[str, str] | None:
    if not path.exists():
        return None
    with reading_file(path) as content:
        if len(content) > _LARGEST:
            raise FormatError(path, f"is not a list of checksums; {_WITHOUT}")
        lines = content.decode("ascii", "replace").split("\n")
    sums = {}
    for number, line in enumerate(lines[:-1], 1):
        if (match := _LINE.fullmatch(line)) is None:
            raise FormatError(path, f"is not a checksum and a file name: the list is damaged; {_WITHOUT}", number)
        sums[match[2]] = match[1]
    if lines[-1]:
        raise FormatError(path, f"is cut off; {_WITHOUT}", len(lines))
    return sums


def _sum(path: Path) -> str:
    with path.open("rb") as file, reading(path) as cost:
        cost.spend(os.fstat(file.fileno()).st_size)  # reading the file costs time, but no memory
        return hashlib.file_digest(file, "sha256").hexdigest()
