"""Files of `quipu tensor`: data in CSV, Parquet or an experiment, and models in JSON with an npz beside it."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quipu.modeling.errors import FormatError, ModelingError, UsageError

from ..quoting import STAND_IN, Quoted, in_quotes

if TYPE_CHECKING:
    from quipu.modeling.tensor.columns import Column, ColumnModel

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
ROW_BYTES = 24
"""Memory for a value: as read, and as the models take it."""


def read_data(source: Path, metric: str = "time") -> dict[str, Column]:
    """Return the columns of a CSV or Parquet file, or of an experiment: its parameters and the program's metric.

    Numbers are arrays with NaN where they are missing, texts are lists with "". Raises FormatError naming the file.
    """
    if source.is_dir() or source.suffix.lower() not in SUFFIXES:
        return _experiment(source, metric)
    import pyarrow as pa

    try:
        table = _parquet(source) if source.suffix.lower() in (".parquet", ".pq") else _csv(source)
        if duplicates := {name for name in table.column_names if table.column_names.count(name) > 1}:
            raise FormatError(source, f"has several columns called {sorted(duplicates)[0]!r}")
        return {name: _column(source, name, table.column(name)) for name in table.column_names}
    except (pa.ArrowException, ValueError) as error:
        raise FormatError(source, f"cannot be read: {error}") from error


@contextmanager
def naming(source: Path) -> Iterator[None]:
    """Errors about the columns of a table name its file."""
    try:
        yield
    except FormatError:
        raise
    except ModelingError as error:
        raise FormatError(source, str(error)) from error


def _csv(source: Path) -> Any:
    import pyarrow as pa
    from pyarrow import csv
    from quipu.modeling.limits import current, reading_file

    with reading_file(source, special=True) as content:
        current().spend(len(content) + ROW_BYTES * (content.count(b",") + content.count(b"\n")))
        head = content.split(b"\n", 1)[0]
        marks = {mark: head.count(mark.encode()) for mark in (",", ";", "\t")}
        mark = max(marks, key=lambda one: marks[one])
        if not head.strip():
            raise FormatError(source, "is empty: a line of column names and lines of values are needed")
        owned = pa.BufferOutputStream()  # memory that a thread of Arrow lets go of without the interpreter
        owned.write(content)
        return csv.read_csv(
            pa.BufferReader(owned.getvalue()),
            parse_options=csv.ParseOptions(delimiter=mark),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )


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
            return read.read(use_threads=False)  # as archive.tables reads
        except (OSError, KeyError, IndexError) as error:
            raise FormatError(source, f"cannot be read, it is truncated or damaged: {error}") from error


def _column(source: Path, name: str, column: Any) -> Column:
    import numpy as np
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _numbers_or_texts([value or "" for value in column.to_pylist()])
    raise FormatError(source, f"column {name!r} holds {kind}: numbers or texts are needed")


def _numbers_or_texts(texts: list[str]) -> Column:
    """Return numbers where at most one text in ten is none, such as n/a; else the texts."""
    import numpy as np

    numbers = np.array([_number(text) for text in texts], dtype=np.float64)
    given = sum(1 for text in texts if text)
    wrong = sum(1 for text, number in zip(texts, numbers, strict=True) if text and math.isnan(number))
    return numbers if given and wrong * 10 <= given else texts


def _number(text: str) -> float:
    from quipu.modeling.documents import number_of

    return math.nan if (number := number_of(text.strip())) is None else number


def _experiment(source: Path, metric: str) -> dict[str, Column]:
    import numpy as np

    from ..measurements import load

    if not source.exists():
        raise FormatError(source, "there is no such file or experiment")
    experiment = load(source)
    experiment.metric(metric)
    known = np.isfinite(experiment.values[metric]).any(axis=0)
    totals = experiment.program(metric)
    runs = [(int(number), totals[number, repetition]) for repetition, number in np.argwhere(known.T)]
    if not experiment.parameters:
        raise ModelingError(f"{source}: the runs have no parameters to model")
    points = experiment.points[[number for number, _ in runs]]
    columns: dict[str, Column] = {name: points[:, at] for at, name in enumerate(experiment.parameters)}
    return columns | {metric: np.array([value for _, value in runs])}


def archive_of(path: Path) -> Path:
    """Return the file of arrays that belongs to a file of a model."""
    return path.with_suffix(".npz")


def require_model_place(path: Path, force: bool) -> None:
    """Raise UsageError if `write_model` would refuse to write there: before work that takes long."""
    from quipu.modeling.tensor.storage import KIND

    from ..output import require_own

    if path.suffix == ".npz":
        raise UsageError(f"-o {path}: name the JSON file; the .npz is written beside it")
    archive = archive_of(path)
    if archive.exists() and not path.exists() and not force:
        raise UsageError(f"{archive} exists and belongs to no model {path.name}: give another name with -o, or --force")
    require_own(path, lambda old: KIND in old[:200], "tensor model", force)


def write_model(path: Path, model: ColumnModel, force: bool) -> int:
    """Write a model, both files, and return their bytes. Raises UsageError for what must not be replaced."""
    import json

    from quipu.modeling.tensor.storage import stored

    from ..output import write_together

    require_model_place(path, force)
    document, content = stored(model)
    text = json.dumps(document, ensure_ascii=False) + "\n"
    write_together({archive_of(path): content, path: text})
    return len(text.encode()) + len(content)


def read_model(path: Path) -> ColumnModel:
    """Return the model in a file that `quipu tensor fit` wrote. Raises FormatError that names the file."""
    from quipu.modeling.documents import check_document, json_of
    from quipu.modeling.limits import reading_file
    from quipu.modeling.tensor.storage import restored

    with reading_file(path) as content:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(path, "is not UTF-8 text: give the JSON file of a tensor model") from error
        check_document(content)
        document = json_of(text, path)
    with reading_file(archive_of(path)) as content:
        return restored(document, content, path)


def codes_of(model: ColumnModel, option: str, texts: list[str]) -> dict[str, list[float]]:
    """Return values by parameter, codes where it is categorical, from texts such as n=1,2 and layout=dgz,ppn=4.

    Names and values that hold a comma or an equals sign stand in double quotes: layout="col,major". Raises UsageError,
    naming the option and the text.
    """
    result: dict[str, list[float]] = {}
    next_one = re.compile(rf",(?=\s*(?:{STAND_IN}|{'|'.join(map(re.escape, model.parameters))})\s*=)")
    for given in texts:
        quoted = Quoted(given)
        for text in next_one.split(quoted.text):
            name, equals, values = text.rpartition("=") if text.count("=") > 1 else text.partition("=")
            name, where = quoted.meant(name), f"{option} {given!r}"
            if not equals or name not in model.parameters:
                known = ", ".join(map(in_quotes, model.parameters))
                raise UsageError(f"{where}: write NAME=VALUE with a parameter of: {known}{_how_to_quote(option)}")
            if name in result:
                raise UsageError(f"{where}: parameter {name} is given twice")
            result[name] = [_code(model, name, quoted.meant(value), option, where) for value in values.split(",")]
    return result


def _how_to_quote(option: str) -> str:
    return f"""; one with a comma or = stands in double quotes: {option} '"a,b"="c,d"'"""


def _code(model: ColumnModel, name: str, value: str, option: str, where: str) -> float:
    from quipu.modeling.tensor.columns import measured_values

    if name in model.levels:
        levels = model.levels[name]
        if value not in levels:
            known, how = ", ".join(map(in_quotes, levels)), _how_to_quote(option)
            raise UsageError(f"{where}: {value!r} was not measured; there are: {known}{how}")
        return float(levels.index(value))
    number = _number(value)
    if not math.isfinite(number):
        raise UsageError(f"{where}: {value!r} is no finite number")
    if name in model.categorical and number not in (measured := measured_values(model, name)):
        raise UsageError(f"{where}: {value!r} was not measured; there are: {', '.join(f'{one:g}' for one in measured)}")
    return number
