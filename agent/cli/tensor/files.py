# SPDX-License-Identifier: Apache-2.0
"""Read and write the files of `quipu tensor`: data in tables and experiments; models as a JSON file and an npz file."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.modeling.errors import FormatError, ModelingError, UsageError

from ..quoting import STAND_IN, Quoted, in_quotes
from .tables import Table, number_or_nan, read_table

if TYPE_CHECKING:
    from quipu.modeling.tensor.columns import Column, ColumnModel

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def read_data(source: Path, metric: str = "time", names: Collection[str] = ()) -> Table:
    """Read a CSV or Parquet file, or an experiment, as a table.

    The table of an experiment has one row per run, with its parameters and the value of `metric` for the whole program.
    names: columns of a file whose values are names (see `read_table`). Raises FormatError with the name of the file.
    """
    if source.is_dir() or source.suffix.lower() not in SUFFIXES:
        return _experiment(source, metric)
    return read_table(source, names)


@contextmanager
def naming(source: Path) -> Iterator[None]:
    """Convert a ModelingError in this context, which is about the columns of a table, to a FormatError of its file."""
    try:
        yield
    except FormatError:
        raise
    except ModelingError as error:
        raise FormatError(source, str(error)) from error


def _experiment(source: Path, metric: str) -> Table:
    import numpy as np

    from ...load.measurements import load

    if not source.exists():
        raise FormatError(source, "the file or experiment does not exist")
    experiment = load(source)
    experiment.metric(metric)
    known = np.isfinite(experiment.values[metric]).any(axis=0)
    totals = experiment.program(metric)
    runs = [(int(number), totals[number, repetition]) for repetition, number in np.argwhere(known.T)]
    if not experiment.parameters:
        raise ModelingError(f"{source}: the runs have no parameters to model")
    points = experiment.points[[number for number, _ in runs]]
    columns: dict[str, Column] = {name: points[:, at] for at, name in enumerate(experiment.parameters)}
    columns[metric] = np.array([value for _, value in runs])
    return Table(columns, quality=experiment.quality)


def archive_of(path: Path) -> Path:
    """Return the path of the npz file that belongs to the JSON file of a model."""
    return path.with_suffix(".npz")


def require_model_place(path: Path, force: bool) -> None:
    """Raise UsageError if `write_model` would refuse to write to this path. Called before long computations."""
    from quipu.modeling.tensor.storage import KIND

    from ..output import require_own

    if path.suffix == ".npz":
        raise UsageError(f"-o {path}: name the JSON file; the .npz file gets the same name")
    archive = archive_of(path)
    if archive.exists() and not path.exists() and not force:
        raise UsageError(f"{archive} exists without a model {path.name}: give another name with -o, or --force")
    require_own(path, lambda old: KIND in old[:200], "tensor model", force)


def write_model(path: Path, model: ColumnModel, force: bool) -> int:
    """Write both files of a model, and return their total size in bytes.

    path: the JSON file. force: replace a file that is not a model. Raises UsageError if a file must not be replaced.
    """
    import json

    from quipu.modeling.tensor.storage import stored

    from ..output import write_together

    require_model_place(path, force)
    document, content = stored(model)
    text = json.dumps(document, ensure_ascii=False) + "\n"
    write_together({archive_of(path): content, path: text})
    return len(text.encode()) + len(content)


def read_model(path: Path) -> ColumnModel:
    """Read the model in a file of `quipu tensor fit`. Raises FormatError with the name of the file."""
    from quipu.modeling.documents import check_document, json_of
    from quipu.modeling.limits import reading_file
    from quipu.modeling.tensor.storage import expect_model, restored

    if path.is_dir():
        raise FormatError(path, "is a folder: give the JSON file that quipu tensor fit wrote")
    with reading_file(path) as content:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(path, "is not UTF-8 text: give the JSON file of a tensor model") from error
        check_document(content)
        document = expect_model(json_of(text, path), path)
    with reading_file(archive_of(path)) as content:
        return restored(document, content, path)


def codes_of(model: ColumnModel, option: str, texts: list[str]) -> dict[str, list[float]]:
    """Return the values of each parameter, from texts such as n=1,2 and layout=dgz,ppn=4.

    option: the option that contains the texts. The value of a text category is its code: its index in `model.levels`.
    Names and values with a comma or an equals sign must be in double quotes: layout="col,major". Raises UsageError with
    the option and the text.
    """
    result: dict[str, list[float]] = {}
    next_one = re.compile(rf",(?=\s*(?:{STAND_IN}|{'|'.join(map(re.escape, model.parameters))})\s*=)")
    for given in texts:
        quoted = Quoted(given)
        for text in next_one.split(quoted.text):
            name, equals, values = text.rpartition("=") if text.count("=") > 1 else text.partition("=")
            name, where = quoted.original(name), f"{option} {given!r}"
            if not equals or name not in model.parameters:
                known = ", ".join(map(in_quotes, model.parameters))
                raise UsageError(f"{where}: write NAME=VALUE with a parameter of: {known}{_how_to_quote(option)}")
            if name in result:
                raise UsageError(f"{where}: parameter {name} is given twice")
            result[name] = [_code(model, name, quoted.original(value), option, where) for value in values.split(",")]
    return result


def _how_to_quote(option: str) -> str:
    return f"""; write a name or value with a comma or = in double quotes: {option} '"a,b"="c,d"'"""


def _code(model: ColumnModel, name: str, value: str, option: str, where: str) -> float:
    from quipu.modeling.tensor.columns import measured_values

    if name in model.levels:
        levels = model.levels[name]
        if value not in levels:
            known, how = ", ".join(map(in_quotes, levels)), _how_to_quote(option)
            raise UsageError(f"{where}: {value!r} was not measured; choose one of: {known}{how}")
        return float(levels.index(value))
    number = number_or_nan(value)
    if not math.isfinite(number):
        raise UsageError(f"{where}: {value!r} is not a finite number")
    if name in model.categorical and number not in (measured := measured_values(model, name)):
        raise UsageError(
            f"{where}: {value!r} was not measured; choose one of: {', '.join(f'{one:g}' for one in measured)}"
        )
    return number
