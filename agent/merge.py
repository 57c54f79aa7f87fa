"""From the raw profiles of all processes of a run to one run archive."""

from __future__ import annotations

import shlex
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import CallTree, IntArray, Metric

from .archive import RankRecord, RankStatistics, RunArchive, RunValues, write_archive
from .last_moments import ends_by_host, launch_end, with_time_to_the_end
from .metadata import RunMetadata
from .profile import ProcessProfile, ProfileState
from .rank_statistics import over_ranks
from .ranks import RankedProcess, assign_ranks, judge
from .raw_folder import RawFolder, read_launch, read_raw_folder
from .tables import concatenated
from .unify import Forest, RegionTable, unify, without_nodes

_NODE_SAMPLES = 20_000  # samples of all nodes together that go into an archive

Values = NDArray[np.int64] | NDArray[np.float64]


def merge_run(
    raw_dir: Path | str, destination: Path | str, metadata: RunMetadata | None = None, keep_raw: bool = False
) -> RunArchive:
    """Merge a raw folder into a new run archive inside the experiment folder `destination`.

    metadata: as known after the launch; by default what launch.json in the raw folder says. The archive is called
    after its configuration and the next free repetition. The raw folder is removed once the archive is complete on
    disk, and stays in every other case.

    Raises MeasurementError if no process left a profile or the archive cannot be written (it says how to merge
    later), FormatError if the raw folder or its launch.json cannot be read.
    """
    raw_dir, destination = Path(raw_dir), Path(destination)
    if metadata is None:
        metadata = read_launch(raw_dir).metadata
    raw = read_raw_folder(raw_dir)
    if not raw.profiles:
        trouble = "".join(f"\n  {text}" for text in raw.problems)
        raise MeasurementError(f"{raw_dir}: holds no usable profile of a process{trouble}")
    archive = combine(raw, metadata)
    try:
        archive = write_archive(archive, destination)
    except OSError as error:
        raise MeasurementError(
            f"{destination}: the run archive could not be written: {error.strerror or error}. Nothing is lost: the "
            f"raw profiles stay in {raw_dir}; mend this (make room on the disk?) and merge them with: "
            f"{merge_command(raw_dir, destination)}"
        ) from error
    if not keep_raw:
        _remove(raw_dir)
    return archive


def merge_command(raw_dir: Path, destination: Path) -> str:
    """Return what a user types to merge a raw folder later."""
    return shlex.join(["quipu", "merge", str(raw_dir), "-o", str(destination)])


def _remove(raw_dir: Path) -> None:
    """Remove a raw folder, first its name: a node agent that still writes finds it no more and ends."""
    doomed = raw_dir.with_name(f".merged-{uuid.uuid4().hex}")
    try:
        raw_dir.rename(doomed)
    except OSError:
        doomed = raw_dir
    shutil.rmtree(doomed, ignore_errors=True)


def combine(raw: RawFolder, metadata: RunMetadata) -> RunArchive:
    """Return the run that the profiles of a raw folder make together; nothing is written."""
    ends = ends_by_host(raw.nodes, raw.alive)
    profiles = with_time_to_the_end(raw.profiles, ends, launch_end(metadata))
    processes = assign_ranks(profiles, raw.rank_files)
    metrics, conflicts = common_metrics(raw.profiles)
    tree, values = _values(processes, metrics)
    measured = np.unique(np.array([process.rank for process in processes], dtype=np.int64))
    statistics = statistics_of(values, metrics, measured, len(tree))
    judgement = judge(processes, raw.rank_files)
    problems = (*metadata.problems, *raw.problems, *conflicts, *judgement.problems)
    records = [*(_record(process) for process in processes), *judgement.missing]
    records.sort(key=lambda record: (record.rank, record.pid))
    partial = metadata.partial or metadata.exit_code != 0 or raw.damaged or judgement.partial
    complete = replace(
        metadata,
        partial=partial,
        problems=tuple(dict.fromkeys(problems)),
        ranks=len({record.rank for record in records}),
        metrics=metrics,
        nodes=thinned(raw.nodes),
    )
    return RunArchive(complete, tree, values, statistics, tuple(records))


