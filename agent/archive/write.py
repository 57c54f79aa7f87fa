# SPDX-License-Identifier: Apache-2.0
"""Write run archives. An archive gets its final name only when it is complete on the disk, and is never overwritten."""

from __future__ import annotations

import errno
import shutil
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
from quipu.modeling.experiment import IntArray

from .checksums import write_checksums
from .class_tables import write_classes
from .columns import RANKS, SKETCHES, STATISTICS, value_type
from .communication_table import write_communication
from .delay_table import write_delays
from .iteration_table import write_iterations
from .leftovers import TEMPORARY, writing
from .metadata import configuration_name
from .run import RankStatistics, RunArchive
from .run_json import to_json, write_json
from .tables import Column, concatenated, fsync, write_table

_NAMED = 40
"""Largest number of characters of the name of the run in the name of its temporary folder. File systems limit names."""


def write_archive(archive: RunArchive, folder: Path) -> RunArchive:
    """Write a run into an experiment folder with the next free repetition number, and return the stored run.

    The name of its folder is, for example, `p=4,n=100000.r1`, with the first free number from `metadata.repetition` on.
    The function writes a temporary folder and renames it when all files are on the disk. Concurrent runs therefore
    never overwrite each other, and no reader sees an incomplete archive. If writing fails, the function removes the
    temporary folder and raises OSError. The next writer removes the temporary folder of a killed process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder):
        return _written(archive, folder)


def _written(archive: RunArchive, folder: Path) -> RunArchive:
    name = configuration_name(archive.metadata.parameters)
    temporary = folder / f"{TEMPORARY}{name[:_NAMED]}-{uuid.uuid4().hex}"
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
    """Rename the folder; return False if another run took the name in the meantime. Raises OSError."""
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
            columns[metric.name] = (value_type(metric), values.metrics[metric.name])
        write_table(folder / "values.parquet", columns)
    if archive.classes is not None:
        write_classes(folder, archive.classes)
    if archive.communication is not None:
        write_communication(folder, archive.communication)
    if archive.iterations is not None:
        write_iterations(folder, archive.iterations)
    if archive.delays is not None:
        write_delays(folder, archive.delays)
    names = [metric.name for metric in archive.metadata.metrics]
    statistics = [archive.statistics[name] for name in names]
    paths = len(tree)
    table: dict[str, tuple[str, Column]] = {
        "callpath": ("int32", np.tile(np.arange(paths), len(names))),
        "metric": ("str", [name for name in names for _ in range(paths)]),
    }
    for column, kind in list(STATISTICS.items())[2:]:
        pieces = [getattr(entry, column) for entry in statistics]
        table[column] = (kind, np.concatenate(pieces) if pieces else np.zeros(0))
    write_table(folder / "statistics.parquet", table)
    if values is None:
        write_table(folder / "sketches.parquet", _sketch_table(names, statistics))
    ranks: dict[str, tuple[str, Column]] = {}
    for column, kind in RANKS.items():
        entries = [getattr(record, column) for record in archive.ranks]
        ranks[column] = (kind, entries if kind == "str" else np.array(entries, dtype=np.int64))
    write_table(folder / "ranks.parquet", ranks)


def _sketch_table(names: list[str], statistics: list[RankStatistics]) -> dict[str, tuple[str, Column]]:
    """Return the columns of sketches.parquet: one row per metric, call path and bucket in use."""
    known = [(name, entry.sketches) for name, entry in zip(names, statistics, strict=True) if entry.sketches]
    pieces: dict[str, list[IntArray]] = {
        "callpath": [sketches.cell for _, sketches in known],
        "level": [sketches.level[sketches.cell] for _, sketches in known],
        "bucket": [sketches.bucket for _, sketches in known],
        "count": [sketches.count for _, sketches in known],
    }
    table: dict[str, tuple[str, Column]] = {
        name: (SKETCHES[name], concatenated(arrays, np.int64)) for name, arrays in pieces.items()
    }
    table["metric"] = ("str", [name for name, sketches in known for _ in range(sketches.cell.size)])
    return table
