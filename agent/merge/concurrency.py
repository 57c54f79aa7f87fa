# SPDX-License-Identifier: Apache-2.0
"""Estimate the number of concurrent threads of a rank."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from quipu.modeling.experiment import CallTree

from ..archive.run import RankStatistics
from .shard import THREAD_TIME, THREADS

_MATTERS = 0.05
"""A call path is only considered if it has more than this share of the wall time of the program."""


def threads_at_once(tree: CallTree, statistics: Mapping[str, RankStatistics]) -> int:
    """Return the mean number of concurrent threads of a rank, in the call path where this number is largest.

    The number of a call path is the inclusive time of all threads divided by the inclusive wall time, but not more than
    the number of threads that executed it. The result is rounded to a whole number. It is 1 if there are no times, or
    if no call path was executed by several threads. statistics: by name of the metric.
    """
    if not {"time", THREAD_TIME, THREADS} <= statistics.keys():
        return 1
    wall, of_threads = (tree.inclusive(np.nan_to_num(statistics[name].sum)) for name in ("time", THREAD_TIME))
    most = tree.inclusive(statistics[THREADS].max, "max")
    program = wall[tree.parent < 0].sum()
    where = (statistics[THREADS].max > 1) & (wall > _MATTERS * program)
    at_once = np.minimum(of_threads[where] / wall[where], most[where])
    return max(1, round(float(at_once.max(initial=1.0))))
