# SPDX-License-Identifier: Apache-2.0
"""Make a run from the file of a reduction over MPI, and from residuals.

The ranks reduce their profiles in MPI_Finalize. A residual contains the counts of a rank on one call path after this
moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, FloatArray, IntArray, Metric, Region, RegionKind

from ..archive.run import RunValues
from ..profile.overhead import EVENTS, OVERHEAD, event_costs, seconds_of_nodes
from ..profile.reader import ProcessProfile, ProfileState
from ..profile.text import ResidualCounts
from .counted_run import CountedRun, counted_run
from .overhead import costs_of_events
from .ranks import RankedProcess
from .reduced import Reduced
from .shard import OUTSIDE, THREAD_TIME, THREADS, Rows, Values, combined
from .statistics import RankCells, cells_of
from .unify import Forest, RegionTable, unify

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class _Residual:
    """The counts of a rank on a call path after the reduction.

    regions: of the call path, from the root. counts: as in `RankRows`, with times in ticks. values: the counts of the
    metrics, with times in seconds, and then the overhead in seconds.
    """

    rank: int
    location: int
    regions: tuple[Region, ...]
    counts: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Whole:
    """A reduction and its residuals.

    tree: all call paths. base: for each call path of the reduction, its index in the tree. residuals: each with the
    index of its call path in the tree.
    """

    reduced: Reduced
    metrics: tuple[Metric, ...]
    tree: CallTree
    base: IntArray
    residuals: Sequence[tuple[int, _Residual]]


def run_of(reduced: Reduced, processes: Sequence[RankedProcess]) -> CountedRun | None:
    """Return the run of a reduction; None if the reduction and its residuals may lack counts.

    processes: all processes of the run, whose profiles were read without their nodes.
    """
    if not _covers(reduced, processes):
        return None
    metrics = tuple(metric for metric in reduced.metrics if reduced.timed or metric.unit != "s")
    if any(OVERHEAD in process.profile.metrics for process in processes):
        metrics = (*metrics, OVERHEAD)
    residuals = [_residual(reduced, process, entry) for process in processes for entry in process.profile.residuals]
    known = [residual for residual in residuals if residual is not None]
    if len(known) < len(residuals):
        return None
    whole = _whole(reduced, metrics, known)
    if reduced.statistics is not None:
        return _of_statistics(whole, reduced.statistics)
    values = _values(whole, processes)
    return counted_run(
        metrics, whole.tree, values, cells_of(values, metrics, np.arange(reduced.ranks), len(whole.tree))
    )


def costs_of_ranks(reduced: Reduced, processes: Sequence[RankedProcess]) -> list[Mapping[str, float]]:
    """Return the overhead of each rank in the form of `overhead.costs_of`.

    Only call it for a reduction and processes for which `run_of` returns a run.
    """
    columns = {metric.name: column for column, metric in enumerate(reduced.metrics)}
    kept_time = reduced.timed and "time" in columns
    result: list[Mapping[str, float]] = []
    for process, events in zip(processes, reduced.events, strict=True):
        profile = process.profile
        pairs, of_mpi, ticks, quiet, counters = events
        for entry in profile.residuals:
            more = entry.counts[-3]
            mpi = bool(entry.regions) and profile.regions[entry.regions[-1]].kind is RegionKind.MPI
            pairs, of_mpi = pairs + more, of_mpi + more * mpi
            ticks += entry.counts[columns["time"]] if entry.regions and kept_time else 0
            quiet, counters = quiet + entry.counts[-2], counters + entry.counts[-1]
        time = ticks * profile.seconds_per_tick if kept_time else 0.0
        setup = profile.setup_seconds
        result.append(costs_of_events(profile.attributes, pairs, of_mpi, time, (quiet, counters), setup))
    return result


def _covers(reduced: Reduced, processes: Sequence[RankedProcess]) -> bool:
    """Return whether the processes are the ranks of the reduction, ended regularly, and stored all residuals."""
    if [process.rank for process in processes] != list(range(reduced.ranks)):
        return False
    tables = {
        timed: tuple(metric for metric in reduced.metrics if timed or metric.unit != "s") for timed in (False, True)
    }
    for process, pid in zip(processes, reduced.pids.tolist(), strict=True):
        profile = process.profile
        said = profile.attributes
        if (
            said.get("reduction") != reduced.id
            or said.get("rests") != str(len(profile.residuals))
            or profile.pid != pid
        ):
            return False
        if profile.state is not ProfileState.ENDED or profile.damaged or _of_header(profile) not in tables.values():
            return False
    return True


def _of_header(profile: ProcessProfile) -> tuple[Metric, ...]:
    return tuple(metric for metric in profile.metrics if metric != OVERHEAD)


def _residual(reduced: Reduced, process: RankedProcess, entry: ResidualCounts) -> _Residual | None:
    profile, counts = process.profile, entry.counts
    if len(counts) != len(reduced.metrics) + len(EVENTS) or max(counts) > _LARGEST:
        return None
    if any(number not in profile.regions for number in entry.regions):
        return None
    counts = _with_thread_time(reduced, entry)
    seconds = profile.seconds_per_tick
    values = [
        count * seconds if metric.unit == "s" else count for metric, count in zip(reduced.metrics, counts, strict=False)
    ]
    regions = tuple(profile.regions[number] for number in entry.regions) or (OUTSIDE,)
    is_mpi = np.array([regions[-1].kind is RegionKind.MPI])
    cost = _overhead(reduced, profile, is_mpi, np.array([counts], dtype=np.int64))
    return _Residual(process.rank, entry.location, regions, counts, (*values, float(cost[0])))


def _with_thread_time(reduced: Reduced, entry: ResidualCounts) -> tuple[int, ...]:
    """Return the counts of a residual with thread_time and threads, if the reduction has these metrics.

    The time of a thread other than the main thread is no wall time; time and wait_time of its residual become 0.
    """
    place = {metric.name: number for number, metric in enumerate(reduced.metrics)}
    counts = list(entry.counts)
    if THREAD_TIME in place:
        counts[place[THREAD_TIME]] = counts[place["time"]]
        counts[place[THREADS]] = int(counts[place["time"]] > 0 or counts[place["visits"]] > 0)
        if entry.location > 0:
            counts[place["time"]] = counts[place["wait_time"]] = 0
    return tuple(counts)


def _overhead(
    reduced: Reduced, profile: ProcessProfile, is_mpi: NDArray[np.bool_], counts: NDArray[np.int64]
) -> FloatArray:
    """Return the overhead (seconds) of each row of counts; NaN if the process did not record the costs of events."""
    costs = event_costs(profile.attributes)
    names = [metric.name for metric in reduced.metrics]
    if costs is None or "visits" not in names:
        return np.full(is_mpi.size, np.nan)
    return seconds_of_nodes(costs, is_mpi, counts[:, -len(EVENTS) :])


def _whole(reduced: Reduced, metrics: tuple[Metric, ...], residuals: Sequence[_Residual]) -> _Whole:
    table = RegionTable()
    forests = [Forest(reduced.parent, table.numbers(reduced.regions)[reduced.region])]
    for residual in residuals:
        chain = table.numbers(residual.regions)
        forests.append(Forest(np.arange(-1, chain.size - 1, dtype=np.int64), chain))
    tree, paths = unify(forests, table)
    places = (int(path[-1]) for path in paths[1:])
    return _Whole(reduced, metrics, tree, paths[0], list(zip(places, residuals, strict=True)))


def _values(whole: _Whole, processes: Sequence[RankedProcess]) -> RunValues:
    """Return the rows of all ranks, which contain the residuals."""
    reduced, tree = whole.reduced, whole.tree
    later: dict[int, list[tuple[int, _Residual]]] = defaultdict(list)
    for path, residual in whole.residuals:
        later[residual.rank].append((path, residual))
    is_mpi = np.array([region.kind is RegionKind.MPI for region in tree.regions], dtype=bool)[tree.region]
    slots: list[tuple[int, int]] = []
    rows = []
    for entry in reduced.rows:
        of_rank = later[entry.rank]
        location = np.append(entry.location, [residual.location for _, residual in of_rank]).astype(np.int64)
        callpath = np.append(whole.base[entry.path], [path for path, _ in of_rank]).astype(np.int64)
        added = np.array([residual.counts for _, residual in of_rank], dtype=np.int64)
        added = added.reshape(-1, entry.counts.shape[1])
        locations, thread = np.unique(location, return_inverse=True)
        place, counts = _added_up(reduced, thread * len(tree) + callpath, np.concatenate([entry.counts, added]))
        callpath, thread = place % len(tree), place // len(tree)
        profile = processes[entry.rank].profile
        values: dict[str, Values] = {}
        for column, metric in enumerate(reduced.metrics):
            number: Values = counts[:, column]
            if metric.unit == "s":
                number = np.asarray(number * profile.seconds_per_tick, dtype=np.float64)
            values[metric.name] = number
        values[OVERHEAD.name] = _overhead(reduced, profile, is_mpi[callpath], counts)
        rows.append(Rows(callpath, thread + len(slots), values))
        slots += [(entry.rank, number) for number in range(locations.size)]
    return combined(rows, slots, whole.metrics)


def _added_up(reduced: Reduced, place: IntArray, counts: NDArray[np.int64]) -> tuple[IntArray, NDArray[np.int64]]:
    """Combine the rows with equal place. Returns the places, ascending, each once, and the counts of each place.

    Counts are added, or their maximum is used if this is how the metric combines locations.
    """
    order = np.argsort(place, kind="stable")
    place, counts = place[order], counts[order]
    first = np.flatnonzero(np.append(True, place[1:] != place[:-1])[: place.size])
    if first.size < place.size:
        largest = [metric.over_locations == "max" for metric in reduced.metrics] + [False] * len(EVENTS)
        added, most = np.add.reduceat(counts, first, axis=0), np.maximum.reduceat(counts, first, axis=0)
        return place[first], np.where(largest, most, added)
    return place, counts


def _of_statistics(whole: _Whole, statistics: RankCells) -> CountedRun | None:
    """Return the run with statistics over all ranks; None if a residual cannot be added to them.

    To add a residual, the values of all ranks on its call path must be known. They are known if the call path was open
    during the reduction, or if it occurred only after the reduction.
    """
    reduced, metrics = whole.reduced, whole.metrics
    opened = {int(whole.base[entry.path]): entry for entry in reduced.open}
    again = np.unique(np.array([path for path, _ in whole.residuals], dtype=np.int64))
    if not set(again.tolist()).isdisjoint(set(whole.base.tolist()) - opened.keys()):
        return None
    columns = (*reduced.metrics, OVERHEAD)
    values = np.zeros((again.size, reduced.ranks, len(columns)))
    present = np.zeros((again.size, reduced.ranks), dtype=bool)
    for i, path in enumerate(again.tolist()):
        if path in opened:
            values[i], present[i] = opened[path].values, opened[path].present
    largest = np.array([metric.over_locations == "max" for metric in columns])
    for path, residual in whole.residuals:
        at = int(np.searchsorted(again, path)), residual.rank
        values[at] = np.where(largest, np.maximum(values[at], residual.values), values[at] + residual.values)
        present[at] = True
    chosen = [number for number, metric in enumerate(columns) if metric in metrics]
    place, rank = np.nonzero(present)
    later = {columns[number].name: values[place, rank, number] for number in chosen}
    rows = RunValues(place, rank, np.zeros(place.size, dtype=np.int64), later)
    found = RankCells(reduced.ranks, 0, statistics.cells[:, chosen]).moved(whole.base, len(whole.tree))
    found.cells[again] = cells_of(rows, metrics, np.arange(reduced.ranks), again.size).cells
    return counted_run(metrics, whole.tree, None, found)
