# SPDX-License-Identifier: Apache-2.0
"""The roofline of kernels: their speed, and the limits by memory and processor (Williams et al. 2009).

A kernel with F floating-point operations and B moved bytes in a time t has the speed F/t and the intensity F/B. Its
speed is limited by the speed of the processor, and by its intensity times the memory bandwidth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..machine import Machine
from .amounts import Models
from .identify import KernelKind
from .model import ProgramModel

FROM_MEMORY = "memory_accesses"
_LEAST = 0.01  # share of the time of all kernels; shorter kernels are left out
_USUAL_LINE = 64  # bytes of a cache line, if the caches are unknown


@dataclass(frozen=True)
class Ceilings:
    """The limits of one core of a machine.

    Flops per second (0: not measured), and bytes per second by name: "memory, all cores" for each core while all cores
    read; "memory, one core" for a core alone.
    """

    flops: float
    bandwidths: Mapping[str, float]

    def at(self, intensity: float) -> float:
        """Return the flops per second that the processor, and the memory read by all cores, allow at an intensity."""
        of_memory = min(self.bandwidths.values()) * intensity
        return min(of_memory, self.flops) if self.flops else of_memory


@dataclass(frozen=True)
class Spot:
    """A kernel at a point, on one rank: flops, moved bytes, seconds."""

    name: str
    flops: float
    bytes: float
    seconds: float

    @property
    def intensity(self) -> float:
        """Return the flops per byte."""
        return self.flops / self.bytes

    @property
    def rate(self) -> float:
        """Return the flops per second."""
        return self.flops / self.seconds


@dataclass(frozen=True)
class Roofline:
    """Kernels with floating-point operations, the longest first, and ceilings.

    at: at the requested point; measured: at the nearest measured point. from_memory: bytes are lines from memory;
    otherwise bytes of all loads and stores, most of which caches serve. unmoved: kernels without bytes from memory at
    the point, which have no intensity.
    """

    ceilings: Ceilings
    at: tuple[Spot, ...]
    measured: tuple[Spot, ...]
    from_memory: bool
    unmoved: tuple[Spot, ...] = ()

    def part(self, spot: Spot) -> float | None:
        """Return the speed of a kernel relative to the ceilings; None if caches may serve its bytes."""
        return spot.rate / self.ceilings.at(spot.intensity) if self.from_memory else None


def ceilings_of(machine: Machine) -> Ceilings | None:
    """Return the ceilings of a core; None where no bandwidth was measured."""
    alone, together = machine.bandwidth_of(1), machine.bandwidth_of(machine.cores)
    if alone is None or together is None:
        return None
    return Ceilings(
        machine.flops, {"memory, one core": alone, "memory, all cores": min(together / machine.cores, alone)}
    )


def roofline(model: ProgramModel, machine: Machine, point: Mapping[str, float]) -> Roofline | None:
    """Return the roofline of the kernels of a program at a point.

    The result is None without a measured bandwidth, and without floating-point operations.
    """
    ceilings = ceilings_of(machine)
    if ceilings is None or "flops" not in model.models.analysis.metrics:
        return None
    from_memory = FROM_MEMORY in model.models.analysis.metrics
    line = float(machine.caches[-1].line) if machine.caches else float(_USUAL_LINE)
    moved = {FROM_MEMORY: line} if from_memory else {"bytes_loaded": 1.0, "bytes_stored": 1.0}
    near = {
        name: min(max(point[name], low), high) for name, (low, high) in zip(model.parameters, model.ranges, strict=True)
    }
    spots = [_spots(model, model.models, own, moved) for own in (point, near)]
    there = [{spot.name for spot in own if spot.bytes > 0.0} for own in spots]
    at, measured = (tuple(spot for spot in own if spot.name in there[0] & there[1]) for own in spots)
    unmoved = tuple(spot for spot in spots[0] if spot.bytes == 0.0)
    return Roofline(ceilings, at, measured, from_memory, unmoved) if at else None


def _spots(model: ProgramModel, models: Models, point: Mapping[str, float], moved: Mapping[str, float]) -> list[Spot]:
    """Return the kernels at a point with flops and a noticeable time, the longest first."""
    found = []
    for kernel in model.at(point).kernels:
        if kernel.kernel.kind is KernelKind.REST:
            continue
        paths = kernel.kernel.paths
        size = sum(each * models.sum(name, paths, point).value for name, each in moved.items())
        spot = Spot(kernel.kernel.name, models.sum("flops", paths, point).value, size, kernel.total.value)
        if min(spot.flops, spot.seconds) > 0.0:
            found.append(spot)
    whole = sum(spot.seconds for spot in found)
    return sorted((spot for spot in found if spot.seconds > _LEAST * whole), key=lambda spot: -spot.seconds)
