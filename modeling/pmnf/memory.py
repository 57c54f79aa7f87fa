# SPDX-License-Identifier: Apache-2.0
"""Memory of temporary arrays stays with the process."""

from __future__ import annotations

from functools import cache

import numpy as np

# A little less than the largest block that changes the threshold, 32 MiB (mallopt(3), M_MMAP_THRESHOLD).
KEPT_BYTES = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Let the process keep what it frees up to some size, in place of giving it back after each temporary array.

    When the GNU C library frees a block that it has from the system it takes blocks up to that size from its own heap
    from then on, and gives back free memory at the end of the heap only beyond twice that size. Without it a sixth of
    the time of modeling goes into pages that are given back and taken again. The block is never written to, so that it
    takes no memory; other C libraries do what they always do.
    """
    np.empty(KEPT_BYTES, dtype=np.uint8)
