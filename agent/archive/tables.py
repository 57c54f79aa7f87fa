# SPDX-License-Identifier: Apache-2.0
"""Write Parquet tables of run archives durably, and read them with checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading, without_waiting

from .pages import count_pages

Column = NDArray[Any] | Sequence[str]

_TYPES = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "str": pa.string(),
}
# Bytes of memory per row when a column is read: the value in the Arrow table, and its copy for the caller.
_BYTES = {"int8": 9, "int32": 12, "int64": 16, "float64": 16, "str": 20}
REMEDY = "restore it from a copy, merge the raw folder again if it still exists, or measure again"


def write_table(path: Path, columns: Mapping[str, tuple[str, Column]]) -> None:
    """Write columns (name → type name and values) and wait until they are on the disk.

    Raises OSError, and ValueError for a number that the type of its column cannot hold.
    """
    arrays = [_array(kind, values) for kind, values in columns.values()]
    with path.open("wb") as file:  # opened here, because Arrow opens only paths that are valid UTF-8
        pq.write_table(pa.Table.from_arrays(arrays, [*columns]), file, compression="zstd", write_page_checksum=True)
    fsync(path)


def _array(kind: str, values: Column) -> Any:
    """Return an Arrow column. The code avoids `pa.array`, which imports pandas if it is installed (0.25 s)."""
    if kind == "str":
        texts = [str(text).encode() for text in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        if ends[-1] > np.iinfo(np.int32).max:
            raise ValueError("the texts of a column have more than 2 GiB together")
        return pa.StringArray.from_buffers(
            len(texts), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))
        )
    numbers = np.asarray(values)
    column = np.ascontiguousarray(numbers, dtype=kind)
    if kind != "float64" and not np.array_equal(column, numbers):
        raise ValueError(f"a number does not fit into a column of {kind}")
    return pa.Array.from_buffers(_TYPES[kind], column.size, [None, pa.py_buffer(column)])


def fsync(path: Path) -> None:
    """Wait until the content of a file or folder is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TableReader:
    """One Parquet table of an archive, checked before use. The methods raise FormatError with the path for a defect."""

    def __init__(self, path: Path, columns: Mapping[str, str], content: bool = True) -> None:
        """Read the table and check that it has these columns (name → type name) without missing values.

        content: if false, read only the footer, which detects a truncated file; the table then has no rows.
        """
        self.path = path
        texts = [name for name, kind in columns.items() if kind == "str"]
        try:
            size = path.stat().st_size
            with (
                open(path, "rb", opener=without_waiting) as raw,
                reading(path, size) as cost,
                # read_dictionary: repeated texts are stored once. use_threads and pre_buffer are off: a thread of Arrow
                # that still uses `raw` when the interpreter ends would abort the process.
                pq.ParquetFile(raw, read_dictionary=texts, page_checksum_verification=True, pre_buffer=False) as file,
            ):
                self._check_types(file.schema_arrow, columns)
                rows = file.metadata.num_rows if content else 0
                self.require(rows >= 0, f"claims {rows} rows: it is damaged")
                cost.spend(rows * sum(_BYTES[kind] for kind in columns.values()))
                if content:
                    count_pages(raw, file.metadata, [*columns], cost)
                nothing = pa.Table.from_batches([], file.schema_arrow)
                table = file.read(list(columns), use_threads=False) if content else nothing
                cost.check_time()
        except FileNotFoundError as error:
            raise FormatError(path, f"is missing: the archive is incomplete; {REMEDY}") from error
        except (OSError, ValueError, KeyError, IndexError, pa.ArrowException) as error:
            raise FormatError(path, f"cannot be read, it is truncated or damaged; {REMEDY}") from error
        for name in columns:
            if table.column(name).null_count:
                raise FormatError(path, f"column {name} has missing values; {REMEDY}")
        self.rows = int(table.num_rows)
        self._table = table

    def _check_types(self, schema: Any, columns: Mapping[str, str]) -> None:
        for name, kind in columns.items():
            found = schema.get_all_field_indices(name)
            if len(found) != 1:
                raise FormatError(self.path, f"has no column {name}: it is not a table of this Quipu version; {REMEDY}")
            expected = pa.dictionary(pa.int32(), pa.string()) if kind == "str" else _TYPES[kind]
            if schema.field(found[0]).type != expected:
                raise FormatError(
                    self.path, f"column {name} is {schema.field(found[0]).type}, expected {kind}; {REMEDY}"
                )

    def integers(self, name: str, lowest: int | None = None, below: int | None = None) -> NDArray[np.int64]:
        """Return an integer column as int64, shape (rows,). Raises FormatError for a value outside [lowest, below)."""
        column = self._numbers(name, np.int64)
        if column.size and lowest is not None and int(column.min()) < lowest:
            raise FormatError(self.path, f"column {name} holds {int(column.min())}, less than {lowest}; {REMEDY}")
        if column.size and below is not None and int(column.max()) >= below:
            raise FormatError(self.path, f"column {name} holds {int(column.max())}, expected below {below}; {REMEDY}")
        return column

    def floats(self, name: str) -> NDArray[np.float64]:
        """Return a float column as float64, shape (rows,)."""
        return self._numbers(name, np.float64)

    def _numbers(self, name: str, dtype: Any) -> NDArray[Any]:
        """Return a column of numbers. The code avoids `to_numpy`, which imports pandas if it is installed (0.25 s)."""
        return concatenated(map(np.from_dlpack, self._table.column(name).chunks), dtype)

    def texts(self, name: str) -> list[str]:
        """Return a text column. Raises FormatError if a text is not UTF-8."""
        column: list[str] = []
        try:
            for chunk in self._table.column(name).chunks:
                known = chunk.dictionary.to_pylist()
                column += [known[place] for place in np.from_dlpack(chunk.indices).tolist()]
        except UnicodeDecodeError as error:
            raise FormatError(self.path, f"column {name} is not UTF-8; {REMEDY}") from error
        return column

    def require(self, condition: bool, message: str) -> None:
        """Raise FormatError with this message unless the condition holds."""
        if not condition:
            raise FormatError(self.path, f"{message}; {REMEDY}")


def concatenated(pieces: Iterable[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Return the pieces as one array of this type; empty if there are none."""
    pieces = list(pieces)
    return np.concatenate(pieces).astype(dtype) if pieces else np.zeros(0, dtype=dtype)
