# SPDX-License-Identifier: Apache-2.0
"""The table of the communication matrix in a run archive: messages and bytes between each pair of ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .checksums import check_files, is_there
from .run import CommunicationMatrix
from .tables import TableReader, write_table

FILE = "communication.parquet"
_COLUMNS = {"sender": "int32", "receiver": "int32", "bytes": "int64", "messages": "int64"}


def write_communication(folder: Path, matrix: CommunicationMatrix) -> None:
    """Write the table into the folder of an unfinished archive. Raises OSError."""
    write_table(folder / FILE, {name: (kind, getattr(matrix, name)) for name, kind in _COLUMNS.items()})


def read_communication(archive: Path) -> CommunicationMatrix | None:
    """Read the communication matrix of a run archive; None if it has none. Raises FormatError for a damaged table."""
    path = archive / FILE
    if not is_there(path):
        return None
    check_files(archive, [FILE])
    table = TableReader(path, _COLUMNS)
    sender, receiver = (table.integers(name, -1) for name in ("sender", "receiver"))
    ascending = bool(np.all(np.diff((sender + 1) << 32 | (receiver + 1)) > 0))
    table.require(ascending, "its pairs of ranks are not in order")
    return CommunicationMatrix(sender, receiver, table.integers("bytes", 0), table.integers("messages", 0))
