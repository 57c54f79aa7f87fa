# SPDX-License-Identifier: Apache-2.0
"""How many threads of a rank run at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from quipu.modeling.experiment import CallTree

from ..archive.run import RankStatistics
from .shard import THREAD_TIME, THREADS

_MATTERS = 0.05
"""The part of the time of a rank from which on the threads of a call path count."""


def threads_at_once(tree: CallTree, statistics: Mapping[str, RankStatistics]) -> int:
    """Return how many threads of a rank ran at once, on average over the call path with most of them.

    That is the time of all threads divided by the wall time, of call paths that several threads executed. Call paths in
    which the rank is for a short time only do not count. 1 if times were not kept, or no call path has several threads.
    """
    if not {"time", THREAD_TIME, THREADS} <= statistics.keys():
        return 1
    wall, of_threads = (tree.inclusive(np.nan_to_num(statistics[name].sum)) for name in ("time", THREAD_TIME))
    most = tree.inclusive(statistics[THREADS].max, "max")
    program = wall[tree.parent < 0].sum()
    where = (statistics[THREADS].max > 1) & (wall > _MATTERS * program)
    at_once = np.minimum(of_threads[where] / wall[where], most[where])
    return max(1, round(float(at_once.max(initial=1.0))))
