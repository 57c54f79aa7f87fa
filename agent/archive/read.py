# SPDX-License-Identifier: Apache-2.0
"""Read run archives. An archive is a folder of Parquet tables and run.json; all content is checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.experiment import CallTree, Region, RegionKind
from quipu.modeling.limits import reading

from .checksums import check_files, is_archive, is_there
from .columns import RANKS, SKETCHES, STATISTICS, value_type
from .metadata import RunMetadata
from .run import RankRecord, RankStatistics, RunArchive, RunValues
from .run_json import from_json, read_json
from .sketch import MOST_BUCKETS, MOST_LEVELS, Sketches
from .tables import TableReader

_ID_LIMIT = 1 << 31
_TABLES = [f"{name}.parquet" for name in ("sketches", "regions", "callpaths", "values", "statistics", "ranks")]


def read_archive(path: Path | str, values: bool = True) -> RunArchive:
    """Read a run archive. values: whether to read the values of each rank; if not, `RunArchive.values` is None.

    The archive of a run with many ranks contains only statistics over the ranks: then `RunArchive.values` is None, too,
    and the statistics have sketches. Raises FormatError with the path of a file that is missing, truncated, damaged
    (wrong checksum), of another program or of another schema version.
    """
    path = Path(path)
    if not is_archive(path):
        raise FormatError(path, "is not a run archive (run.json is missing): give a folder written by `quipu run`")
    metadata = read_metadata(path)
    check_files(path, [name for name in _TABLES if values or name != "values.parquet"])
    tree = _read_tree(path)
    return RunArchive(
        metadata=metadata,
        tree=tree,
        values=_read_values(path, metadata, tree, values) if metadata.rank_columns else None,
        statistics=_read_statistics(path, metadata, tree),
        ranks=_read_ranks(path),
        path=path,
    )


def read_metric(archive: RunArchive, name: str) -> RunValues:
    """Read the values of one metric on each rank, for an archive that was read without values.

    Raises FormatError if the table is missing or damaged, KeyError for an unknown metric.
    """
    check_files(archive.path, ["values.parquet"])
    metadata = replace(archive.metadata, metrics=(archive.metrics[name],))
    table = TableReader(archive.path / "values.parquet", _value_columns(metadata))
    return _values(table, metadata, archive.tree)


def read_metadata(path: Path) -> RunMetadata:
    """Read only the run.json of the archive `path`. Raises FormatError if it is missing or damaged."""
    is_there(path / "run.json")
    check_files(path, ["run.json"])
    return from_json(path / "run.json", read_json(path / "run.json"))


def _read_tree(path: Path) -> CallTree:
    table = TableReader(
        path / "regions.parquet",
        {"region": "int32", "name": "str", "display": "str", "file": "str", "line": "int32", "kind": "int8"},
    )
    numbers = table.integers("region")
    table.require(bool(np.array_equal(numbers, np.arange(table.rows))), "column region is not 0, 1, 2, …")
    kinds = table.integers("kind", 0, len(RegionKind))
    columns = (table.texts("name"), table.texts("display"), kinds.tolist(), table.texts("file"))
    lines = table.integers("line", 0).tolist()
    regions = tuple(
        Region(name, display, RegionKind(kind), file, line)
        for name, display, kind, file, line in zip(*columns, lines, strict=True)
    )
    table.require(len({region.name for region in regions}) == len(regions), "two regions have the same name")
    table = TableReader(path / "callpaths.parquet", {"callpath": "int32", "parent": "int32", "region": "int32"})
    in_order = bool(np.array_equal(table.integers("callpath"), np.arange(table.rows)))
    table.require(in_order, "call paths are not in order")
    try:
        tree = CallTree(regions, table.integers("region"), table.integers("parent"))
    except ModelingError as error:
        raise FormatError(path / "callpaths.parquet", str(error)) from error
    with reading(path / "callpaths.parquet") as cost:
        cost.check_depth(int(tree.depth.max(initial=0)))  # names of call paths need memory proportional to depth²
    return tree


def _read_values(path: Path, metadata: RunMetadata, tree: CallTree, content: bool) -> RunValues | None:
    table = TableReader(path / "values.parquet", _value_columns(metadata), content)
    return _values(table, metadata, tree) if content else None


def _value_columns(metadata: RunMetadata) -> dict[str, str]:
    columns = {"callpath": "int32", "rank": "int32", "thread": "int32"}
    return columns | {metric.name: value_type(metric) for metric in metadata.metrics}


def _values(table: TableReader, metadata: RunMetadata, tree: CallTree) -> RunValues:
    return RunValues(
        callpath=table.integers("callpath", 0, len(tree)),
        rank=table.integers("rank", 0, _ID_LIMIT),
        thread=table.integers("thread", 0, _ID_LIMIT),
        metrics={
            metric.name: table.floats(metric.name) if metric.unit == "s" else table.integers(metric.name)
            for metric in metadata.metrics
        },
    )


def _read_statistics(path: Path, metadata: RunMetadata, tree: CallTree) -> dict[str, RankStatistics]:
    table = TableReader(path / "statistics.parquet", STATISTICS)
    paths = len(tree)
    expected = [metric.name for metric in metadata.metrics for _ in range(paths)]
    table.require(table.rows == len(expected), "holds another number of call paths or metrics than the archive")
    table.require(table.texts("metric") == expected, "its metrics differ from the metrics of run.json")
    order = np.tile(np.arange(paths), len(metadata.metrics))
    table.require(bool(np.array_equal(table.integers("callpath"), order)), "call paths are not in order")
    columns: dict[str, Any] = {name: table.integers(name, -1, _ID_LIMIT) for name in ("ranks", "min_rank", "max_rank")}
    columns |= {name: table.floats(name) for name in ("sum", "min", "max", "mean", "std")}
    sketches = {} if metadata.rank_columns else _read_sketches(path, metadata, paths)
    result = {}
    for index, metric in enumerate(metadata.metrics):
        part = {name: column[index * paths : (index + 1) * paths] for name, column in columns.items()}
        result[metric.name] = RankStatistics(**part, sketches=sketches.get(metric.name))
    return result


def _read_sketches(path: Path, metadata: RunMetadata, paths: int) -> dict[str, Sketches]:
    table = TableReader(path / "sketches.parquet", SKETCHES)
    names = np.array(table.texts("metric"), dtype=object)
    columns = {
        "callpath": table.integers("callpath", 0, max(paths, 1)),
        "level": table.integers("level", 0, MOST_LEVELS + 1),
        "bucket": table.integers("bucket", 0, 1 << 16),
        "count": table.integers("count", 1),
    }
    result = {}
    rows = 0
    for metric in metadata.metrics:
        cell, levels, bucket, count = (array[names == metric.name] for array in columns.values())
        ascending = bool(np.all(np.diff(cell << 16 | bucket) > 0))
        few = not cell.size or int(np.bincount(cell).max()) <= MOST_BUCKETS
        level = np.zeros(paths, dtype=np.int64)
        level[cell] = levels
        table.require(
            ascending and few and bool(np.array_equal(level[cell], levels)),
            f"the buckets of {metric.name} are damaged",
        )
        result[metric.name] = Sketches(level, cell, bucket, count)
        rows += int(cell.size)
    table.require(rows == table.rows, "has metrics that are not in run.json")
    return result


def _read_ranks(path: Path) -> tuple[RankRecord, ...]:
    table = TableReader(path / "ranks.parquet", RANKS)
    columns: list[list[str] | list[int]] = []
    for name, kind in RANKS.items():
        columns.append(table.texts(name) if kind == "str" else table.integers(name, 0).tolist())
    return tuple(RankRecord(*row) for row in zip(*columns, strict=True))
