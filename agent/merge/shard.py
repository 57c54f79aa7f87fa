# SPDX-License-Identifier: Apache-2.0
"""Read the profiles of a run in shards.

A shard is a part of the ranks of a run. A worker process reads the profiles of a shard and converts them to rows and
statistics. Then the shards are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, IntArray, Metric, Region, RegionKind

from ..archive.run import RunValues
from ..archive.tables import concatenated
from ..profile.alike import AlikeProfiles
from ..profile.ranks import read_rank
from ..profile.reader import ProcessProfile
from .classes import ClassCells, CountedProcesses, joined_classes
from .functions import with_functions
from .last_moments import End, until_the_end
from .native import wall_times
from .overhead import costs_of
from .statistics import RankCells, cells_of
from .unify import Forest, RegionTable, unify, unify_trees

RANKS_OF_A_SHARD = 128
OUTSIDE = Region("(outside any region)", "(outside any region)", RegionKind.USER)
"""The region of the root call path for code outside of all regions, such as code before main, or all code if a filter
excludes main."""

THREAD_TIME, THREADS = "thread_time", "threads"

Values = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Source:
    """The profile of a process that has to be read.

    - path: the file of the profile.
    - location: the location (thread) of the rank, if the file contains several ranks; None: not known.
    - end: the end of the process. head: its profile without call paths, if it was already read.
    """

    rank: int
    path: Path
    location: int | None = None
    end: End | None = None
    head: ProcessProfile | None = None


@dataclass(frozen=True)
class ShardTask:
    """The task of a worker: the profiles of some ranks, in order of rank and start, and the requested result.

    metrics: the metrics to read. columns: whether the values of each rank are requested.
    """

    sources: tuple[Source, ...]
    metrics: tuple[Metric, ...]
    columns: bool


@dataclass(frozen=True, eq=False)
class Shard:
    """The measurements of some ranks.

    values: one row per call path, rank and thread; None unless requested. read: for each profile, its problems, and
    whether it is damaged. costs: `overhead.costs_of` for each readable profile. classes: None if no program describes
    count classes.
    """

    tree: CallTree
    statistics: RankCells
    values: RunValues | None
    read: tuple[tuple[tuple[str, ...], bool], ...]
    costs: tuple[Mapping[str, float], ...]
    classes: ClassCells | None


@dataclass(frozen=True, eq=False)
class Rows:
    """The nodes of a process: call path, slot (index of the location in a list of all locations), and values.

    All arrays have shape (nodes,). values: by name of the metric.
    """

    path: IntArray
    slot: IntArray
    values: Mapping[str, Values]


def shards_of(sources: Sequence[Source], metrics: tuple[Metric, ...], columns: bool) -> Iterator[ShardTask]:
    """Split profiles, which are in order of rank, into shards. All profiles of a rank are in the same shard."""
    ranks = [tuple(group) for _, group in groupby(sources, key=lambda source: source.rank)]
    for first in range(0, max(1, len(ranks)), RANKS_OF_A_SHARD):
        part = chain.from_iterable(ranks[first : first + RANKS_OF_A_SHARD])
        yield ShardTask(tuple(part), metrics, columns)


def read_shard(task: ShardTask) -> Shard:
    """Read the profiles of a shard. A profile that cannot be read is left out; `Shard.read` contains the error."""
    table = RegionTable()
    forests, kept, ranks, costs = [], [], [], []
    read: list[tuple[tuple[str, ...], bool]] = []
    counted = CountedProcesses()
    for source in task.sources:
        try:
            profile = read_rank(source.path, source.location, counted.wants)
        except FormatError as error:
            read.append(((f"{error}; it was left out",), True))
            continue
        counted.add(source.rank, profile)
        profile = with_functions(until_the_end(replace(profile, counters=None), source.end))
        read.append((profile.problems, profile.damaged))
        costs.append(costs_of(profile))
        forests.append(forest_of(profile, table))
        kept.append((np.unique(profile.location, return_inverse=True), columns_of(profile, task.metrics)))
        ranks.append(source.rank)
    tree, paths = unify(forests, table)
    slots: list[tuple[int, int]] = []
    rows = []
    next_thread: dict[int, int] = {}
    for rank, path_of_node, ((known, location), columns) in zip(ranks, paths, kept, strict=True):
        first = next_thread.get(rank, 0)
        next_thread[rank] = first + known.size
        rows.append(Rows(path_of_node, location + len(slots), with_wall_times(columns, path_of_node, location, tree)))
        slots += [(rank, first + thread) for thread in range(known.size)]
    values = combined(rows, slots, task.metrics)
    statistics = cells_of(values, task.metrics, np.array(sorted({*ranks}), dtype=np.int64), len(tree))
    values_kept = values if task.columns else None
    return Shard(tree, statistics, values_kept, tuple(read), tuple(costs), counted.cells(paths))


def read_classes_of_shard(task: ShardTask) -> tuple[CallTree, ClassCells | None]:
    """Read only the count classes of the profiles of a shard, and their call tree.

    A profile that cannot be read is left out.
    """
    table = RegionTable()
    forests: list[Forest] = []
    known: dict[int, int] = {}  # id() of `profile.region`, an array that similar profiles share → index of the forest
    number: list[int] = []
    kept: list[ProcessProfile] = []  # keeps the arrays alive, so that no other array gets the same id()
    counted = CountedProcesses()
    alike = AlikeProfiles(counted.wants)
    for source in task.sources:
        try:
            if source.location is None and source.head is not None:
                profile = alike.read(source.head)
            else:
                profile = read_rank(source.path, source.location, counted.wants, values=False)
        except FormatError:
            continue  # the merge has already reported this problem
        counted.add(source.rank, profile)
        number.append(known.setdefault(id(profile.region), len(forests)))
        if number[-1] == len(forests):
            forests.append(forest_of(profile, table))
            kept.append(profile)
    tree, paths = unify(forests, table)
    return tree, counted.cells([paths[index] for index in number])


def forest_of(profile: ProcessProfile, table: RegionTable) -> Forest:
    """Return the nodes of a process as a forest.

    The roots are the locations (with the region OUTSIDE), and the nodes directly below the locations.
    """
    numbers = {number: table.number(region) for number, region in profile.regions.items()}
    ids = np.array(sorted(numbers), dtype=np.int64)
    position = np.searchsorted(ids, profile.region) if ids.size else np.zeros(profile.region.size, dtype=np.int64)
    of_id = np.array([numbers[number] for number in ids.tolist()] or [0], dtype=np.int64)
    outside = profile.region == 0
    region = np.where(outside, table.number(OUTSIDE), of_id[np.minimum(position, of_id.size - 1)])
    below = (profile.parent >= 0) & ~outside
    below &= ~outside[np.maximum(profile.parent, 0)]
    return Forest(np.where(below, profile.parent, -1), region)


def columns_of(profile: ProcessProfile, metrics: Iterable[Metric]) -> dict[str, Values]:
    """Return the values of each metric, shape (nodes,). A metric that the profile lacks is 0; a time is NaN."""
    columns: dict[str, Values] = {}
    for metric in metrics:
        if metric.name in profile.values:
            columns[metric.name] = profile.values[metric.name]
        elif metric.unit == "s":
            columns[metric.name] = np.full(profile.parent.size, np.nan)
        else:
            columns[metric.name] = np.zeros(profile.parent.size, dtype=np.int64)
    return columns


def with_wall_times(
    columns: Mapping[str, Values], path: IntArray, thread: IntArray, tree: CallTree
) -> Mapping[str, Values]:
    """Return the values of a process with wall times as `time`, and the times of its threads as `thread_time`.

    path, thread: call path (index in `tree`) and thread of each row; 0 is the main thread. The values are returned
    unchanged if they do not contain the metric threads.
    """
    if THREADS not in columns:
        return columns
    nothing = np.zeros(path.size)
    visits, counted, waits = (columns.get(name, nothing).astype(np.float64) for name in ("visits", "time", "wait_time"))
    wall, waiting, threads = wall_times(path, thread, tree.parent, visits, np.nan_to_num(counted), np.nan_to_num(waits))
    changed = {
        "time": np.where(np.isnan(counted), np.nan, wall),
        "wait_time": np.where(np.isnan(waits), np.nan, waiting),
        THREAD_TIME: counted,
        THREADS: threads.astype(np.int64),
    }
    return {name: changed.get(name, values) for name, values in columns.items()}


def combined(rows: Sequence[Rows], slots: Sequence[tuple[int, int]], metrics: Iterable[Metric]) -> RunValues:
    """Combine the nodes of processes to one row per call path, rank and thread, in this order.

    slots: rank and thread of each location. Several nodes of a row are added, or their maximum is used if this is how
    the metric combines locations.
    """
    ordered = sorted(range(len(slots)), key=lambda slot: slots[slot])
    place = np.empty(len(slots), dtype=np.int64)
    place[ordered] = np.arange(len(slots))
    path = concatenated((piece.path for piece in rows), np.int64)
    slot = place[concatenated((piece.slot for piece in rows), np.int64)]
    key = path * max(1, len(slots)) + slot
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if key.size else np.zeros(0, dtype=np.int64)
    columns: dict[str, Values] = {}
    for metric in metrics:
        kind = np.float64 if metric.unit == "s" else np.int64
        column = concatenated((piece.values[metric.name] for piece in rows), kind)[order]
        if starts.size < column.size:
            column = (np.maximum if metric.over_locations == "max" else np.add).reduceat(column, starts)
        columns[metric.name] = column
    where = np.array([slots[slot] for slot in ordered], dtype=np.int64).reshape(-1, 2)
    first = order[starts]
    return RunValues(path[first], where[slot[first], 0], where[slot[first], 1], columns)


class Joining:
    """Joins shards in order of rank, so that only the result and one shard are in memory."""

    def __init__(self) -> None:
        """Start without ranks."""
        self._joined: tuple[CallTree, RankCells] | None = None
        self._values: list[RunValues] = []
        self.classes: ClassCells | None = None

    def add(self, shard: Shard) -> None:
        """Add the next shard, whose ranks must follow the ranks of all shards before."""
        values = [] if shard.values is None else [shard.values]
        if self._joined is None:
            self._joined, self._values, self.classes = (shard.tree, shard.statistics), values, shard.classes
            return
        before, statistics = self._joined
        tree, (old, new) = unify_trees([before, shard.tree])
        statistics = statistics.moved(old, len(tree)).joined(shard.statistics.moved(new, len(tree)))
        self._joined = tree, statistics
        self.classes = joined_classes([(self.classes, old), (shard.classes, new)])
        self._values = [_moved(entry, old) for entry in self._values] + [_moved(entry, new) for entry in values]

    @property
    def result(self) -> tuple[CallTree, RankCells]:
        """Return the call paths and statistics of all added ranks. Raises ValueError before the first shard."""
        if self._joined is None:
            raise ValueError("no shard has been added")
        return self._joined

    def values(self) -> RunValues | None:
        """Return the rows of all ranks, sorted by call path, rank, thread; None if they were not requested."""
        if not self._values:
            return None
        path, rank, thread = (
            np.concatenate([getattr(values, name) for values in self._values])
            for name in ("callpath", "rank", "thread")
        )
        order = np.argsort(path, kind="stable")  # rows with the same call path are already in order of rank and thread
        names = self._values[0].metrics
        metrics = {name: np.concatenate([values.metrics[name] for values in self._values])[order] for name in names}
        return RunValues(path[order], rank[order], thread[order], metrics)


def _moved(values: RunValues, places: IntArray) -> RunValues:
    return RunValues(places[values.callpath], values.rank, values.thread, values.metrics)
