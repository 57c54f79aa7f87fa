# SPDX-License-Identifier: Apache-2.0
"""The description of a machine (caches, latencies, bandwidths, clocks, network), and its file format."""

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
"""A number of bytes, bytes per second, or Hz."""


@dataclass(frozen=True)
class Cache:
    """One level of data cache of a core.

    - bytes: size of the cache. line: bytes of a cache line. ways: associativity, 0 if unknown. cores: number of cores
      that share the cache.
    - latency: seconds of a load that hits the cache and depends on the previous load.
    - effective: usable bytes by measurement; fewer than `bytes` if other programs share the cache; 0 if not measured.
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
    """The bytes per second that `cores` cores together read from memory."""

    cores: Positive
    bytes_per_second: AtLeast1


@dataclass(frozen=True)
class Reach:
    """The time to load a line again after `bytes` other bytes were loaded (the reuse distance).

    in_order: seconds per line for consecutive lines. scattered: seconds per line for independent loads of random lines.
    Both include address translation with the usual page size.
    """

    bytes: AtLeast1
    in_order: Seconds
    scattered: Seconds


@dataclass(frozen=True)
class Timed:
    """The measured time of an operation on `bytes` bytes."""

    bytes: Positive
    seconds: Seconds


@dataclass(frozen=True)
class Network:
    """The time of an MPI operation of `ranks` ranks: alpha (seconds) + beta (seconds per byte) · bytes.

    operation: "ping-pong" (the time of one way; Hockney's model) or the name of a collective operation. times: the
    measurements to which alpha and beta were fitted, in ascending order of sizes.
    """

    operation: str
    ranks: Positive
    alpha: Seconds
    beta: Seconds
    times: tuple[Timed, ...] = ()

    def seconds(self, size: float) -> float:
        """Return the seconds of the operation for `size` bytes.

        The time is interpolated between measured sizes; beyond the largest size, it grows as between the two largest
        sizes. With fewer than two measured sizes, it is alpha + beta · bytes. MPI libraries use different protocols for
        different sizes, so one line does not fit all sizes.
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
    """A machine.

    - host: its name. processor: model of the processor. cores: number of cores.
    - caches: the nearest first. memory: seconds of a load from memory. reach: in ascending order of bytes.
    - frequency: of a core that computes (Hz). tsc: frequency of the time stamp counter (Hz), 0 if there is none.
    - flops: double-precision operations per second of a core; 0: not measured.
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
        """Return the frequency (Hz) that converts times to cycles without counted cycles: `tsc`, else `frequency`."""
        return self.tsc or self.frequency

    def latency(self, level: str) -> float:
        """Return the seconds of a load from "L1", "L2", "LLC" (last-level cache) or "memory".

        If the cache level does not exist, the result is the latency of the next nearer level; 0 without caches.
        """
        if level == "memory":
            return self.memory
        if not self.caches:
            return 0.0
        if level == "LLC":
            return self.caches[-1].latency
        known = [cache for cache in self.caches if cache.level <= int(level[1:])]
        return (known or list(self.caches[:1]))[-1].latency

    def bandwidth_of(self, cores: int) -> float | None:
        """Return the bytes per second that `cores` cores read together; None if no bandwidth was measured.

        It is the measured bandwidth of the next lower number of cores (of the lowest, if there is none).
        """
        below = [entry for entry in self.bandwidth if entry.cores <= cores]
        return (below or list(self.bandwidth[:1]))[-1].bytes_per_second if self.bandwidth else None

    def ping_pong(self) -> Network | None:
        """Return Hockney's model of a message; None if no network was measured."""
        return next((entry for entry in self.network if entry.operation == "ping-pong"), None)


def to_document(machine: Machine) -> dict[str, Any]:
    """Return a machine as JSON data."""
    return {"format": FORMAT, "schema": SCHEMA, **asdict(machine)}


def from_document(content: Mapping[str, Any], source: object) -> Machine:
    """Return the machine of data that `to_document` returned.

    source: name of the file in errors. Raises FormatError for other data.
    """
    if content.get("format") != FORMAT:
        raise FormatError(source, "is not a description of a machine: write one with quipu machine -o FILE")
    if content.get("schema") != SCHEMA:
        raise FormatError(
            source,
            f"has schema {content.get('schema')!r}, this Quipu reads schema {SCHEMA}: measure it again with "
            "quipu machine",
        )
    machine = typed(content, Machine, source)
    levels = [cache.level for cache in machine.caches]
    if levels != sorted(set(levels)):
        raise FormatError(source, f"caches: levels must rise, not {', '.join(map(str, levels))}")
    for entry in machine.network:
        if any(next_one.bytes <= one.bytes for one, next_one in pairwise(entry.times)):
            raise FormatError(source, f"network: sizes of {entry.operation} must rise")
    return machine
