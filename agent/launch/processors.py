# SPDX-License-Identifier: Apache-2.0
"""Processors that launches of this process may use."""

from __future__ import annotations

import os

from . import kernel

_SHORTEST = 0.2
"""Seconds of a launch from which on the load is known: the system counts processor time in ticks of 10 ms.

benchmarks/quality_thresholds.py measures false alarms and misses with half and twice this number.
"""


def own_cores() -> int:
    """Return how many ranks Open MPI starts here without the option to oversubscribe: physical cores that are ours."""
    allowed = len(os.sched_getaffinity(0))
    return min(kernel.physical_cores() or allowed, allowed)


def busy_seconds() -> float:
    """Return the processor time that this machine spent since its start, that of other virtual machines included."""
    busy, _ = kernel.processor_ticks()
    return busy / os.sysconf("SC_CLK_TCK")


def used_by_others(busy: float, own: float, seconds: float) -> float | None:
    """Return how many processors others used on average; None if the time was too short to know.

    busy: processor time of the machine in these seconds; own: that of the launched processes.
    """
    return None if seconds < _SHORTEST else max(0.0, busy - own) / seconds
