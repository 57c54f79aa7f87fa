# SPDX-License-Identifier: Apache-2.0
"""View of the roofline of kernels: as a drawing for the report, and as JSON data.

A roofline shows the rate of each kernel (flop/s) over its intensity (flop per byte), below the ceilings of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quipu.modeling.kernels.roofline import Roofline, Spot

from .json_views import json_number
from .text import number, percent, quantity

WIDTH, HEIGHT = 640.0, 320.0  # size of the drawing and its margins, in units of SVG
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 12.0, 40.0
_MOST_KERNELS = 9  # the number of colours of stacked parts
_NOT_FROM_MEMORY = (
    "of all loads and stores: caches serve most, so that kernels may be above the roofs of the memory "
    "(quipu run --counters cachegrind counts the accesses to memory)"
)
_ROOM = 2.0  # the axes extend beyond the outermost kernels by this factor


@dataclass(frozen=True)
class DrawnKernel:
    """A kernel in the drawing.

    colour: number of the colour. at, measured: positions (x, y) at the target, and at the largest measured point. text:
    description. rate: flop/s as text. part: reached part of what the ceilings allow; None if unknown.
    """

    colour: int
    name: str
    at: tuple[float, float]
    measured: tuple[float, float]
    text: str
    rate: str
    part: float | None


@dataclass(frozen=True)
class DrawnRoofline:
    """A drawing of a roofline.

    - size: width, height, and the left, right, upper and lower end of the axes. across, up: ticks (position, text).
    - roofs: (path of SVG, x and y of the text, text, whether the text ends at x).
    - left_out: number of kernels that are not drawn. bytes: text about the counted bytes. no_flops: whether the ceiling
      of the processor is unknown. unmoved: name and rate of kernels that access no memory.
    """

    size: tuple[float, float, float, float, float, float]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    roofs: tuple[tuple[str, float, float, str, bool], ...]
    kernels: tuple[DrawnKernel, ...]
    left_out: int
    bytes: str
    no_flops: bool
    unmoved: tuple[tuple[str, str], ...]


def drawn(found: Roofline) -> DrawnRoofline:
    """Return the drawing of a roofline: flop/s over flop per byte, both axes logarithmic."""
    spots = [*found.at, *found.measured]
    ceilings, best = found.ceilings, max(found.ceilings.bandwidths.values())
    lows = [spot.intensity for spot in spots]
    low, high = min(lows) / _ROOM, max(lows) * _ROOM
    if ceilings.flops:
        high = max(high, ceilings.flops / min(ceilings.bandwidths.values()) * _ROOM)
    top = max(*(spot.rate for spot in spots), ceilings.flops or best * high) * _ROOM
    bottom = min(spot.rate for spot in spots) / _ROOM

    def x(intensity: float) -> float:
        return round(LEFT + math.log(intensity / low) / math.log(high / low) * (WIDTH - LEFT - RIGHT), 1)

    def y(rate: float) -> float:
        return round(TOP + math.log(top / rate) / math.log(top / bottom) * (HEIGHT - TOP - BOTTOM), 1)

    roofs = []
    for number_of_roof, (name, bandwidth) in enumerate(ceilings.bandwidths.items()):
        begin = max(low, bottom / bandwidth)
        end = min(high, (ceilings.flops or top) / bandwidth)
        if begin < end:
            path = f"M{x(begin)},{y(begin * bandwidth)}L{x(end)},{y(end * bandwidth)}"
            middle = begin**0.35 * end**0.65
            place = x(middle), y(middle * bandwidth)
            text = f"{name}: {quantity(bandwidth, 'B')}/s"
            above = number_of_roof == 0  # the text of the first, higher roof is above its line
            roofs.append(
                (path, place[0] - 8.0 if above else place[0] + 10.0, place[1] + (-4.0 if above else 14.0), text, above)
            )
    if ceilings.flops:
        begin = max(low, ceilings.flops / best)
        text = f"processor: {quantity(ceilings.flops)}flop/s"
        height = y(ceilings.flops)
        roofs.append((f"M{x(begin)},{height}L{x(high)},{height}", WIDTH - RIGHT, height - 6.0, text, True))
    before = {spot.name: spot for spot in found.measured}
    kernels = tuple(
        DrawnKernel(
            colour,
            spot.name,
            (x(spot.intensity), y(spot.rate)),
            (x(before[spot.name].intensity), y(before[spot.name].rate)),
            _text(spot, found),
            f"{quantity(spot.rate)}flop/s",
            found.part(spot),
        )
        for colour, spot in enumerate(found.at[:_MOST_KERNELS])
    )
    return DrawnRoofline(
        (WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM),
        tuple((x(tick), number(tick)) for tick in _decades(low, high)),
        tuple((y(tick), quantity(tick)) for tick in _decades(bottom, top)),
        tuple(roofs),
        kernels,
        max(len(found.at) - _MOST_KERNELS, 0),
        "from memory" if found.from_memory else _NOT_FROM_MEMORY,
        not ceilings.flops,
        tuple((spot.name, f"{quantity(spot.rate)}flop/s") for spot in found.unmoved),
    )


def _text(spot: Spot, found: Roofline) -> str:
    part = found.part(spot)
    reached = "" if part is None else f", {percent(part)} of what the ceilings allow"
    return f"{spot.name}: {quantity(spot.rate)}flop/s at {number(spot.intensity)} flop/B{reached}"


def _decades(low: float, high: float) -> Iterator[float]:
    """Yield the powers of ten in a range; in a range of less than 1000, also twice and five times the powers."""
    steps = (1.0,) if high / low >= 1e3 else (1.0, 2.0, 5.0)
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in steps:
            if low <= step * 10.0**power <= high:
                yield step * 10.0**power


def roofline_json(found: Roofline) -> dict[str, Any]:
    """Return a roofline as JSON data: the ceilings, and the kernels with flops, bytes and seconds of a rank."""
    return {
        "flops_per_second": json_number(found.ceilings.flops) if found.ceilings.flops else None,
        "bytes_per_second": {name: json_number(value) for name, value in found.ceilings.bandwidths.items()},
        "bytes_from_memory": found.from_memory,
        "at": [_spot(spot, found) for spot in found.at],
        "measured": [_spot(spot, found) for spot in found.measured],
        "nothing_from_memory": [
            {"name": spot.name, "flops_per_second": json_number(spot.rate)} for spot in found.unmoved
        ],
    }


def _spot(spot: Spot, found: Roofline) -> dict[str, Any]:
    return {
        "name": spot.name,
        "flops": json_number(spot.flops),
        "bytes": json_number(spot.bytes),
        "seconds": json_number(spot.seconds),
        "flops_per_byte": json_number(spot.intensity),
        "flops_per_second": json_number(spot.rate),
        "part_of_allowed": json_number(math.nan if (part := found.part(spot)) is None else part),
    }
