# SPDX-License-Identifier: Apache-2.0
"""Merge the raw profiles of all processes of a run into one run archive."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.errors import FormatError, MeasurementError, UsageError
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.limits import whole_number
from quipu.modeling.parallel import ALONE, Workers
from quipu.modeling.progress import steps

from ..archive.leftovers import MERGED
from ..archive.metadata import RunMetadata
from ..archive.run import RankRecord, RunArchive
from ..archive.run_json import has_no_times
from ..archive.write import write_archive
from ..launch.jobs import jobs_of, with_jobs
from ..launch.raw_folder import LAUNCH_FILE, RawFolder, read_launch, read_raw_folder
from ..profile.reader import ProcessProfile, ProfileState, read_profile
from ..source.classes import SourcePrograms
from .annotations import iterations_of, parameters_of
from .classes import ClassCells, joined_classes, with_classes
from .communication import communication_of
from .concurrency import threads_at_once
from .counted_run import CountedRun, counted_run
from .counters import counted_by, with_counters, with_flat_profile
from .delays import delays_of
from .last_moments import End, LaunchEnd, ends_by_host, ends_of, launch_end
from .node_ranks import with_ranks
from .overhead import totals
from .programs import with_modules, with_programs
from .ranks import RankedProcess, assign_ranks, judge
from .reduced import read_reduced
from .reduced_run import costs_of_ranks, run_of
from .shard import Joining, Source, read_classes_of_shard, read_shard, shards_of
from .unify import places_in

COLUMN_RANKS = 256  # default of `column_ranks_wanted`
LEFT_OUT = ".left-out-"  # prefix of raw folders with the profiles that were left out of a run; its name follows
_END_UNSEEN = "the exit code of the program is unknown, because its launcher was killed first"
_NODE_SAMPLES = 20_000  # largest number of samples of all nodes in an archive


_LONGER_THAN_THE_RUN = (
    "clocks disagree (times of ranks are longer than the run), so the profiles of the processes were merged"
)


def merge_run(
    raw_dir: Path | str,
    destination: Path | str,
    metadata: RunMetadata | None = None,
    keep_raw: bool = False,
    workers: Workers = ALONE,
    column_ranks: int | None = None,
) -> RunArchive:
    """Merge a raw folder into a new run archive inside the experiment folder `destination`; return the run.

    The name of the archive is its configuration and the next free repetition. The raw folder is removed only when the
    archive is complete on the disk. Profiles of processes that are not ranks of the run are moved to a separate raw
    folder.

    - metadata: None: read launch.json in the raw folder.
    - keep_raw: do not remove the raw folder.
    - workers: processes that read the profiles.
    - column_ranks: largest number of ranks for which the archive contains the values of each rank; None:
      `column_ranks_wanted`.

    Raises MeasurementError if no process left a profile, if another process merges the folder, or if the archive cannot
    be written (the message contains the command that merges later). Raises FormatError if the raw folder or its
    launch.json cannot be read.
    """
    with _alone(Path(raw_dir)):
        return _merge(Path(raw_dir), Path(destination), metadata, keep_raw, workers, column_ranks)


@contextmanager
def _alone(raw_dir: Path) -> Iterator[None]:
    """Hold the lock of a raw folder. Raises MeasurementError if another process is merging the folder."""
    try:
        descriptor = os.open(raw_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield  # the merge reports the defect
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise MeasurementError(f"{raw_dir}: another process is merging this folder: wait until it ends") from error
    except OSError:
        pass  # on a file system without locks, the merge continues without a lock
    try:
        yield
    finally:
        os.close(descriptor)


def _merge(
    raw_dir: Path,
    destination: Path,
    metadata: RunMetadata | None,
    keep_raw: bool,
    workers: Workers,
    column_ranks: int | None,
) -> RunArchive:
    if metadata is None:
        metadata = read_launch(raw_dir).metadata
    metadata = with_jobs(metadata, jobs_of(raw_dir))
    raw = read_raw_folder(raw_dir, workers)
    metadata = replace(metadata, fingerprint=with_programs(metadata.fingerprint, raw.profiles))
    if not raw.profiles:
        trouble = "".join(f"\n  {text}" for text in raw.problems)
        raise MeasurementError(f"{raw_dir}: contains no usable profile of a process{trouble}")
    archive = combine(raw, metadata, workers, column_ranks)
    fingerprint = with_modules(archive.metadata.fingerprint, archive.tree.regions)
    archive = replace(archive, metadata=replace(archive.metadata, fingerprint=fingerprint))
    archive = with_counters(archive, counted_by(metadata, raw_dir, archive.tree, raw.profiles))
    archive = with_flat_profile(archive, _with_addresses(raw.profiles))
    try:
        archive = write_archive(archive, destination)
    except OSError as error:
        raise MeasurementError(
            f"{destination}: the run archive could not be written: {error.strerror or error}. Nothing is lost: the "
            f"raw profiles stay in {raw_dir}; correct this (is the disk full?) and merge them with: "
            f"{merge_command(raw_dir, destination)}"
        ) from error
    # A run with left-out profiles is partial; its raw folder is removed after these profiles were moved.
    apart = destination / f"{LEFT_OUT}{archive.path.name}"
    if not keep_raw and (archive.metadata.complete or _move_left_out(raw, apart)):
        _remove(raw_dir)
    return archive


def merge_command(raw_dir: Path, destination: Path) -> str:
    """Return the command with which a user can merge a raw folder later."""
    return shlex.join(["quipu", "merge", str(raw_dir), "-o", str(destination)])


def _with_addresses(heads: Iterable[ProcessProfile]) -> Iterator[ProcessProfile]:
    """Read and yield, one after the other, the profiles that contain sampled addresses. heads: the profiles so far."""
    for path in dict.fromkeys(head.path for head in heads if "addresses_lost" in head.attributes):
        try:
            yield read_profile(path)
        except FormatError:
            continue  # the merge has already reported this problem


def _others(raw: RawFolder, processes: Iterable[RankedProcess]) -> list[ProcessProfile]:
    """Return the profiles of processes that are not ranks of the run."""
    ranked = {id(process.profile) for process in processes}
    return [profile for profile in raw.profiles if id(profile) not in ranked]


def _move_left_out(raw: RawFolder, folder: Path) -> bool:
    """Move the profiles that were left out of a run into the new raw folder `folder`.

    Returns whether the old raw folder may be removed, because it contains no such profile any more. The new folder can
    be merged like any raw folder; processes that MPI_Comm_spawn started are ranks there.
    """
    others = {profile.path for profile in _others(raw, assign_ranks(raw.profiles, raw.rank_files))}
    if not others:
        return True
    try:
        folder.mkdir()
        shutil.copy(raw.path / LAUNCH_FILE, folder)
        for path in sorted(others):
            shutil.move(path, folder)
    except OSError:
        return False  # the profiles stay in the old raw folder
    return True


def _remove(raw_dir: Path) -> None:
    """Rename a raw folder and remove it. A node agent that still writes to it ends when its folder is gone."""
    doomed = raw_dir.with_name(f"{MERGED}{uuid.uuid4().hex}")
    try:
        raw_dir.rename(doomed)
    except OSError:
        doomed = raw_dir
    shutil.rmtree(doomed, ignore_errors=True)


def combine(
    raw: RawFolder, metadata: RunMetadata, workers: Workers = ALONE, column_ranks: int | None = None
) -> RunArchive:
    """Return the run of the profiles in a raw folder, without writing anything.

    If the folder contains a complete reduction over MPI, the data come from it. Otherwise they come from the profiles,
    which `workers` read. The result does not depend on the number of workers. column_ranks: as in `merge_run`.
    """
    processes = assign_ranks(raw.profiles, raw.rank_files)
    foreign = _others(raw, processes)
    ends = ends_of([process.profile for process in processes], ends_by_host(raw.nodes, raw.alive), launch_end(metadata))
    metrics, conflicts = common_metrics(raw.profiles)
    ranks = len({process.rank for process in processes})
    limit = column_ranks_wanted() if column_ranks is None else column_ranks
    found, costs, doubts = _reduced(raw, processes, ranks <= limit, launch_end(metadata))
    if found is None:
        found, classes, processes, costs = _from_profiles(processes, ends, metrics, workers, ranks <= limit)
    else:
        classes = _classes_of(processes, ends, found.tree, workers)
    judgement = judge(processes, raw.rank_files, foreign, metadata)
    communication, strange = communication_of(processes)
    parameters, unsure = parameters_of(processes, metadata.parameters)
    told = (*metadata.problems, *raw.problems, *judgement.problems)
    unseen = [_END_UNSEEN] if metadata.exit_code is None and not told else []
    problems = (*metadata.problems, *raw.problems, *doubts, *conflicts, *judgement.problems, *strange, *unsure, *unseen)
    records = [*(_record(process) for process in processes), *judgement.missing]
    records.sort(key=lambda record: (record.rank, record.pid))
    partial = metadata.partial or metadata.exit_code != 0 or raw.damaged or judgement.partial
    made = _numbers_of(processes, "process_grid")
    periodic = tuple(map(bool, _numbers_of(processes, "process_grid_periodic")))
    complete = replace(
        metadata,
        parameters=parameters,
        partial=partial,
        problems=tuple(dict.fromkeys(problems)),
        ranks=len({record.rank for record in records}),
        metrics=found.metrics,
        threads=threads_at_once(found.tree, found.statistics),
        nodes=thinned(with_ranks(raw.nodes, raw.rank_files)),
        rank_columns=found.values is not None,
        overhead=totals(costs, raw.nodes),
        grid=metadata.grid or made,
        periodic=periodic if metadata.grid in ((), made) else (),
        counts_only=has_no_times(found.metrics),
    )
    tables = found.tree, found.values, found.statistics
    archive = RunArchive(
        complete,
        *tables,
        tuple(records),
        communication=communication,
        iterations=iterations_of(processes),
        delays=delays_of(processes, found.tree),
    )
    return with_classes(archive, classes)


def _numbers_of(processes: Iterable[RankedProcess], attribute: str) -> tuple[int, ...]:
    """Return the numbers in an attribute such as "4x2", of the first process that has it; () if there is none."""
    texts = (process.profile.attributes.get(attribute, "") for process in processes)
    parts = next((text.split("x") for text in texts if text), [])
    numbers = [number for part in parts if (number := whole_number(part, 9)) is not None]
    return tuple(numbers) if len(numbers) == len(parts) else ()


def column_ranks_wanted() -> int:
    """Return the largest number of ranks for which an archive contains the values of each rank.

    The number is $QUIPU_RANK_COLUMNS, or 256. The archive of a run with more ranks contains statistics over the ranks.

    Raises UsageError if the variable is not a whole number.
    """
    text = os.environ.get("QUIPU_RANK_COLUMNS", "") or str(COLUMN_RANKS)
    number = whole_number(text, 9)
    if number is None:
        raise UsageError(f"QUIPU_RANK_COLUMNS={text[:40]}: give a whole number of ranks")
    return number


def _reduced(
    raw: RawFolder, processes: list[RankedProcess], columns: bool, launch: LaunchEnd
) -> tuple[CountedRun | None, list[Mapping[str, float]], list[str]]:
    """Return the run of the reduction over MPI, the overhead of its ranks, and texts about defects.

    columns: whether the values of each rank are requested. The run is None if there is no reduction, if it is
    incomplete, or if it lacks requested data.
    """
    if len(raw.reduced) != 1:
        return None, [], []
    try:
        reduced = read_reduced(raw.reduced[0])
    except FormatError as error:
        return None, [], [f"{error}; the profiles of the processes were merged instead"]
    if columns and not reduced.rows:
        return None, [], []
    found = run_of(reduced, processes)
    if found is None:
        return None, [], []
    time = found.statistics.get("time")
    if time is not None and launch.is_exceeded_by(float(np.nanmax(time.max, initial=0.0))):
        return None, [], [_LONGER_THAN_THE_RUN]
    return (found if columns else replace(found, values=None)), costs_of_ranks(reduced, processes), []


def _source(process: RankedProcess, end: End) -> Source:
    profile = process.profile
    location = int(profile.location[0]) if profile.location.size else None
    return Source(process.rank, profile.path, location, end)


def _from_profiles(
    processes: list[RankedProcess],
    ends: Iterable[End],
    metrics: tuple[Metric, ...],
    workers: Workers,
    columns: bool,
) -> tuple[CountedRun, ClassCells | None, list[RankedProcess], list[Mapping[str, float]]]:
    """Return the run of all profiles, its count classes, the processes, and the overhead of each process.

    The profiles of the returned processes contain the problems that were found while their call paths were read.
    """
    sources = [_source(process, end) for process, end in zip(processes, ends, strict=True)]
    tasks = list(shards_of(sources, metrics, columns))
    joining = Joining()
    read: list[tuple[tuple[str, ...], bool]] = []
    costs: list[Mapping[str, float]] = []
    shards = workers.map(read_shard, tasks)
    for _, shard in zip(steps("merging profiles", tasks), shards, strict=True):
        joining.add(shard)
        read += shard.read
        costs += shard.costs
    judged = [
        replace(process, profile=replace(process.profile, problems=problems, damaged=damaged))
        for process, (problems, damaged) in zip(processes, read, strict=True)
    ]
    tree, statistics = joining.result
    found = counted_run(metrics, tree, joining.values(), statistics)
    classes = joined_classes([(joining.classes, places_in(found.tree, tree))])
    return found, classes, judged, costs


def _classes_of(
    processes: Iterable[RankedProcess], ends: Iterable[End], tree: CallTree, workers: Workers
) -> ClassCells | None:
    """Return the count classes of a run from the counters in the profiles; None if there are none.

    tree: the call paths of the run, which come from the reduction.
    """
    programs = SourcePrograms()
    sources = [
        replace(_source(process, end), head=process.profile)
        for process, end in zip(processes, ends, strict=True)
        if programs.have_classes(process.profile.attributes)
    ]
    shards = workers.map(read_classes_of_shard, list(shards_of(sources, (), columns=False)) if sources else [])
    return joined_classes((cells, places_in(tree, own)) for own, cells in shards)


def thinned(nodes: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """Return the records of the node agents with at most `_NODE_SAMPLES` samples in total (at least 10 for each node).

    Records of thousands of nodes then fit into run.json.
    """
    room = max(10, _NODE_SAMPLES // max(1, len(nodes)))
    result: list[Mapping[str, Any]] = []
    for node in nodes:
        samples = node.get("samples")
        if isinstance(samples, list) and len(samples) > room:
            step = -(-len(samples) // room)
            result.append({**node, "samples": samples[::step]})
        else:
            result.append(node)
    return tuple(result)


def common_metrics(profiles: Iterable[ProcessProfile]) -> tuple[tuple[Metric, ...], list[str]]:
    """Return the metrics of all profiles in the order of first use, and texts about contradicting definitions."""
    metrics: dict[str, Metric] = {}
    conflicts = []
    for profile in profiles:
        for metric in profile.metrics:
            known = metrics.setdefault(metric.name, metric)
            if (known.unit, known.kind, known.over_locations) != (metric.unit, metric.kind, metric.over_locations):
                conflicts.append(f"{profile.path.name}: defines the metric {metric.name} differently than other ranks")
    return tuple(metrics.values()), conflicts


def _record(process: RankedProcess) -> RankRecord:
    profile = process.profile
    return RankRecord(
        rank=process.rank,
        host=process.host,
        pid=profile.pid & 0x7FFFFFFF,
        affinity=profile.attributes.get("affinity", ""),
        max_rss_bytes=_number(profile, "max_rss_bytes"),
        voluntary_switches=_number(profile, "voluntary_switches"),
        involuntary_switches=_number(profile, "involuntary_switches"),
        state=ProfileState(profile.state).name.lower(),
    )


def _number(profile: ProcessProfile, key: str) -> int:
    return whole_number(profile.attributes.get(key, "")) or 0
