# SPDX-License-Identifier: Apache-2.0
"""Processors of this machine: available to launches, and used by other programs."""

from __future__ import annotations

import os

from . import kernel

_SHORTEST = 0.2
"""Least duration of a launch (seconds) for which the load is known; the system counts processor time in 10 ms ticks.

benchmarks/quality_thresholds.py measures false alarms and misses with half and twice this number.
"""


def own_cores() -> int:
    """Return the number of ranks that Open MPI starts without oversubscription: the available physical cores."""
    allowed = len(os.sched_getaffinity(0))
    return min(kernel.physical_cores() or allowed, allowed)


def busy_seconds() -> float:
    """Return the processor time (seconds) used since the start of this machine, including other virtual machines."""
    busy, _ = kernel.processor_ticks()
    return busy / os.sysconf("SC_CLK_TCK")


def used_by_others(busy: float, own: float, seconds: float) -> float | None:
    """Return the mean number of processors that other programs used; None if the time was too short.

    busy: processor time of the machine in these seconds. own: processor time of the launched processes.
    """
    return None if seconds < _SHORTEST else max(0.0, busy - own) / seconds
