# SPDX-License-Identifier: Apache-2.0
"""The processors of this machine: how many a launch may use, and how many other programs use."""

from __future__ import annotations

import os

from . import kernel

_SHORTEST = 0.2
"""Smallest duration of a launch (seconds) for which Quipu computes the load by other programs.

The kernel counts processor time in ticks of 10 ms, which is too coarse for shorter launches.
benchmarks/quality_thresholds.py measures false alarms and misses with half and twice this number.
"""


def own_cores() -> int:
    """Return the number of physical cores, at most the number of logical CPUs that this process may use.

    Open MPI starts this number of ranks without oversubscription.
    """
    allowed = len(os.sched_getaffinity(0))
    return min(kernel.physical_cores() or allowed, allowed)


def busy_seconds() -> float:
    """Return the processor time (seconds) that all programs have used since the start of this machine.

    This includes the time that other virtual machines took from this one (steal).
    """
    busy, _ = kernel.processor_ticks()
    return busy / os.sysconf("SC_CLK_TCK")


def used_by_others(busy: float, own: float, seconds: float) -> float | None:
    """Return the mean number of processors that other programs used during a launch; None if it was too short.

    busy: processor time of the machine during the launch. own: processor time of the launched processes. seconds:
    elapsed time of the launch. All are in seconds.
    """
    return None if seconds < _SHORTEST else max(0.0, busy - own) / seconds
