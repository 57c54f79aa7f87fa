"""Run archives: one repetition of one configuration as a folder of Parquet tables and run.json.

An archive appears under its name only when it is complete on disk, and is never overwritten.
"""

from __future__ import annotations

import errno
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.experiment import CallTree, FloatArray, IntArray, Metric, Region, RegionKind

from .checksums import check_files, write_checksums
from .metadata import RunMetadata, configuration_name, from_json, read_json, to_json, write_json
from .sketch import MOST_BUCKETS, MOST_LEVELS, Sketches
from .source_effort import SourceEffort, write_source
from .tables import Column, TableReader, concatenated, fsync, write_table

_ID_LIMIT = 1 << 31
_TABLES = (
    "sketches.parquet",
    "regions.parquet",
    "callpaths.parquet",
    "values.parquet",
    "statistics.parquet",
    "ranks.parquet",
)
_STATISTICS = {
    "callpath": "int32",
    "metric": "str",
    "ranks": "int32",
    "sum": "float64",
    "min": "float64",
    "max": "float64",
    "mean": "float64",
    "std": "float64",
    "min_rank": "int32",
    "max_rank": "int32",
}
_SKETCHES = {"callpath": "int32", "metric": "str", "level": "int8", "bucket": "int32", "count": "int32"}
_RANKS = {
    "rank": "int32",
    "host": "str",
    "pid": "int32",
    "affinity": "str",
    "max_rss_bytes": "int64",
    "voluntary_switches": "int64",
    "involuntary_switches": "int64",
    "state": "str",
}


@dataclass(frozen=True, eq=False)
class RunValues:
    """Exclusive values per call path, rank and thread: one row per combination that occurs.

    callpath, rank, thread: int64 of shape (rows,); metrics: name → (rows,), float64 seconds or int64.
    """

    callpath: IntArray
    rank: IntArray
    thread: IntArray
    metrics: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class RankStatistics:
    """One metric over the ranks of a run, per call path; every array has shape (call paths,).

    Threads of a rank are combined first. A rank without the call path counts as 0; `ranks` says how many have it.
    A rank whose value is unknown (NaN) is left out. std is that of the population. min_rank and max_rank are the
    lowest ranks that have the smallest and the largest value, -1 where nothing is known. sketches: the distribution
    over the ranks; None when an archive was read that has the values of all ranks instead.
    """

    ranks: IntArray
    sum: FloatArray
    min: FloatArray
    max: FloatArray
    mean: FloatArray
    std: FloatArray
    min_rank: IntArray
    max_rank: IntArray
    sketches: Sketches | None = None

    def quantile(self, q: float) -> FloatArray:
        """Return the q-quantile over the ranks, shape (call paths,); NaN where nothing is known.

        Right to 2^(level - 5) of the value, level being that of the sketch. Raises ModelingError without sketches.
        """
        if self.sketches is None:
            raise ModelingError("this run has the values of all ranks: take the quantile of those")
        return self.sketches.quantile(q, self.min, self.max)


@dataclass(frozen=True)
class RankRecord:
    """One process of a run. state: "ended", "flushed", "running" (killed before its end) or "no profile"."""

    rank: int
    host: str = ""
    pid: int = 0
    affinity: str = ""
    max_rss_bytes: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    state: str = "ended"