def thinned(nodes: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """Return what the node agents wrote, with so few samples each that thousands of nodes fit into run.json."""
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
    """Return the metrics of all profiles together in order of first use, and texts about those that disagree."""
    metrics: dict[str, Metric] = {}
    conflicts = []
    for profile in profiles:
        for metric in profile.metrics:
            known = metrics.setdefault(metric.name, metric)
            if (known.unit, known.kind, known.over_locations) != (metric.unit, metric.kind, metric.over_locations):
                conflicts.append(f"{profile.path.name}: metric {metric.name} is defined otherwise than in other ranks")
    return tuple(metrics.values()), conflicts


@dataclass(frozen=True, eq=False)
class _Rows:
    """Nodes of one process that are call paths, with the number of their location over the whole run."""

    path: IntArray
    slot: IntArray
    values: dict[str, Values]


def _values(processes: list[RankedProcess], metrics: tuple[Metric, ...]) -> tuple[CallTree, RunValues]:
    table = RegionTable()
    forests = []
    kept: list[IntArray] = []
    for process in processes:
        keep, forest = _forest(process.profile, table)
        kept.append(keep)
        forests.append(forest)
    tree, paths = unify(forests, table)
    slots: list[tuple[int, int]] = []
    rows = []
    next_thread: dict[int, int] = {}
    for process, keep, path in zip(processes, kept, paths, strict=True):
        known, location = np.unique(process.profile.location, return_inverse=True)
        first = next_thread.get(process.rank, 0)
        next_thread[process.rank] = first + known.size
        rows.append(_Rows(path, location[keep] + len(slots), _columns(process.profile, metrics, keep)))
        slots += [(process.rank, first + thread) for thread in range(known.size)]
    return tree, _combined(rows, slots, metrics)


def _forest(profile: ProcessProfile, table: RegionTable) -> tuple[IntArray, Forest]:
    """Return which nodes are call paths, and those as a forest: roots of locations vanish, their children are roots."""
    vanish = profile.region == 0
    keep = np.flatnonzero(~vanish)
    parent = without_nodes(profile.parent, vanish)
    position = np.cumsum(~vanish) - 1
    ids = np.array(sorted(profile.regions), dtype=np.int64)
    numbers = table.numbers(profile.regions[number] for number in ids.tolist())
    region = numbers[np.searchsorted(ids, profile.region[keep])]
    above = parent[keep]
    return keep, Forest(np.where(above >= 0, position[above], -1), region)


def _columns(profile: ProcessProfile, metrics: tuple[Metric, ...], keep: IntArray) -> dict[str, Values]:
    """Return the values of a process; a metric that it does not have is 0, or NaN if it is a time."""
    columns: dict[str, Values] = {}
    for metric in metrics:
        if metric.name in profile.values:
            columns[metric.name] = profile.values[metric.name][keep]
        elif metric.unit == "s":
            columns[metric.name] = np.full(keep.size, np.nan)
        else:
            columns[metric.name] = np.zeros(keep.size, dtype=np.int64)
    return columns


def _combined(rows: list[_Rows], slots: list[tuple[int, int]], metrics: tuple[Metric, ...]) -> RunValues:
    """Return one row per call path and location, sorted by call path, rank, thread."""
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


def statistics_of(
    values: RunValues, metrics: tuple[Metric, ...], ranks: IntArray, paths: int
) -> dict[str, RankStatistics]:
    """Return the statistics over ranks of every metric. ranks: all measured ranks, ascending."""
    rows = (values.callpath, values.rank)
    return {
        metric.name: over_ranks(metric, *rows, values.metrics[metric.name], ranks=ranks, paths=paths)
        for metric in metrics
    }


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
    text = profile.attributes.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
