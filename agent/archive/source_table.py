# SPDX-License-Identifier: Apache-2.0
"""The table of source lines of a run archive: effort per call path and line."""

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
from .run import SourceEffort, SourceLine
from .tables import TableReader, write_table

FILE = "source.parquet"


def write_source(folder: Path, source: SourceEffort) -> None:
    """Write the table of an archive that is being made. Raises OSError."""
    lines = [source.lines[number] for number in source.line.tolist()]
    write_table(
        folder / FILE,
        {
            "callpath": ("int32", source.callpath),
            "function": ("str", [line.function for line in lines]),
            "name": ("str", [line.name for line in lines]),
            "file": ("str", [line.file for line in lines]),
            "line": ("int32", np.array([line.line for line in lines], dtype=np.int64)),
            **{name: ("int64", values) for name, values in source.metrics.items()},
        },
    )


def read_source(archive: Path, metadata: RunMetadata, tree: CallTree) -> SourceEffort | None:
    """Read the source lines of a run archive; None if it has none. Raises FormatError as `read_archive` does."""
    path = archive / FILE
    if not is_there(path):
        return None
    check_files(archive, [FILE])
    names = source_metrics(metadata.metrics)
    texts = dict.fromkeys(("function", "name", "file"), "str")
    table = TableReader(path, {"callpath": "int32", **texts, "line": "int32", **dict.fromkeys(names, "int64")})
    columns = (table.texts("function"), table.texts("name"), table.texts("file"), table.integers("line", 0).tolist())
    numbers: dict[SourceLine, int] = defaultdict(lambda: len(numbers))
    line = np.array([numbers[SourceLine(*row)] for row in zip(*columns, strict=True)], dtype=np.int64)
    metrics = {name: table.integers(name, 0) for name in names}
    return SourceEffort(table.integers("callpath", 0, len(tree)), line, tuple(numbers), metrics)


def source_metrics(metrics: Iterable[Metric]) -> list[str]:
    """Return the names of the metrics that source lines have, of those of a run: fewer in one of an older version."""
    names = [metric.name for metric in metrics]
    first = names.index("blocks") if "blocks" in names else len(names)
    others = METRICS.keys() - set(BY_PASS)
    return list(itertools.takewhile(lambda name: name not in others, names[first : first + WEIGHTED]))