@dataclass(frozen=True, eq=False)
class RunArchive:
    """One run, read or about to be written.

    values: None if only the statistics were asked for, or if the archive has no more (`metadata.rank_columns`).
    source: about to be written; `read_source` reads it.
    """

    metadata: RunMetadata
    tree: CallTree
    values: RunValues | None
    statistics: Mapping[str, RankStatistics]
    ranks: tuple[RankRecord, ...]
    path: Path = Path()
    source: SourceEffort | None = None

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the run by name."""
        return {metric.name: metric for metric in self.metadata.metrics}


def write_archive(archive: RunArchive, folder: Path) -> RunArchive:
    """Write a run into an experiment folder under the next free repetition number and return it as stored.

    The name is `p=4,n=100000.r1`; numbers are tried from `metadata.repetition` on. The folder gets its name by
    rename, when everything in it is on the disk: two runs at once never overwrite each other, and half an archive
    is never seen. Raises OSError, and then leaves nothing behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = configuration_name(archive.metadata.parameters)
    temporary = folder / f".tmp-{name}-{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        _write_tables(archive, temporary)
        repetition = archive.metadata.repetition
        while True:
            target = folder / f"{name}.r{repetition}"
            if not target.exists():
                archive = replace(archive, metadata=replace(archive.metadata, repetition=repetition), path=target)
                write_json(temporary / "run.json", to_json(archive.metadata), durable=True)
                write_checksums(temporary)
                fsync(temporary)
                if _rename(temporary, target):
                    break
            repetition += 1
        fsync(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return archive


def _rename(temporary: Path, target: Path) -> bool:
    """Give the folder its name; False if another run took the name meanwhile."""
    try:
        temporary.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    return True


def _write_tables(archive: RunArchive, folder: Path) -> None:
    tree, values = archive.tree, archive.values
    regions = tree.regions
    write_table(
        folder / "regions.parquet",
        {
            "region": ("int32", np.arange(len(regions))),
            "name": ("str", [region.name for region in regions]),
            "display": ("str", [region.display for region in regions]),
            "file": ("str", [region.file for region in regions]),
            "line": ("int32", np.array([region.line for region in regions], dtype=np.int64)),
            "kind": ("int8", np.array([region.kind.value for region in regions], dtype=np.int64)),
        },
    )
    write_table(
        folder / "callpaths.parquet",
        {
            "callpath": ("int32", np.arange(len(tree))),
            "parent": ("int32", tree.parent),
            "region": ("int32", tree.region),
        },
    )
    if values is not None:
        columns: dict[str, tuple[str, Column]] = {
            "callpath": ("int32", values.callpath),
            "rank": ("int32", values.rank),
            "thread": ("int32", values.thread),
        }
        for metric in archive.metadata.metrics:
            columns[metric.name] = (_value_type(metric), values.metrics[metric.name])
        write_table(folder / "values.parquet", columns)
    if archive.source is not None:
        write_source(folder, archive.source)
    names = [metric.name for metric in archive.metadata.metrics]
    statistics = [archive.statistics[name] for name in names]
    paths = len(tree)
    table: dict[str, tuple[str, Column]] = {
        "callpath": ("int32", np.tile(np.arange(paths), len(names))),
        "metric": ("str", [name for name in names for _ in range(paths)]),
    }
    for column, kind in list(_STATISTICS.items())[2:]:
        pieces = [getattr(entry, column) for entry in statistics]
        table[column] = (kind, np.concatenate(pieces) if pieces else np.zeros(0))
    write_table(folder / "statistics.parquet", table)
    if values is None:
        write_table(folder / "sketches.parquet", _sketch_table(names, statistics))
    ranks: dict[str, tuple[str, Column]] = {}
    for column, kind in _RANKS.items():
        entries = [getattr(record, column) for record in archive.ranks]
        ranks[column] = (kind, entries if kind == "str" else np.array(entries, dtype=np.int64))
    write_table(folder / "ranks.parquet", ranks)


def _sketch_table(names: list[str], statistics: list[RankStatistics]) -> dict[str, tuple[str, Column]]:
    """Return one row per call path, metric and bucket in use."""
    known = [(name, entry.sketches) for name, entry in zip(names, statistics, strict=True) if entry.sketches]
    pieces: dict[str, list[IntArray]] = {
        "callpath": [sketches.cell for _, sketches in known],
        "level": [sketches.level[sketches.cell] for _, sketches in known],
        "bucket": [sketches.bucket for _, sketches in known],
        "count": [sketches.count for _, sketches in known],
    }
    table: dict[str, tuple[str, Column]] = {
        name: (_SKETCHES[name], concatenated(arrays, np.int64)) for name, arrays in pieces.items()
    }
    table["metric"] = ("str", [name for name, sketches in known for _ in range(sketches.cell.size)])
    return table


def read_archive(path: Path | str, values: bool = True) -> RunArchive:
    """Read a run archive; without `values` only tree and statistics (that the values are there is checked).

    Of a run of many ranks only the statistics were kept: `values` is None then, and statistics have sketches.

    Raises FormatError naming the file at fault: missing, truncated, foreign, damaged (it does not fit its checksum) or
    of another schema version.
    """
    path = Path(path)
    if not (path / "run.json").is_file():
        raise FormatError(path, "is not a run archive (it holds no run.json): give a folder made by `quipu run`")
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


def read_metadata(path: Path) -> RunMetadata:
    """Read run.json of an archive alone."""
    check_files(path, ["run.json"])
    return from_json(path / "run.json", read_json(path / "run.json"))


def _read_tree(path: Path) -> CallTree:
    table = TableReader(
        path / "regions.parquet",
        {"region": "int32", "name": "str", "display": "str", "file": "str", "line": "int32", "kind": "int8"},
    )
    numbers = table.integers("region")
    table.require(bool(np.array_equal(numbers, np.arange(table.rows))), "column region does not count from 0")
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
        return CallTree(regions, table.integers("region"), table.integers("parent"))
    except ModelingError as error:
        raise FormatError(path / "callpaths.parquet", str(error)) from error


def _value_type(metric: Metric) -> str:
    return "float64" if metric.unit == "s" else "int64"


def _read_values(path: Path, metadata: RunMetadata, tree: CallTree, content: bool) -> RunValues | None:
    columns = {"callpath": "int32", "rank": "int32", "thread": "int32"}
    for metric in metadata.metrics:
        columns[metric.name] = _value_type(metric)
    table = TableReader(path / "values.parquet", columns, content)
    if not content:
        return None
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
    table = TableReader(path / "statistics.parquet", _STATISTICS)
    paths = len(tree)
    expected = [metric.name for metric in metadata.metrics for _ in range(paths)]
    table.require(table.rows == len(expected), "holds another number of call paths or metrics than the archive")
    table.require(table.texts("metric") == expected, "its metrics are not those of run.json")
    order = np.tile(np.arange(paths), len(metadata.metrics))
    table.require(bool(np.array_equal(table.integers("callpath"), order)), "call paths are not in order")
    counts = {name: table.integers(name, -1, _ID_LIMIT) for name in ("ranks", "min_rank", "max_rank")}
    floats = {name: table.floats(name) for name in ("sum", "min", "max", "mean", "std")}
    sketches = {} if metadata.rank_columns else _read_sketches(path, metadata, paths)
    result = {}
    for index, metric in enumerate(metadata.metrics):
        part = slice(index * paths, (index + 1) * paths)
        result[metric.name] = RankStatistics(
            ranks=counts["ranks"][part],
            sum=floats["sum"][part],
            min=floats["min"][part],
            max=floats["max"][part],
            mean=floats["mean"][part],
            std=floats["std"][part],
            min_rank=counts["min_rank"][part],
            max_rank=counts["max_rank"][part],
            sketches=sketches.get(metric.name),
        )
    return result


def _read_sketches(path: Path, metadata: RunMetadata, paths: int) -> dict[str, Sketches]:
    table = TableReader(path / "sketches.parquet", _SKETCHES)
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
            f"the buckets of {metric.name} make no sense",
        )
        result[metric.name] = Sketches(level, cell, bucket, count)
        rows += int(cell.size)
    table.require(rows == table.rows, "has metrics that are not in run.json")
    return result


def _read_ranks(path: Path) -> tuple[RankRecord, ...]:
    table = TableReader(path / "ranks.parquet", _RANKS)
    columns: list[list[str] | list[int]] = []
    for name, kind in _RANKS.items():
        columns.append(table.texts(name) if kind == "str" else table.integers(name, 0).tolist())
    return tuple(RankRecord(*row) for row in zip(*columns, strict=True))
