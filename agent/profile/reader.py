# SPDX-License-Identifier: Apache-2.0
"""Read the raw profile of one process (layout: agent/runtime/profile.def).

The file may be incomplete (a killed process, a full disk), or may not be a profile. If the whole file is unusable, the
reader raises FormatError. If a part is damaged, the reader adds a text to `problems` and uses the rest of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import IntArray, Metric, Region
from quipu.modeling.limits import reading, without_waiting

from ..layout import LAYOUT
from .addresses import SampledAddresses, read_addresses
from .chunks import LARGEST as LARGEST_CHUNK
from .chunks import Chunk, ChunkType, Seal, filled_bytes, is_intact, read_chunks
from .counters import KeptCounters, keep_counters
from .effort import add_effort, fold_left_out, read_counters, read_weights, signed, without_negative_times
from .nodes import FIXED_SIZE, ActiveThreads, NodeArrays, distinct, read_nodes, read_threads
from .overhead import EVENTS, OVERHEAD, are_mpi, event_costs, seconds_of_nodes, with_events
from .text import DelayRecord, ProfileTexts, ResidualCounts, parse_metric_table

_MAGIC = LAYOUT.texts["PROFILE_MAGIC"].encode()
_VERSION = LAYOUT.numbers["PROFILE_VERSION"]
_OLDEST = 2  # oldest supported version of the layout; its nodes have 0 instead of an owner
_HEADER = np.dtype(LAYOUT.record("profile_header"))
_PROBLEMS = ("clock_problem", "contexts_problem", "annotation_problem", "memory_problem", "files_problem")
_TEXT = frozenset({ChunkType.TEXT})


class ProfileState(IntEnum):
    """The state of the process at the last write: `enum quipu_profile_state`."""

    RUNNING = LAYOUT.numbers["RUNNING"]
    FLUSHED = LAYOUT.numbers["FLUSHED"]
    ENDED = LAYOUT.numbers["ENDED"]


class Clock(IntEnum):
    """The unit of time counters: `enum quipu_profile_clock`."""

    NONE = LAYOUT.numbers["CLOCK_NONE"]
    NANOSECONDS = LAYOUT.numbers["CLOCK_NANOSECONDS"]
    TSC = LAYOUT.numbers["CLOCK_TSC"]


@dataclass(frozen=True, eq=False)
class ProcessProfile:
    """The measurements of one process. A node is one call path of one thread; a location is a thread.

    - parent, region, location: shape (nodes,). `parent` is the index of the parent node (-1: a root); parents come
      before their children. `region` is a key of `regions` (0: the root of a location). `location` is a key of
      `locations`, which contains the names of the threads.
    - values: exclusive values of each metric, shape (nodes,): counts (int64), or seconds (float64) for metrics with the
      unit "s". Seconds are NaN if the clock cannot be calibrated. Metrics with the unit "s" are missing if the process
      read no clock. Effort is the sum of counters times weights; regions that a filter excludes count for their
      callers.
    - threads: the active node of each thread, and the clock (ticks) at its latest event.
    - start_ticks, start_ns, started_epoch_ns: at the start of the process, the clock of the profile (ticks),
      CLOCK_MONOTONIC of the host (ns), and the time since 1970 (ns). seconds_per_tick: NaN if unknown.
    - lost: number of events that did not fit into the file. error: error message of the process; empty if there is
      none.
    - residuals: counts that the process added after the ranks had combined their profiles over MPI (reduction).
    - problems: texts for the user. damaged: whether a part of the file is unusable, so that measurements are missing.
    - location_attributes: attributes by location; a location with attributes is a simulated rank (ranks.py).
    - pairs: how often hooks entered and left each node, shape (nodes,). Visits without hooks are not contained.
    - counters: visits and counters of the nodes if requested, otherwise None. names: digest of all regions in the file.
    - addresses: code addresses of samples; None if there are none.
    - delays: how long other ranks waited because of this process, by call path.
    - setup_seconds: processor time of starting and ending the measurement and of registering regions; 0: unknown.
    """

    path: Path
    pid: int
    state: ProfileState
    clock: Clock
    started_epoch_ns: int
    start_ticks: int
    start_ns: int
    seconds_per_tick: float
    lost: int
    error: str
    attributes: Mapping[str, str]
    locations: Mapping[int, str]
    regions: Mapping[int, Region]
    metrics: tuple[Metric, ...]
    parent: IntArray
    region: IntArray
    location: IntArray
    values: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]
    residuals: tuple[ResidualCounts, ...]
    pairs: NDArray[np.uint64]
    threads: ActiveThreads
    problems: tuple[str, ...]
    damaged: bool
    location_attributes: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    counters: KeptCounters | None = None
    names: bytes = b""
    addresses: SampledAddresses | None = None
    delays: tuple[DelayRecord, ...] = ()
    setup_seconds: float = 0.0

    @property
    def stage(self) -> int:
        """Return how many programs ran in this process before this one, from the name of the file.

        A process that calls exec(3) executes several programs with the same process id, and each writes a profile.
        Start times do not show their order reliably, because the clock may be set.
        """
        number = self.path.name.removesuffix(".quipu").rpartition(f"-{self.pid}-")[2]
        return int(number) if number.isdecimal() and len(number) < 6 else 0


@dataclass(frozen=True)
class ProfileHeader:
    """The header of a profile. fields: its values by name. seal: None if the process was killed or is running."""

    fields: np.void
    metrics: tuple[Metric, ...]
    seal: Seal | None

    def number(self, name: str) -> int:
        """Return the value of an integer field."""
        return int(self.fields[name])


def read_profile(
    path: Path | str,
    call_paths: bool = True,
    wants_counters: Callable[[Mapping[str, str]], bool] = lambda attributes: False,
    values: bool = True,
) -> ProcessProfile:
    """Read one raw profile.

    call_paths: if False, read only header and texts. wants_counters: returns whether to keep the counters of a profile
    with these attributes. values: if False, `values` of the result is empty and `pairs` are 0.

    Raises FormatError with the path if the file is not a profile of a supported version or its header is invalid. Other
    damage, such as a wrong checksum, is reported in `problems`. The memory use is proportional to the size of the file.
    """
    path = Path(path)
    problems: list[str] = []
    header, chunks = read_parts(path, None if call_paths else _TEXT, problems)
    texts = ProfileTexts()
    for chunk in chunks[ChunkType.TEXT]:
        texts.parse(chunk.content, problems)
    nodes = read_nodes(chunks[ChunkType.NODES], header.number("node_size"), len(header.metrics), problems)
    threads = read_threads(chunks[ChunkType.THREADS], nodes)
    counters = read_counters(chunks[ChunkType.COUNTERS], nodes, problems)
    weights = read_weights(chunks[ChunkType.WEIGHTS], nodes, len(header.metrics) + 1, problems)
    additions = [table for table in weights if table.metric >= len(header.metrics)]
    weights = [table for table in weights if table.metric < len(header.metrics)]
    read = nodes
    counts: NDArray[np.int64] | None = None
    notes: list[str] = []
    if values:
        nodes, is_weighted = add_effort(read, counters, weights, header.metrics, problems)
        nodes = with_events(nodes, read, counters, additions, texts.without_hook, header.metrics)
        nodes, index = fold_left_out(nodes, texts.left_out, (*header.metrics, *EVENTS))
        words, notes = without_negative_times(nodes.counts[:, : -len(EVENTS)], header.metrics)
        counts = signed(words, is_weighted, problems)
    else:
        nodes, index = fold_left_out(read, texts.left_out, ())
    kept = None
    if wants_counters(texts.attributes):
        kept = keep_counters(read, counters, weights, index, texts.regions, header.metrics)
    threads = replace(threads, node=np.where(threads.node >= 0, index[threads.node], -1)) if index.size else threads
    addresses = read_addresses(chunks[ChunkType.ADDRESSES], header.metrics, texts.attributes, problems)
    whole = _assemble(path, header, nodes, counts, threads, texts, problems, notes)
    return replace(whole, counters=kept, addresses=addresses)


def read_parts(
    path: Path, wanted: frozenset[ChunkType] | None, problems: list[str]
) -> tuple[ProfileHeader, Mapping[ChunkType, list[Chunk]]]:
    """Return the header of a profile, and its chunks of the wanted types. Raises FormatError like `read_profile`.

    wanted: types of chunks to read; None: all.
    """
    try:
        with open(path, "rb", buffering=0, opener=without_waiting) as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(path, file, size, problems)
            first, chunk_size = header.number("header_size"), header.number("chunk_size")
            with reading(path, filled_bytes(file.fileno())):
                return header, read_chunks(file, first, size, chunk_size, header.seal, problems, wanted)
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error


def _read_header(path: Path, file: BinaryIO, size: int, problems: list[str]) -> ProfileHeader:
    raw = file.read(_HEADER.itemsize)
    if not raw.strip(b"\0"):
        raise FormatError(
            path,
            "is empty: its process is not measured (the disk was full, the system did not allow to write, or the "
            "process ended at its start)",
        )
    if raw[: len(_MAGIC)] != _MAGIC:
        raise FormatError(path, "is not a Quipu profile (it does not begin with QUIPUPRF)")
    if len(raw) < _HEADER.itemsize:
        raise FormatError(path, f"is truncated: {size} bytes, less than the header of {_HEADER.itemsize} bytes")
    fields = np.frombuffer(raw, dtype=_HEADER)[0]
    version = int(fields["version"])
    if not _OLDEST <= version <= _VERSION:
        raise FormatError(
            path,
            f"has profile version {version}, this Quipu reads versions {_OLDEST} to {_VERSION}: "
            "merge it with the Quipu that the program was built with",
        )
    table = bytes(fields["metrics"])
    metrics = parse_metric_table(path, table, int(fields["metric_count"]))
    chunk_size, node_size = int(fields["chunk_size"]), int(fields["node_size"])
    if int(fields["header_size"]) < _HEADER.itemsize or int(fields["header_size"]) > 1 << 20:
        raise FormatError(path, f"is damaged: header of {int(fields['header_size'])} bytes")
    if not _HEADER.itemsize <= chunk_size <= LARGEST_CHUNK:
        raise FormatError(path, f"is damaged: chunks of {chunk_size} bytes")
    if not FIXED_SIZE + 8 * len(metrics) <= node_size <= chunk_size:
        raise FormatError(path, f"is damaged: call-path records of {node_size} bytes")
    if int(fields["state"]) not in set(ProfileState) or int(fields["clock"]) not in set(Clock):
        raise FormatError(path, "is damaged: unknown state or clock in the header")
    seal = Seal(int(fields["chunks"])) if int(fields["crc"]) else None
    if seal is not None and not is_intact(raw, _HEADER):
        problems.append("the header does not fit its checksum: it is damaged, and metrics and times may be wrong")
        seal = Seal(0)
    return ProfileHeader(fields, metrics, seal)


def _assemble(
    path: Path,
    header: ProfileHeader,
    nodes: NodeArrays,
    counts: NDArray[np.int64] | None,
    threads: ActiveThreads,
    texts: ProfileTexts,
    problems: list[str],
    notes: list[str],
) -> ProcessProfile:
    clock = Clock(header.number("clock"))
    regions = texts.regions_for(distinct(nodes.region), problems)
    named = {number for entry in texts.residuals for number in entry.regions}
    named |= {number for entry in texts.delays for number in (*entry.operation, *entry.cause)}
    regions |= {number: texts.regions[number] for number in named if number in texts.regions}
    damaged = bool(problems)
    problems += notes
    seconds_per_tick = _calibrate(header, clock, problems)
    values: dict[str, NDArray[np.int64] | NDArray[np.float64]] = {}
    pairs = np.zeros(nodes.id.size, dtype=np.uint64) if counts is None else nodes.counts[:, -len(EVENTS)]
    for column, metric in enumerate(header.metrics):
        if counts is None:
            break
        if metric.unit != "s":
            values[metric.name] = counts[:, column]
        elif clock is not Clock.NONE:
            values[metric.name] = np.asarray(counts[:, column] * seconds_per_tick, dtype=np.float64)
    metrics = tuple(metric for metric in header.metrics if metric.name in values)
    costs = event_costs(texts.attributes)
    if costs is not None and "visits" in values and OVERHEAD.name not in values:
        events = nodes.counts[:, -len(EVENTS) :]
        values[OVERHEAD.name] = seconds_of_nodes(costs, are_mpi(regions, nodes.region), events)
        metrics = (*metrics, OVERHEAD)
    lost = header.number("lost")
    if lost:
        problems.append(f"{lost} events did not fit into the profile and are not counted")
    if folded := header.number("folded"):
        problems.append(f"{folded} call paths did not fit into the profile; their callers contain their counts")
    error = bytes(header.fields["error"]).split(b"\0", 1)[0].decode("utf-8", "replace")
    if error:
        problems.append(error)
    problems += [texts.attributes[key] for key in _PROBLEMS if texts.attributes.get(key)]
    return ProcessProfile(
        path=path,
        pid=header.number("pid"),
        state=ProfileState(header.number("state")),
        clock=clock,
        started_epoch_ns=header.number("start_epoch_ns"),
        start_ticks=header.number("start_ticks"),
        start_ns=header.number("start_ns"),
        seconds_per_tick=seconds_per_tick,
        lost=lost,
        error=error,
        attributes=texts.attributes,
        locations=texts.locations,
        regions=regions,
        metrics=metrics,
        parent=nodes.parent,
        region=nodes.region,
        location=nodes.location,
        values=values,
        residuals=tuple(texts.residuals),
        pairs=pairs,
        threads=threads,
        problems=tuple(problems),
        damaged=damaged,
        location_attributes=texts.location_attributes,
        names=texts.names,
        delays=tuple(texts.delays),
        setup_seconds=header.number("setup_ns") * 1e-9,
    )


def _calibrate(header: ProfileHeader, clock: Clock, problems: list[str]) -> float:
    """Return the seconds per tick of the clock of a profile; NaN if it measured no time or the header lacks the data.

    Missing data also adds a text to `problems`.
    """
    if clock is Clock.NONE:
        return float("nan")
    if clock is Clock.NANOSECONDS:
        return 1e-9
    ticks = header.number("flush_ticks") - header.number("start_ticks")
    nanoseconds = header.number("flush_ns") - header.number("start_ns")
    if ticks <= 0 or nanoseconds <= 0:
        problems.append("time is unknown: the process ended before its clock was compared with the system clock")
        return float("nan")
    return nanoseconds / ticks * 1e-9
