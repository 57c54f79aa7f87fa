# SPDX-License-Identifier: Apache-2.0
"""Baselines: the effort of an experiment in one JSON file that is small enough to be stored with the sources.

The JSON object has "format": "quipu-baseline", "schema": 1, and the keys "name", "parameters", "points", "over_ranks",
"metrics", "regions", "callpaths", "values" and "lines".

"values" contains, for each metric, one entry per call path. An entry is null if the metric is 0 at all configurations,
otherwise a list with one element per configuration. An element is a number, [minimum, maximum] if repetitions differ,
or null if the value was not measured. "lines" contains the effort of source lines by configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from quipu.modeling.documents import Count, Number, Real, is_parameter, typed
from quipu.modeling.errors import FormatError
from quipu.modeling.expectations import highest, lowest
from quipu.modeling.experiment import Experiment, FloatArray, Metric
from quipu.modeling.limits import reading
from quipu.modeling.tree_document import PathEntry, RegionEntry, tree_json, tree_of

from ..archive.run import SourceEffort, SourceLine
from .sides import Point, RunLines, Side

FORMAT, SCHEMA = "quipu-baseline", 1
_BEGINNING = re.compile(rf'\s*\{{\s*"format": *"{FORMAT}"')


def to_baseline(side: Side) -> dict[str, Any]:
    """Return the effort of a side as a JSON object. Costs, such as time, are left out."""
    data = side.experiment
    metrics = [name for name in data.values if data.metrics[name].is_effort]
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "name": data.name,
        "parameters": list(data.parameters),
        "points": [[_number(value) for value in row] for row in data.points.tolist()],
        "over_ranks": data.over_ranks,
        "metrics": [asdict(data.metrics[name]) for name in metrics],
        **tree_json(data.tree),
        "values": {name: [_entry(values) for values in data.values[name]] for name in metrics},
        "lines": [
            _lines_json(place, kept)
            for place, point in enumerate(data.points.tolist())
            if (kept := side.run_lines(tuple(point))) is not None
        ],
    }


def _number(value: float) -> float | int | None:
    if np.isnan(value):
        return None
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _entry(values: FloatArray) -> list[Any] | None:
    low, high = lowest(values), highest(values)
    if not high.any() and not low.any():
        return None
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [_number(a) if a == b or np.isnan(a) else [_number(a), _number(b)] for a, b in pairs]


def _lines_json(place: int, kept: RunLines) -> dict[str, Any]:
    number = {path: at for at, path in enumerate(kept.keys)}
    return {
        "configuration": place,
        "ranks": kept.ranks,
        "paths": list(kept.keys.values()),
        "lines": [asdict(line) for line in kept.effort.lines],
        "callpath": [number[path] for path in kept.effort.callpath.tolist()],
        "line": kept.effort.line.tolist(),
        "metrics": {name: values.tolist() for name, values in kept.effort.metrics.items()},
    }


Large = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Value = Number | list[Real] | None


@dataclass(frozen=True)
class _Line:
    function: str
    name: str
    file: str
    line: Count


@dataclass(frozen=True)
class _Lines:
    configuration: Count
    ranks: Count
    paths: list[tuple[str, ...]]
    lines: list[_Line]
    callpath: list[Count]
    line: list[Count]
    metrics: dict[str, list[Large]]


@dataclass(frozen=True)
class _Document:
    name: str
    parameters: list[str]
    points: list[list[Real]]
    metrics: list[Metric]
    regions: list[RegionEntry]
    callpaths: list[PathEntry]
    values: dict[str, list[list[_Value] | None]]
    over_ranks: Literal["mean", "max", "sum"] = "mean"
    lines: list[_Lines] = field(default_factory=list)


def is_baseline(path: Path) -> bool:
    """Return whether a file begins like a baseline. Raises FormatError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return is_text_of_baseline(file.read(200).decode("utf-8", "replace"))
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error


def is_text_of_baseline(text: str) -> bool:
    """Return whether a text begins with the "format" key of a baseline."""
    return _BEGINNING.match(text) is not None


def from_baseline(data: Mapping[str, Any], source: Path) -> Side:
    """Return the side from the JSON object of a baseline. Raises FormatError with the file `source` and the reason."""
    if data.get("format") != FORMAT:
        raise FormatError(source, f'is not a baseline: "format" is {data.get("format")!r}, not "{FORMAT}"')
    if data.get("schema") != SCHEMA:
        raise FormatError(
            source,
            f"has schema {data.get('schema')!r}, this Quipu reads schema {SCHEMA}: write it again with "
            "quipu check --update-baseline",
        )
    document = typed(data, _Document, source)
    tree = tree_of(document.regions, document.callpaths, source)
    names = tuple(document.parameters)
    if len(set(names)) < len(names) or not all(map(is_parameter, names)):
        raise FormatError(source, "parameters: names must differ, and must not be empty")
    if any(len(point) != len(names) for point in document.points) or not document.points:
        raise FormatError(source, "points: must not be empty, and each must contain a number for each parameter")
    metrics = {metric.name: metric for metric in document.metrics}
    shape = (len(tree), len(document.points), 2)
    with reading(source) as cost:
        cost.spend(8 * math.prod(shape) * len(document.values))
    values = {}
    for name, entries in document.values.items():
        if name not in metrics or len(entries) != shape[0]:
            raise FormatError(source, f"values of {name!r}: unknown metric, or entries and call paths differ in number")
        rows = [_values(entry, shape[1], source, name) for entry in entries]
        values[name] = np.array(rows, dtype=np.float64).reshape(shape)
    points = np.array(document.points, dtype=np.float64).reshape(len(document.points), len(names))
    experiment = Experiment(
        document.name, names, points, tree, {name: metrics[name] for name in values}, values, document.over_ranks
    )
    kept = {_place(points, record, source): _run_lines(record, source) for record in document.lines}
    return Side(str(source), experiment, None, kept)


def _values(entry: list[_Value] | None, configurations: int, source: Path, metric: str) -> FloatArray:
    """Return the minimum and maximum of each configuration, shape (configurations, 2); NaN if not measured.

    Raises FormatError with `source` if `entry` has another form.
    """
    if entry is None:
        return np.zeros((configurations, 2))
    pairs = [[math.nan] * 2 if one is None else one if isinstance(one, list) else [one, one] for one in entry]
    if len(pairs) != configurations or any(len(pair) != 2 for pair in pairs):
        raise FormatError(source, f"values of {metric!r}: must contain one or two numbers for each configuration")
    return np.array(pairs, dtype=np.float64)


def _place(points: FloatArray, record: _Lines, source: Path) -> Point:
    if record.configuration >= len(points):
        raise FormatError(source, f"lines: the configuration {record.configuration} does not exist")
    return tuple(points[record.configuration].tolist())


def _run_lines(record: _Lines, source: Path) -> RunLines:
    rows = len(record.callpath)
    if len(record.line) != rows or any(len(values) != rows for values in record.metrics.values()):
        raise FormatError(source, "lines: columns of different lengths")
    if max(record.callpath, default=0) >= max(1, len(record.paths)) or max(record.line, default=0) >= max(
        1, len(record.lines)
    ):
        raise FormatError(source, "lines: a row refers to a call path or a line that does not exist")
    effort = SourceEffort(
        np.array(record.callpath, dtype=np.int64),
        np.array(record.line, dtype=np.int64),
        tuple(SourceLine(line.function, line.name, line.file, line.line) for line in record.lines),
        {name: np.array(values, dtype=np.int64) for name, values in record.metrics.items()},
    )
    return RunLines(dict(enumerate(record.paths)), record.ranks, effort)
