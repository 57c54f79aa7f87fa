# SPDX-License-Identifier: Apache-2.0
"""The table of a run archive with the values of single iterations, or spans of iterations, of phases.

A phase is a loop that the program marked, such as the time loop (see `IterationTable`).
"""

from __future__ import annotations

from pathlib import Path

from .checksums import check_files, is_there
from .run import IterationTable
from .tables import TableReader, write_table

FILE = "iterations.parquet"
_COLUMNS = {
    "phase": "str",
    "first": "int64",
    "last": "int64",
    "iterations": "int64",
    "ranks": "int64",
    "metric": "str",
    "mean": "float64",
    "max": "float64",
}


def write_iterations(folder: Path, table: IterationTable) -> None:
    """Write the table into the folder of an unfinished archive. Raises OSError."""
    write_table(folder / FILE, {name: (kind, getattr(table, name)) for name, kind in _COLUMNS.items()})


def read_iterations(archive: Path) -> IterationTable | None:
    """Read the iterations of a run archive; None if it has no phases. Raises FormatError for a damaged table."""
    path = archive / FILE
    if not is_there(path):
        return None
    check_files(archive, [FILE])
    table = TableReader(path, _COLUMNS)
    return IterationTable(
        table.texts("phase"),
        table.integers("first", -(1 << 62)),
        table.integers("last", -(1 << 62)),
        table.integers("iterations", 1),
        table.integers("ranks", 1),
        table.texts("metric"),
        table.floats("mean"),
        table.floats("max"),
    )
