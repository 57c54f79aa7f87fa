# SPDX-License-Identifier: Apache-2.0
"""The table of delays in a run archive: waiting times by the operation that waited and the thread that caused them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .checksums import check_files, is_there
from .run import DelayTable
from .tables import TableReader, write_table

FILE = "delays.parquet"
_COLUMNS = {"operation": "int32", "cause": "int32", "rank": "int32", "thread": "int32", "seconds": "float64"}


def write_delays(folder: Path, table: DelayTable) -> None:
    """Write the table into the folder of an unfinished archive. Raises OSError."""
    write_table(folder / FILE, {name: (kind, getattr(table, name)) for name, kind in _COLUMNS.items()})


def read_delays(archive: Path, paths: int) -> DelayTable | None:
    """Read the delays of a run archive; None if it has none. Raises FormatError for a damaged table.

    paths: number of call paths of the archive.
    """
    path = archive / FILE
    if not is_there(path):
        return None
    check_files(archive, [FILE])
    table = TableReader(path, _COLUMNS)
    operation, cause = table.integers("operation", 0, paths), table.integers("cause", -1, paths)
    seconds = table.floats("seconds")
    table.require(bool(np.all(seconds >= 0.0)), "it has times below 0")
    return DelayTable(operation, cause, table.integers("rank", 0), table.integers("thread", 0), seconds)
