# SPDX-License-Identifier: Apache-2.0
"""Read the causes of waiting, which late ranks and threads recorded during the run (agent/runtime/delays.cpp)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from quipu.modeling.experiment import CallTree

from ..archive.run import DelayTable
from .ranks import RankedProcess


def delays_of(processes: Iterable[RankedProcess], tree: CallTree) -> DelayTable | None:
    """Return the waiting times that call paths of late ranks and threads caused; None if no profile has delays.

    tree: the call paths of the run. If a cause is not in this tree, it is recorded as unknown (-1). Operations that are
    not in this tree are left out.
    """
    place = {
        (parent, tree.regions[region].name): path
        for path, (parent, region) in enumerate(zip(tree.parent.tolist(), tree.region.tolist(), strict=True))
    }
    found: dict[tuple[int, int, int, int], float] = defaultdict(float)
    for process in processes:
        profile = process.profile

        def path_of(numbers: tuple[int, ...], process: RankedProcess = process) -> int:
            path = -1
            for number in numbers:
                region = process.profile.regions.get(number)
                path = -2 if region is None else place.get((path, region.name), -2)
            return path

        for record in profile.delays if profile.seconds_per_tick > 0.0 else ():
            operation, cause = path_of(record.operation), path_of(record.cause)
            if operation >= 0:
                found[operation, max(cause, -1), process.rank, record.location] += (
                    record.ticks * profile.seconds_per_tick
                )
    if not found:
        return None
    keys = np.array(sorted(found), dtype=np.int64)
    seconds = np.array([found[tuple(key)] for key in keys.tolist()])
    return DelayTable(keys[:, 0], keys[:, 1], keys[:, 2], keys[:, 3], seconds)
