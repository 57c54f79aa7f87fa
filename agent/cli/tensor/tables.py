# SPDX-License-Identifier: Apache-2.0
"""Read tables of measurements from CSV and Parquet files: columns of numbers or of texts."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quipu.modeling.errors import FormatError
from quipu.modeling.printable import counted

from ..quoting import in_quotes

if TYPE_CHECKING:
    from quipu.modeling.tensor.columns import Column

ROW_BYTES = 24
"""Bytes of memory for one value of a table: the value as read, and its copy for the model."""
_MARKS = (",", ";", "\t")
_SEPARATOR = re.compile(r'(?:sep=(.)|"sep=(.)")\r?\n?', re.IGNORECASE)
# Names of columns that pandas gave no name: empty, of read_csv, and of DataFrame.to_parquet.
_UNNAMED = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
# Numbers that float() cannot read: with an exponent of Fortran, with a decimal comma, or with groups of three digits.
_FORTRAN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[dDqQ]([+-]?\d{1,4})|([+-]\d{3}))")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eEdD][+-]?\d+)?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[ .,'\u2019\u00a0\u202f]\d{3})+(?:[.,]\d+)?")
_SHOWN = 40


@dataclass(frozen=True)
class Table:
    """A table of measurements.

    - columns: by name. A column of numbers is an array of shape (rows,) in which missing values are NaN. A column of
      texts is a list in which missing values are "".
    - notes: texts about columns that were left out, or that contain text among numbers.
    - quality: the disturbances of the measurement in one line; "" if unknown.
    - place: function that returns the name of a row for messages, such as "line 7". Its argument counts rows from 0.
    """

    columns: dict[str, Column]
    notes: tuple[str, ...] = ()
    quality: str = ""
    place: Callable[[int], str] = "row {}".format


def read_table(source: Path, names: Collection[str] = ()) -> Table:
    """Read a CSV or Parquet file.

    names: columns whose values may be names, even if they look like numbers with a decimal comma, such as 1,2. Columns
    without a name are left out, with a note. Raises FormatError with the name of the file. The error also contains line
    and column for a number in another notation, such as 0,5.
    """
    import pyarrow as pa

    try:
        if source.suffix.lower() in (".parquet", ".pq"):
            return _table(source, _parquet(source), names, None)
        return _csv(source, names)
    except (pa.ArrowException, ValueError) as error:
        raise FormatError(source, f"cannot be read: {error}") from error


def number_or_nan(text: str) -> float:
    """Convert a text to a number, NaN if it is not a number. Exponents of Fortran (1.0D-03, 1.0-103) are understood."""
    from quipu.modeling.documents import number_of

    text = text.strip()
    if fortran := _FORTRAN.fullmatch(text):
        text = f"{fortran[1]}e{fortran[2] or fortran[3]}"
    return math.nan if (number := number_of(text)) is None else number


def _csv(source: Path, names: Collection[str]) -> Table:
    import pyarrow as pa
    from pyarrow import csv as arrow
    from quipu.modeling.limits import current, reading_file
    from quipu.report.formats.extrap.content import decode

    with reading_file(source, special=True) as content:
        cells = sum(content.count(mark.encode()) for mark in (*_MARKS, "\n"))
        current().spend(len(content) + ROW_BYTES * cells)
        text = decode(content, source)
        given = _SEPARATOR.match(text)
        body = text[given.end() :] if given else text
        head = body.split("\n", 1)[0]
        if not head.strip():
            raise FormatError(source, "is empty: a line of column names and lines of values are needed")
        mark = (given[1] or given[2]) if given else max(_MARKS, key=head.count)
        owned = pa.BufferOutputStream()  # memory of Arrow, which its threads can release without the interpreter
        owned.write(body.encode())
        buffer = owned.getvalue()

        def read(types: dict[str, Any] | None) -> Any:
            return arrow.read_csv(
                pa.BufferReader(buffer),
                parse_options=arrow.ParseOptions(delimiter=mark),
                convert_options=arrow.ConvertOptions(strings_can_be_null=True, column_types=types),
            )

        lines = _Lines(body, mark, 1 if given else 0)
        try:
            table = read(None)
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise lines.uneven(source) or error from None
            columns = next(csv.reader(io.StringIO(body), delimiter=mark))
            # Arrow derives the types from the first million bytes. Here a text follows after them.
            table = read(dict.fromkeys(columns, pa.string()))
        return _table(source, table, names, lines)


@dataclass(frozen=True)
class _Lines:
    """The lines of a CSV file. mark: the separator. before: number of skipped lines before the header."""

    text: str
    mark: str
    before: int

    def of(self, row: int) -> int | None:
        """Return the line number (from 1) of a row of values (from 0); None if there is no such row."""
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.mark)
        for place, _ in enumerate(line for line in reader if line):
            if place == row + 1:
                return reader.line_num + self.before
        return None

    def place(self, row: int) -> str:
        """Return a text such as "line 7" for a row of values (from 0)."""
        line = self.of(row)
        return f"row {row}" if line is None else f"line {line}"

    def uneven(self, source: Path) -> FormatError | None:
        """Return the error for the first line whose number of values differs from the header; None if there is none."""
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.mark)
        lines = ((reader.line_num + self.before, line) for line in reader if line)
        try:
            _, names = next(lines)
            for number, line in lines:
                if len(line) != len(names):
                    values = counted(len(line), "value", "values")
                    columns = counted(len(names), "column", "columns")
                    shown = _short(self.mark.join(line))
                    return FormatError(source, f"{shown} has {values}, and the first line names {columns}", number)
        except (csv.Error, StopIteration):
            pass
        return None


def _parquet(source: Path) -> Any:
    import pyarrow.parquet as pq
    from quipu.modeling.limits import current, reading_file

    from ...archive.pages import count_pages

    with reading_file(source) as content:
        file = io.BytesIO(content)
        try:
            read = pq.ParquetFile(file, pre_buffer=False)
            current().spend(ROW_BYTES * max(read.metadata.num_rows, 0) * read.metadata.num_columns)
            count_pages(io.BytesIO(content), read.metadata, read.schema_arrow.names, current())
            return read.read(use_threads=False)  # for the reason see archive.tables
        except (OSError, KeyError, IndexError) as error:
            raise FormatError(source, f"cannot be read, it is truncated or damaged: {error}") from error


def _table(source: Path, table: Any, names: Collection[str], lines: _Lines | None) -> Table:
    headings = [name.strip() for name in table.column_names]
    unnamed = [at for at, name in enumerate(headings) if _UNNAMED.fullmatch(name) and name not in names]
    notes = [f"{_ordinal(headings, at)} and is left out (row numbers of a data frame?)" for at in unnamed]
    if twice := [name for name, count in Counter(headings).items() if count > 1 and not _UNNAMED.fullmatch(name)]:
        places = " and ".join(str(at + 1) for at, name in enumerate(headings) if name == twice[0])
        also = f"; {_ordinal(headings, unnamed[0])}" if unnamed else ""
        raise FormatError(source, f"has several columns called {twice[0]!r}: {places}{also}")
    columns = {}
    for at, name in enumerate(headings):
        if at not in unnamed:
            columns[name], note = _column(source, name, table.column(at), name in names, lines)
            notes += note
    if not columns:
        raise FormatError(source, "has no column with a name: the first line must hold the names of the columns")
    return Table(columns, tuple(notes)) if lines is None else Table(columns, tuple(notes), place=lines.place)


def _ordinal(headings: list[str], at: int) -> str:
    called = f" ({headings[at]})" if headings[at] else ""
    return f"column {at + 1} of {len(headings)} has no name{called}"


def _column(source: Path, name: str, column: Any, is_name: bool, lines: _Lines | None) -> tuple[Column, list[str]]:
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64), []
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), []
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = [value or "" for value in column.to_pylist()]
        if is_name and any(map(_way, texts)):
            return texts, []
        return _numbers_or_texts(source, name, texts, lines)
    row, value = next((row, one.as_py()) for row, one in enumerate(column) if one.is_valid)
    raise FormatError(
        source,
        f"column {name!r} holds {_short(str(value))} ({kind}): numbers or texts are needed; to leave the column out, "
        "name the others in --parameters",
        _line(lines, row),
    )


def _numbers_or_texts(source: Path, name: str, texts: list[str], lines: _Lines | None) -> tuple[Column, list[str]]:
    """Return the texts as numbers if at most one in ten is not a number (such as n/a); otherwise return the texts.

    The second result contains a note if some texts are no numbers. Raises FormatError if all but one in ten are
    numbers, but some have a decimal comma or separators of thousands.
    """
    import numpy as np

    numbers = np.array([number_or_nan(text) for text in texts], dtype=np.float64)
    given = np.array([bool(text.strip()) for text in texts], dtype=bool)
    wrong = np.flatnonzero(given & np.isnan(numbers))
    if not given.any():
        return numbers, []
    other = [row for row in wrong.tolist() if _way(texts[row])]
    if other and (len(wrong) - len(other)) * 10 <= given.sum():
        text = texts[other[0]]
        raise FormatError(
            source,
            f"column {name!r} holds {_short(text)}, a number with {_way(text)}: write numbers as 1234.5; "
            f"for a column of names, add --categorical {in_quotes(name)}",
            _line(lines, other[0]),
        )
    row = int(wrong[0]) if len(wrong) else 0
    where = f" (line {line})" if len(wrong) and (line := _line(lines, row)) else ""
    if len(wrong) * 10 <= given.sum():
        note = f"{name} holds {_short(texts[row])}{where}, which is not a number: treated as missing"
        return numbers, [note] if len(wrong) else []
    if len(wrong) < given.sum():
        return texts, [f"{name} contains texts such as {_short(texts[row])}{where}: all its values count as names"]
    return texts, []


def _way(text: str) -> str:
    """Return the name of the notation of a number that float() cannot read; "" if the text is no such number."""
    text = text.strip()
    if _COMMA.fullmatch(text):
        return "a decimal comma"
    return "separators of thousands" if _GROUPED.fullmatch(text) else ""


def _line(lines: _Lines | None, row: int) -> int | None:
    return None if lines is None else lines.of(row)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
