# SPDX-License-Identifier: Apache-2.0
"""Read the file that rank 0 writes after the ranks have reduced their profiles in MPI_Finalize.

mpi_wrap/native/reduction/file.c writes it. The profiles of the processes contain the same numbers. The reader raises
FormatError for any defect of the file, so that the caller can read the profiles instead.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray, IntArray, Metric, Region
from quipu.modeling.limits import current, reading_file

from ..profile.overhead import EVENTS
from ..profile.text import REGION, ProfileTexts, parse_metric_table
from .native import CELL, SMALLEST_CELL, Cells, unpacked_cells
from .statistics import RankCells

VERSION = 4
_SECTION = struct.Struct("<4sIQ")
_HEAD = struct.Struct("<8I20s")
_RECORD = struct.Struct("<IIQ")


@dataclass(frozen=True, eq=False)
class RankRows:
    """The counts of a rank, one row per node. A node is a call path in one location (thread).

    path, location: int64 of shape (nodes,). counts: int64 of shape (nodes, metrics + 3), with times in ticks; the last
    three columns are `EVENTS`.
    """

    rank: int
    path: IntArray
    location: IntArray
    counts: IntArray


class RankEvents(NamedTuple):
    """Sums over all nodes of a rank.

    pairs, quiet, counters: numbers of the three `EVENTS`. of_mpi: pairs of MPI functions. ticks: measured time without
    the time outside of all regions.
    """

    pairs: int
    of_mpi: int
    ticks: int
    quiet: int
    counters: int


@dataclass(frozen=True, eq=False)
class OpenPath:
    """A call path that was open (entered, but not left) during the reduction.

    present: bool of shape (ranks,), whether the rank has the call path. values: float64 of shape (ranks, metrics + 1);
    the last column is the overhead in seconds.
    """

    path: int
    present: NDArray[np.bool_]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Reduced:
    """The content of the file of a reduction.

    - id: identifies the reduction; the profiles of its processes contain it, too. pids: process id of each rank.
    - timed: whether any rank measured time.
    - parent, region: int64 of shape (call paths,): parent (-1: root), and index into `regions`.
    - rows: of all ranks in order; empty if the file contains statistics.
    - statistics: over all ranks, for the metrics and the overhead; None if the file contains rows.
    - open: the open call paths. events: of each rank.
    """

    id: str
    metrics: tuple[Metric, ...]
    timed: bool
    pids: IntArray
    regions: tuple[Region, ...]
    parent: IntArray
    region: IntArray
    rows: tuple[RankRows, ...]
    statistics: RankCells | None
    open: tuple[OpenPath, ...]
    events: tuple[RankEvents, ...]

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return int(self.pids.size)


def read_reduced(path: Path) -> Reduced:
    """Read the file of a reduction. Raises FormatError for any defect."""
    with reading_file(path) as content:
        try:
            return _Parser(path, content).parse()
        except (ValueError, struct.error, OverflowError) as error:
            raise FormatError(path, f"is damaged: {error}") from error


class _Parser:
    """Reads the sections in one pass. Sizes are checked before memory is allocated, so that a damaged size is harmless.

    wrong: returns the error for a defect.
    """

    def __init__(self, path: Path, content: bytes) -> None:
        self.path = path
        self.content = content

    def wrong(self, what: str) -> FormatError:
        return FormatError(self.path, f"is damaged: {what}")

    def sections(self) -> Iterator[tuple[bytes, bytes]]:
        offset = 0
        while offset + _SECTION.size <= len(self.content):
            tag, crc, length = _SECTION.unpack_from(self.content, offset)
            offset += _SECTION.size
            if length > len(self.content) - offset:
                raise self.wrong("it ends in the middle of a section")
            section = self.content[offset : offset + length]
            if zlib.crc32(section) != crc:
                raise self.wrong("a checksum is wrong")
            yield tag, section
            offset += (length + 7) // 8 * 8

    def parse(self) -> Reduced:
        single: dict[bytes, bytes] = {}
        many: dict[bytes, list[bytes]] = {b"COLS": [], b"STAT": [], b"OPEN": []}
        for tag, section in self.sections():
            if tag in many:
                many[tag].append(section)
            elif tag in single:
                raise self.wrong("a section occurs twice")
            else:
                single[tag] = section
        missing = {b"HEAD", b"METR", b"REGI", b"TREE", b"RANK", b"COST", b"DONE"} - single.keys()
        if missing:
            raise self.wrong(f"{b', '.join(sorted(missing)).decode()} is missing")
        version, ranks, count, nodes, regions, columns, timed, _, name = _HEAD.unpack(single[b"HEAD"])
        if version != VERSION:
            raise FormatError(self.path, f"has version {version}, this Quipu reads {VERSION}")
        metrics = parse_metric_table(self.path, single[b"METR"], count)
        parent, region = np.frombuffer(single[b"TREE"], dtype="<u4").reshape(2, nodes).astype(np.int64)
        parent = np.where(parent == (1 << 32) - 1, -1, parent)
        if nodes and (bool(np.any(parent >= np.arange(nodes))) or int(region.max()) >= regions):
            raise self.wrong("its call tree is inconsistent")
        pids = np.frombuffer(single[b"RANK"], dtype="<u4").astype(np.int64)
        if pids.size != ranks or not ranks:
            raise self.wrong("its number of ranks differs from its header")
        events = np.frombuffer(single[b"COST"], dtype="<u8").reshape(ranks, len(RankEvents._fields))
        rows = tuple(self._rows(section, len(metrics), nodes) for section in many[b"COLS"])
        if columns and [entry.rank for entry in rows] != list(range(ranks)):
            raise self.wrong("ranks are missing")
        return Reduced(
            id=name.split(b"\0")[0].decode("ascii", "replace"),
            metrics=metrics,
            timed=bool(timed),
            pids=pids,
            regions=self._regions(single[b"REGI"], regions),
            parent=parent,
            region=region,
            rows=rows,
            statistics=None if columns else RankCells(ranks, 0, self._cells(many[b"STAT"], nodes, len(metrics) + 1)),
            open=tuple(self._open(section, len(metrics), nodes, ranks) for section in many[b"OPEN"]),
            events=tuple(RankEvents(*row) for row in events.tolist()),
        )

    def _regions(self, section: bytes, count: int) -> tuple[Region, ...]:
        texts = section.split(b"\0")
        if len(texts) != count + 1 or texts.pop():
            raise self.wrong("its number of regions differs from its header")
        parser = ProfileTexts()
        problems: list[str] = []
        for number, text in enumerate(texts, start=1):
            parser.parse(_RECORD.pack(REGION, len(text), number) + text + bytes(-len(text) % 8), problems)
        if problems or len(parser.regions) != count:
            raise self.wrong("a region is invalid")
        return tuple(parser.regions[number] for number in range(1, count + 1))

    def _rows(self, section: bytes, metrics: int, nodes: int) -> RankRows:
        rank, count = struct.unpack_from("<II", section)
        columns = metrics + len(EVENTS)
        if len(section) != 8 + count * (8 + 8 * columns):
            raise self.wrong("the length of the rows of a rank differs from their header")
        path, location = np.frombuffer(section, dtype="<u4", count=2 * count, offset=8).reshape(2, count)
        counts = np.frombuffer(section, dtype="<i8", offset=8 + 8 * count).reshape(count, columns)
        if count and int(path.max()) >= nodes:
            raise self.wrong("a row has no call path")
        return RankRows(rank, path.astype(np.int64), location.astype(np.int64), counts)

    def _open(self, section: bytes, metrics: int, nodes: int, ranks: int) -> OpenPath:
        path, _ = struct.unpack_from("<II", section)
        table = np.frombuffer(section, dtype="<f8", offset=8).reshape(ranks, metrics + 2)
        if path >= nodes:
            raise self.wrong("an open call path is unknown")
        return OpenPath(path, table[:, 0] > 0, table[:, 1:])

    def _cells(self, blocks: list[bytes], nodes: int, metrics: int) -> Cells:
        pieces = [np.zeros(0, dtype=CELL)]
        next_cell = 0
        for block in blocks:
            first, count = struct.unpack_from("<II", block)
            if first != next_cell or count * SMALLEST_CELL > len(block):
                raise self.wrong("its statistics are not in order")
            current().spend(count * CELL.itemsize)
            pieces.append(unpacked_cells(block[8:], count))
            next_cell += count
        return np.concatenate(pieces).reshape(nodes, metrics)
