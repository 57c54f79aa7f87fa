# SPDX-License-Identifier: Apache-2.0
"""What a machine can do: caches, latencies, bandwidths, clocks and network; and its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Annotated, Any

import msgspec
import numpy as np

from .documents import Positive, typed
from .errors import FormatError

FORMAT, SCHEMA = "quipu-machine", 1

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
AtLeast1 = Annotated[float, msgspec.Meta(ge=1, le=1e18)]
"""Bytes, bytes per second, or Hz."""


@dataclass(frozen=True)
class Cache:
    """One level of data cache, as one core sees it.

    bytes: its size. line: bytes of a line. ways: associativity, 0 if unknown. cores: how many share it. latency:
    seconds of a load that hits it and depends on the one before. effective: bytes of which loads were measured to hit
    it, which is less where others share it; 0 if that was not measured.
    """

    level: Positive
    bytes: AtLeast1
    line: Positive
    ways: Annotated[int, msgspec.Meta(ge=0, lt=1 << 20)]
    cores: Positive
    latency: Seconds
    effective: Annotated[float, msgspec.Meta(ge=0, le=1e18)] = 0.0


@dataclass(frozen=True)
class Bandwidth:
    """Bytes per second that so many cores together read from memory."""

    cores: Positive
    bytes_per_second: AtLeast1


@dataclass(frozen=True)
class Reach:
    """What a load takes from a line that was used before, after so many other bytes.

    in_order: seconds per line if lines follow each other. scattered: if they do not, and loads do not depend on each
    other. In pages as programs get them, so with the translation of addresses.
    """

    bytes: AtLeast1
    in_order: Seconds
    scattered: Seconds


@dataclass(frozen=True)
class Timed:
    """What an operation with so many bytes took, in seconds."""

    bytes: Positive
    seconds: Seconds


@dataclass(frozen=True)
class Network:
    """Time of an MPI operation of so many ranks: alpha + beta · bytes, in seconds and seconds per byte.

    operation: "ping-pong" (one way; Hockney's model) or the name of a collective operation. times: what alpha and beta
    are fitted to, smallest sizes first.
    """

    operation: str
    ranks: Positive
    alpha: Seconds
    beta: Seconds
    times: tuple[Timed, ...] = ()

    def seconds(self, size: float) -> float:
        """Return what a message of so many bytes takes: between measured sizes, beyond them, or by alpha and beta.

        MPI libraries treat messages of different sizes differently, so that a line through all sizes is off at most.
        """
        if len(self.times) < 2:
            return self.alpha + self.beta * size
        sizes, seconds = zip(*((entry.bytes, entry.seconds) for entry in self.times), strict=True)
        if size <= sizes[-1]:
            return float(np.interp(size, sizes, seconds))
        rate = max((seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2]), 0.0)
        return float(seconds[-1] + rate * (size - sizes[-1]))


@dataclass(frozen=True)
class Machine:
    """A machine: `caches` from the nearest one on; memory: seconds of a load from memory; clocks in Hz.

    reach: from small distances on. frequency: of a core that computes; tsc: of the clock that time is counted with, 0
    if it has none. flops: floating-point operations in double precision per second of a core, 0: not measured.
    """

    host: str
    processor: str
    cores: Positive
    frequency: AtLeast1
    tsc: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    caches: tuple[Cache, ...]
    memory: Seconds
    bandwidth: tuple[Bandwidth, ...] = ()
    reach: tuple[Reach, ...] = ()
    network: tuple[Network, ...] = ()
    date: str = ""
    notes: tuple[str, ...] = ()
    flops: Annotated[float, msgspec.Meta(ge=0, le=1e18)] = 0.0

    @property
    def clock(self) -> float:
        """The clock that cycles are counted in where none are counted: the TSC, or else that of the core, in Hz."""
        return self.tsc or self.frequency

    def latency(self, level: str) -> float:
        """Return the seconds of a load from "L1", "L2", "LLC" or "memory"; of the next nearer cache if it has none."""
        if level == "memory":
            return self.memory
        if not self.caches:
            return 0.0
        if level == "LLC":
            return self.caches[-1].latency
        known = [cache for cache in self.caches if cache.level <= int(level[1:])]
        return (known or list(self.caches[:1]))[-1].latency

    def bandwidth_of(self, cores: int) -> float | None:
        """Return bytes per second that so many cores read together, between those measured; None if none were."""
        below = [entry for entry in self.bandwidth if entry.cores <= cores]
        return (below or list(self.bandwidth[:1]))[-1].bytes_per_second if self.bandwidth else None

    def ping_pong(self) -> Network | None:
        """Return Hockney's model of a message; None if no network was measured."""
        return next((entry for entry in self.network if entry.operation == "ping-pong"), None)


def to_document(machine: Machine) -> dict[str, Any]:
    """Return a machine as JSON data."""
    return {"format": FORMAT, "schema": SCHEMA, **asdict(machine)}


def from_document(content: Mapping[str, Any], source: object) -> Machine:
    """Return the machine that `to_document` wrote. Raises FormatError that names `source` and what is wrong."""
    if content.get("format") != FORMAT:
        raise FormatError(source, "describes no machine; quipu machine writes such a file")
    if content.get("schema") != SCHEMA:
        raise FormatError(source, f"a machine of schema {content.get('schema')!r}; this version reads schema {SCHEMA}")
    machine = typed(content, Machine, source)
    levels = [cache.level for cache in machine.caches]
    if levels != sorted(set(levels)):
        raise FormatError(source, f"caches: levels must rise, not {', '.join(map(str, levels))}")
    for entry in machine.network:
        if any(next_one.bytes <= one.bytes for one, next_one in pairwise(entry.times)):
            raise FormatError(source, f"network: sizes of {entry.operation} must rise")
    return machine
