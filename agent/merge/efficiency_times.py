# SPDX-License-Identifier: Apache-2.0
"""Read from run archives the times that efficiencies are computed from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, IntArray, RegionKind
from quipu.modeling.run_times import CYCLES, EFFORTS, INSTRUCTIONS, Delays, RankColumns, RunTimes

from ..archive.delay_table import read_delays
from ..archive.metadata import RunMetadata
from ..archive.read import read_archive
from ..archive.run import RankStatistics, RunArchive
from .experiment import StoredRun
from .shard import THREAD_TIME, THREADS
from .unify import places_in

_SEPARATING = ("all", "sample")


def efficiency_times(runs: Sequence[StoredRun], tree: CallTree) -> list[RunTimes]:
    """Return the times of the complete runs, without count-only runs. tree: the call paths of their experiment."""
    kept = [run for run in runs if run.metadata.complete and not run.metadata.counts_only]
    return [run_times(read_archive(run.path), tree) for run in kept]


def run_times(archive: RunArchive, tree: CallTree) -> RunTimes:
    """Return the times of one run, arranged by the call paths of `tree`."""
    metadata, statistics = archive.metadata, archive.statistics
    place = places_in(tree, archive.tree)
    threads = _threads(archive)
    several = threads > 1 and THREAD_TIME in statistics
    hosts = {host: number for number, host in enumerate(sorted({rank.host for rank in archive.ranks}))}
    node = np.zeros(metadata.ranks, dtype=np.int64)
    for record in archive.ranks:
        if record.rank < metadata.ranks:
            node[record.rank] = hosts[record.host]
    sums = {
        name: _placed(np.nan_to_num(statistics[name].sum), place, tree)
        for name in ("visits", *INSTRUCTIONS, CYCLES)
        if name in statistics
    }
    counted = next((name for name in EFFORTS if name in sums and sums[name].any()), None)
    return RunTimes(
        name=archive.path.name,
        point=dict(metadata.parameters),
        repetition=metadata.repetition,
        ranks=metadata.ranks,
        threads=threads,
        tree=tree,
        time=_columns(archive, "time", place, tree),
        wait=_columns(archive, "wait_time", place, tree),
        effort=None if counted is None else _columns(archive, counted, place, tree),
        of_threads=_of_threads(archive, THREAD_TIME, place, tree) if several else None,
        effort_of_threads=_of_threads(archive, counted, place, tree) if several and counted is not None else None,
        thread_time=_placed(np.nan_to_num(statistics[THREAD_TIME].mean), place, tree) if several else None,
        sums=sums,
        node=node,
        waits_separated=_separated(metadata),
        delays=_delays(archive, place),
    )


def slowest_ranks(runs: Sequence[StoredRun], times: Sequence[RunTimes], experiment: Experiment) -> Experiment | None:
    """Return an experiment that contains, for each run, the values of the rank with the most time outside of MPI.

    times: `efficiency_times` of the runs. Configurations without values of single ranks are left out; the result is
    None if no configuration is left.
    """
    kept = [run for run in runs if run.metadata.complete and not run.metadata.counts_only]
    values = {name: np.full(measured.shape, np.nan) for name, measured in experiment.values.items()}
    known = np.zeros(experiment.configurations, dtype=bool)
    for stored, run, (where, count) in zip(kept, times, places_of(times, experiment), strict=True):
        archive = read_archive(stored.path)
        if archive.values is None or run.slowest is None:
            continue
        known[where] = True
        place = places_in(experiment.tree, archive.tree)[archive.values.callpath]
        rows = (archive.values.rank == run.slowest) & (place >= 0)
        for name, column in values.items():
            if name not in archive.values.metrics:
                continue
            own = np.zeros(len(experiment.tree))
            join = np.maximum if experiment.metric(name).over_locations == "max" else np.add
            join.at(own, place[rows], np.nan_to_num(archive.values.metrics[name][rows].astype(np.float64)))
            column[:, where, count] = own
    if not known.any():
        return None
    return replace(
        experiment,
        points=experiment.points[known],
        values={name: column[:, known] for name, column in values.items()},
        oversubscribed=None if experiment.oversubscribed is None else experiment.oversubscribed[known],
        loaded=None if experiment.loaded is None else experiment.loaded[known],
        excess={},
        largest={},
        rank_times=None,
        classes=None,
        timed=None,
    )


def places_of(times: Sequence[RunTimes], experiment: Experiment) -> Iterator[tuple[int, int]]:
    """Yield, for each run, the index of its configuration and of its repetition in the experiment."""
    points = {tuple(point): at for at, point in enumerate(experiment.points.tolist())}
    taken: dict[int, int] = defaultdict(int)
    for run in times:
        where = points[tuple(float(run.point[name]) for name in experiment.parameters)]
        yield where, taken[where]
        taken[where] += 1


def _threads(archive: RunArchive) -> int:
    """Return the number of threads of a rank: the size of its largest OpenMP team, or its concurrent threads."""
    if THREADS in archive.statistics:
        kinds = np.array([region.kind is RegionKind.OPENMP for region in archive.tree.regions], dtype=bool)
        teams = np.nan_to_num(archive.statistics[THREADS].max)[kinds[archive.tree.region]]
        if teams.size:
            return max(1, int(teams.max()))
    return archive.metadata.threads


def _delays(archive: RunArchive, place: IntArray) -> Delays | None:
    """Return the delays of a run, None if it has none. place: the call path of the experiment for each call path."""
    table = read_delays(archive.path, len(archive.tree))
    if table is None:
        return None
    known = place[table.operation] >= 0
    cause = np.where(table.cause >= 0, place[table.cause], -1)
    return Delays(
        place[table.operation][known], cause[known], table.rank[known], table.thread[known], table.seconds[known]
    )


def _separated(metadata: RunMetadata) -> bool:
    """Return whether the run measured waiting in collective operations separately from transfer."""
    how = "" if metadata.fingerprint is None else metadata.fingerprint.facts.get("--mpi-wait", "")
    return how in _SEPARATING or (metadata.launcher.get("family") == "smpi" and how not in ("", "off"))


def _columns(archive: RunArchive, name: str, place: IntArray, tree: CallTree) -> RankColumns:
    """Return a metric for each rank, or its statistics if the archive has no values of ranks; 0 if not measured."""
    metadata, known = archive.metadata, archive.statistics.get(name)
    if known is None:
        return RankColumns.of_ranks(np.zeros((len(tree), metadata.ranks)))
    if archive.values is None:
        return _of_statistics(known, place, tree)
    result = np.zeros((len(tree), metadata.ranks))
    path = place[archive.values.callpath]
    kept = path >= 0
    values = np.nan_to_num(archive.values.metrics[name][kept].astype(np.float64))
    np.add.at(result, (path[kept], archive.values.rank[kept]), values)
    result[tree.start_and_end] = 0.0
    return RankColumns.of_ranks(result)


def _of_statistics(known: RankStatistics, place: IntArray, tree: CallTree) -> RankColumns:
    ranks = np.full(len(tree), -1)
    ranks[place[place >= 0]] = known.max_rank[place >= 0]
    ranks[tree.start_and_end] = -1
    mean, least, most = (_placed(np.nan_to_num(one), place, tree) for one in (known.mean, known.min, known.max))
    return RankColumns(None, mean, least, most, ranks)


def _of_threads(archive: RunArchive, metric: str, place: IntArray, tree: CallTree) -> FloatArray | None:
    """Return the values of each thread, shape (call paths, ranks, threads); None if they are not stored."""
    values = archive.values
    if values is None:
        return None
    path = place[values.callpath]
    kept = (path >= 0) & ~tree.start_and_end[path]
    result = np.zeros((len(tree), archive.metadata.ranks, int(values.thread.max(initial=0)) + 1))
    own = np.nan_to_num(values.metrics[metric][kept].astype(np.float64))
    np.add.at(result, (path[kept], values.rank[kept], values.thread[kept]), own)
    return result


def _placed(values: FloatArray, place: IntArray, tree: CallTree) -> FloatArray:
    """Return the values of a run, arranged by the call paths of its experiment.

    The call paths of the start and the end of MPI (MPI_Init, MPI_Finalize) have the value 0.
    """
    result = np.zeros(len(tree))
    result[place[place >= 0]] = values[place >= 0]
    result[tree.start_and_end] = 0.0
    return result
