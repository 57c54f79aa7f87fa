# SPDX-License-Identifier: Apache-2.0
"""Find the functions of samples: call paths outside of all regions, and a flat profile of all samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import Region
from quipu.modeling.printable import printable

from ..profile.addresses import SampledAddresses
from ..profile.reader import ProcessProfile
from ..source.symbols import symbols_of

_MOST_FUNCTIONS = 200
_CLOCK = "task_clock"


@dataclass(frozen=True)
class Function:
    """A function of a program or library. name: "" if unknown. library: path of the file; "" if unknown."""

    name: str
    library: str

    @property
    def region(self) -> Region:
        """Return the function as a region."""
        name = self.name or f"unknown in {Path(self.library).name or 'code that was unloaded'}"
        return Region(name, name, file=self.library)


def functions_of(addresses: SampledAddresses) -> list[Function]:
    """Return the function of each sampled address."""
    found = [Function("", "")] * addresses.address.size
    for code in addresses.code:
        inside = (addresses.address >= np.uint64(code.begin & ~15)) & (addresses.address < np.uint64(code.end))
        here = np.flatnonzero(inside)
        if not here.size:
            continue
        symbols = symbols_of(Path(code.path))
        places = symbols.find(addresses.address[here] - np.uint64(code.load))
        for index, place in zip(here.tolist(), places.tolist(), strict=True):
            found[index] = Function(printable(symbols.names[place]) if place >= 0 else "", code.path)
    return found


def with_functions(profile: ProcessProfile) -> ProcessProfile:
    """Return the profile with a call path for each function that samples found outside of all regions.

    These call paths are roots, because samples do not contain callers. Their time is the sampled processor time; the
    time and the sampled metrics of the call path "outside of all regions" become 0. Returns the profile unchanged if it
    has no samples outside of regions.
    """
    addresses = profile.addresses
    if addresses is None or not addresses.outside.any():
        return profile
    counted: dict[Region, NDArray[np.uint64]] = {}
    for index, function in enumerate(functions_of(addresses)):
        if addresses.outside[index]:
            counted[function.region] = counted.get(function.region, np.uint64(0)) + addresses.values[index]
    first = max(profile.regions, default=0) + 1
    regions = dict(enumerate(counted, start=first))
    totals = np.stack(list(counted.values())).astype(np.int64)
    more = len(counted)
    outside = profile.region == 0
    location = int(profile.location[0]) if profile.location.size else 0
    values = {}
    for name, column in profile.values.items():
        below: NDArray[Any] = np.zeros(more, dtype=column.dtype)
        kept = column
        if name in addresses.metrics:
            below = totals[:, addresses.metrics.index(name)]
            kept = np.where(outside, 0, column)
        elif name == "time":
            below = totals[:, addresses.metrics.index(_CLOCK)] * 1e-9
            kept = np.where(outside, 0.0, column)
        values[name] = np.concatenate((kept, below))
    return replace(
        profile,
        regions={**profile.regions, **regions},
        parent=np.concatenate((profile.parent, np.full(more, -1, dtype=np.int64))),
        region=np.concatenate((profile.region, np.arange(first, first + more, dtype=np.int64))),
        location=np.concatenate((profile.location, np.full(more, location, dtype=np.int64))),
        values=values,
        pairs=np.concatenate((profile.pairs, np.zeros(more, dtype=np.uint64))),
    )


def flat_profile(profiles: Iterable[ProcessProfile]) -> list[dict[str, Any]]:
    """Return the samples of all processes by function, inside and outside of regions.

    At most `_MOST_FUNCTIONS` functions are returned, in descending order of samples. Each entry has "function",
    "library" and the metrics of the sampler.
    """
    totals: dict[Function, dict[str, int]] = {}
    for profile in profiles:
        if profile.addresses is None:
            continue
        for index, function in enumerate(functions_of(profile.addresses)):
            known = totals.setdefault(function, dict.fromkeys(profile.addresses.metrics, 0))
            for column, name in enumerate(profile.addresses.metrics):
                known[name] = known.get(name, 0) + int(profile.addresses.values[index, column].astype(np.int64))
    order = sorted(totals, key=lambda function: (-totals[function]["samples"], function.name, function.library))
    return [
        {"function": function.name, "library": function.library, **totals[function]}
        for function in order[:_MOST_FUNCTIONS]
    ]
