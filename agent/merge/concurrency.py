# SPDX-License-Identifier: Apache-2.0
"""The number of concurrent threads of a rank."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from quipu.modeling.experiment import CallTree

from ..archive.run import RankStatistics
from .shard import THREAD_TIME, THREADS

_MATTERS = 0.05
"""Least share of the time of a rank that a call path needs to be considered."""


def threads_at_once(tree: CallTree, statistics: Mapping[str, RankStatistics]) -> int:
    """Return the mean number of concurrent threads of a rank, in the call path where this number is largest.

    The number is the time of all threads divided by the wall time. Call paths with a small share of the time are
    ignored. The result is 1 without times, and if no call path has several threads.
    """
    if not {"time", THREAD_TIME, THREADS} <= statistics.keys():
        return 1
    wall, of_threads = (tree.inclusive(np.nan_to_num(statistics[name].sum)) for name in ("time", THREAD_TIME))
    most = tree.inclusive(statistics[THREADS].max, "max")
    program = wall[tree.parent < 0].sum()
    where = (statistics[THREADS].max > 1) & (wall > _MATTERS * program)
    at_once = np.minimum(of_threads[where] / wall[where], most[where])
    return max(1, round(float(at_once.max(initial=1.0))))
