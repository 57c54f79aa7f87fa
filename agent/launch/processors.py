"""Processors that launches of this process may use."""

from __future__ import annotations

import os

from . import kernel


def own_cores() -> int:
    """Return how many ranks Open MPI starts here without the option to oversubscribe: physical cores that are ours."""
    allowed = len(os.sched_getaffinity(0))
    return min(kernel.physical_cores() or allowed, allowed)
