"""Ranks that share a process: a simulator (SMPI) runs them all, and each is a location of one profile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .profile import ProcessProfile
from .profile_nodes import NO_THREADS


def split_ranks(profile: ProcessProfile) -> tuple[ProcessProfile, ...]:
    """Return one profile for each rank in the profile of a process: itself unless its locations are ranks.

    A location is a rank if the profile has attributes of it; they come before those of the process. Other locations
    of such a process (a rank that ended before MPI_Init) are profiles without a rank. What was active when the process
    ended is not told: simulated time does not go on by itself.
    """
    if not profile.location_attributes:
        return (profile,)
    order = np.argsort(profile.location, kind="stable")  # parents stay before their children
    locations, starts = np.unique(profile.location[order], return_index=True)
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.arange(order.size)
    ranks = []
    for location, start, end in zip(locations.tolist(), starts, [*starts[1:], order.size], strict=True):
        own = order[start:end]
        parent = profile.parent[own]
        above = position[parent] - start
        inside = (parent >= 0) & (above >= 0) & (above < own.size)
        ranks.append(
            replace(
                profile,
                attributes={**profile.attributes, **profile.location_attributes.get(location, {})},
                location_attributes={},
                threads=NO_THREADS,
                parent=np.where(inside, above, -1),
                region=profile.region[own],
                location=profile.location[own],
                values={name: values[own] for name, values in profile.values.items()},
            )
        )
    return tuple(ranks)
