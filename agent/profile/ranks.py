# SPDX-License-Identifier: Apache-2.0
"""Split the profile of a simulation (SMPI) into ranks: all ranks run in one process, and each is a location of its
profile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from .nodes import NO_THREADS
from .reader import ProcessProfile, read_profile
from .text import DelayRecord

WantsCounters = Callable[[Mapping[str, str]], bool]
"""Returns whether to keep the counters of a profile with these attributes."""


def split_ranks(profile: ProcessProfile) -> tuple[ProcessProfile, ...]:
    """Return one profile for each location in the profile of a simulation; otherwise only the profile itself.

    A profile is from a simulation if it has attributes of locations. A location with attributes is a rank. Its
    attributes have priority over the attributes of the process. A location without attributes (a rank that ended before
    MPI_Init) becomes a profile without a rank. `threads` of the result are empty: simulated time does not pass between
    the latest event of a rank and the end of the process, so that no time is missing.
    """
    if not profile.location_attributes:
        return (profile,)
    order = np.argsort(profile.location, kind="stable")  # parents stay before their children
    locations, starts = np.unique(profile.location[order], return_index=True)
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.arange(order.size)
    delays: dict[int, tuple[DelayRecord, ...]] = defaultdict(tuple)
    for record in profile.delays:
        delays[record.location] += (replace(record, location=0),)
    ranks = []
    for location, start, end in zip(locations.tolist(), starts, [*starts[1:], order.size], strict=True):
        of_one = order[start:end]
        parent = profile.parent[of_one]
        above = position[parent] - start
        inside = (parent >= 0) & (above >= 0) & (above < of_one.size)
        of_rank = np.full(order.size, -1, dtype=np.int64)
        of_rank[of_one] = np.arange(of_one.size)
        ranks.append(
            replace(
                profile,
                attributes={**profile.attributes, **profile.location_attributes.get(location, {})},
                location_attributes={},
                threads=NO_THREADS,
                parent=np.where(inside, above, -1),
                region=profile.region[of_one],
                location=profile.location[of_one],
                values={name: values[of_one] for name, values in profile.values.items()},
                pairs=profile.pairs[of_one],
                counters=profile.counters.of_nodes(of_rank) if profile.counters is not None else None,
                delays=delays[location],
                setup_seconds=profile.setup_seconds / locations.size,
            )
        )
    return tuple(ranks)


def without_nodes(rank: ProcessProfile) -> ProcessProfile:
    """Return the profile of a rank from `split_ranks` without its call paths.

    `location` keeps one number, the location of the rank, by which `read_rank` finds the call paths.
    """
    named = {number for record in rank.delays for number in (*record.operation, *record.cause)}
    regions = {number: rank.regions[number] for number in named if number in rank.regions}
    nothing, pairs = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return replace(
        rank, regions=regions, parent=nothing, region=nothing, location=rank.location[:1], values={}, pairs=pairs
    )


def read_rank(path: Path, location: int | None, wants_counters: WantsCounters, values: bool = True) -> ProcessProfile:
    """Read the profile of a process, or of one rank of a simulation. Raises FormatError for an invalid file.

    location: location of the rank; None: the whole process. wants_counters, values: as in `read_profile`.
    """
    if location is None:
        return read_profile(path, wants_counters=wants_counters, values=values)
    return _ranks_of(path, wants_counters, values)[location]


@lru_cache(1)
def _ranks_of(path: Path, wants_counters: WantsCounters, values: bool) -> dict[int, ProcessProfile]:
    whole = read_profile(path, wants_counters=wants_counters, values=values)
    return {int(rank.location[0]): rank for rank in split_ranks(whole)}
