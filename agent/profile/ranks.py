# SPDX-License-Identifier: Apache-2.0
"""Ranks that share a process: a simulator (SMPI) runs all ranks, and each rank is a location of one profile."""

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


def split_ranks(profile: ProcessProfile) -> tuple[ProcessProfile, ...]:
    """Return one profile for each rank in the profile of a process, or the profile itself without such ranks.

    A location is a rank if the profile contains attributes for it, which have priority over attributes of the process.
    Other locations (a rank that ended before MPI_Init) become profiles without a rank. Active call paths at the end of
    the process lose no time, because simulated time does not pass there.
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
    """Return the profile of a rank from `split_ranks` without its call paths; `location` identifies them."""
    named = {number for record in rank.delays for number in (*record.operation, *record.cause)}
    regions = {number: rank.regions[number] for number in named if number in rank.regions}
    nothing, pairs = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    return replace(
        rank, regions=regions, parent=nothing, region=nothing, location=rank.location[:1], values={}, pairs=pairs
    )


def read_rank(path: Path, location: int | None, wants_counters: WantsCounters, values: bool = True) -> ProcessProfile:
    """Read the profile of a process, or of one of its ranks. Raises FormatError.

    wants_counters, values: as in `read_profile`.
    """
    if location is None:
        return read_profile(path, wants_counters=wants_counters, values=values)
    return _ranks_of(path, wants_counters, values)[location]


@lru_cache(1)
def _ranks_of(path: Path, wants_counters: WantsCounters, values: bool) -> dict[int, ProcessProfile]:
    whole = read_profile(path, wants_counters=wants_counters, values=values)
    return {int(rank.location[0]): rank for rank in split_ranks(whole)}
