# SPDX-License-Identifier: Apache-2.0
"""The tables of count classes in a run archive: their execution counts, and the effort of each class by source line.

A count class is a set of basic blocks of one function that are always executed equally often (see `CountClass`).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.metrics import BY_PASS, METRICS, WEIGHTED

from .checksums import check_files, is_there
from .metadata import RunMetadata
from .run import ClassCounts, CountClass, SourceEffort, SourceLine
from .tables import TableReader, write_table

COUNTS = "classes.parquet"
PLACES = "places.parquet"
LINES = "source.parquet"
"""The table of the effort of source lines. Only archives of older versions contain it."""

_TEXTS = ("function", "name", "file")
_SEPARATOR = "\n"  # separates names of functions, which contain no newline
_NO_CLASS = -1


def write_classes(folder: Path, counts: ClassCounts) -> None:
    """Write the tables into the folder of an unfinished archive. Raises OSError."""
    write_table(
        folder / COUNTS,
        {
            "callpath": ("int32", counts.callpath),
            "class": ("int32", counts.number),
            "count": ("int64", counts.total),
            "min": ("int64", counts.lowest),
            "max": ("int64", counts.highest),
        },
    )
    classes = [counts.classes[number] for number in counts.place_class.tolist()]
    lines = [counts.lines[number] for number in counts.place_line.tolist()]
    write_table(
        folder / PLACES,
        {
            "class": ("int32", counts.place_class),
            "within": ("int32", np.array([entry.within for entry in classes], dtype=np.int64)),
            "depth": ("int32", np.array([entry.depth for entry in classes], dtype=np.int64)),
            "calls": ("str", [_SEPARATOR.join(entry.calls) for entry in classes]),
            "function": ("str", [line.function for line in lines]),
            "name": ("str", [line.name for line in lines]),
            "file": ("str", [line.file for line in lines]),
            "line": ("int32", np.array([line.line for line in lines], dtype=np.int64)),
            **{name: ("int64", values) for name, values in counts.effort.items()},
        },
    )


def read_classes(archive: Path, metadata: RunMetadata, tree: CallTree) -> ClassCounts | None:
    """Read the count classes of a run archive; None if it has none. Raises FormatError for a damaged table.

    metadata, tree: of the same archive.
    """
    if not is_there(archive / COUNTS):
        return None
    check_files(archive, [COUNTS, PLACES])
    names = source_metrics(metadata.metrics)
    numbers = dict.fromkeys(("class", "within", "depth", "line"), "int32")
    places = TableReader(
        archive / PLACES, {**numbers, "calls": "str", **dict.fromkeys(_TEXTS, "str"), **dict.fromkeys(names, "int64")}
    )
    place_class = places.integers("class", 0)
    places.require(bool((np.diff(place_class) >= 0).all()), "is not sorted by class: it is damaged")
    first = np.flatnonzero(np.diff(place_class, prepend=_NO_CLASS))
    count = first.size
    places.require(bool((place_class[first] == np.arange(count)).all()), "lacks classes: it is damaged")
    within, depth = places.integers("within", _NO_CLASS, max(count, 0)), places.integers("depth", 0)
    calls = places.texts("calls")
    classes = tuple(
        CountClass(int(within[row]), int(depth[row]), tuple(calls[row].split(_SEPARATOR)) if calls[row] else ())
        for row in first.tolist()
    )
    known: dict[SourceLine, int] = defaultdict(lambda: len(known))
    columns = (*(places.texts(name) for name in _TEXTS), places.integers("line", 0).tolist())
    place_line = np.array([known[SourceLine(*row)] for row in zip(*columns, strict=True)], dtype=np.int64)
    counts = TableReader(
        archive / COUNTS, {"callpath": "int32", "class": "int32", **dict.fromkeys(("count", "min", "max"), "int64")}
    )
    return ClassCounts(
        callpath=counts.integers("callpath", 0, len(tree)),
        number=counts.integers("class", 0, count),
        total=counts.integers("count", 0),
        lowest=counts.integers("min", 0),
        highest=counts.integers("max", 0),
        classes=classes,
        place_class=place_class,
        place_line=place_line,
        lines=tuple(known),
        effort={name: places.integers(name) for name in names},
    )


def read_source(archive: Path, metadata: RunMetadata, tree: CallTree) -> SourceEffort | None:
    """Read the effort of source lines of a run archive; None if the archive contains no source lines.

    metadata, tree: of the same archive. Raises FormatError for a damaged table.
    """
    counts = read_classes(archive, metadata, tree)
    if counts is not None:
        return counts.source()
    path = archive / LINES
    if not is_there(path):
        return None
    check_files(archive, [LINES])
    names = source_metrics(metadata.metrics)
    table = TableReader(
        path, {"callpath": "int32", **dict.fromkeys(_TEXTS, "str"), "line": "int32", **dict.fromkeys(names, "int64")}
    )
    columns = (*(table.texts(name) for name in _TEXTS), table.integers("line", 0).tolist())
    numbers: dict[SourceLine, int] = defaultdict(lambda: len(numbers))
    line = np.array([numbers[SourceLine(*row)] for row in zip(*columns, strict=True)], dtype=np.int64)
    metrics = {name: table.integers(name, 0) for name in names}
    return SourceEffort(table.integers("callpath", 0, len(tree)), line, tuple(numbers), metrics)


def source_metrics(metrics: Iterable[Metric]) -> list[str]:
    """Return the names of the metrics that are known for source lines: "blocks" and the effort metrics after it.

    The compiler pass computes them. Runs of older versions contain fewer of them.
    """
    names = [metric.name for metric in metrics]
    first = names.index("blocks") if "blocks" in names else len(names)
    others = METRICS.keys() - set(BY_PASS)
    return list(itertools.takewhile(lambda name: name not in others, names[first : first + WEIGHTED]))
