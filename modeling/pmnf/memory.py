# SPDX-License-Identifier: Apache-2.0
"""Keep the memory of temporary arrays in the process."""

from __future__ import annotations

from functools import cache

import numpy as np

# Slightly less than 32 MiB, the largest block that changes the threshold (mallopt(3), M_MMAP_THRESHOLD).
KEPT_BYTES = 31 << 20


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed memory up to some size, instead of returning it after each temporary array.

    If the GNU C library frees a block that it has mapped, it takes blocks up to that size from its heap from then on,
    and only returns free memory at the end of the heap beyond twice that size. Otherwise a sixth of the time of
    modeling goes into pages that are returned and mapped again. The block is never written, so it takes no memory.
    Other C libraries are not affected.
    """
    np.empty(KEPT_BYTES, dtype=np.uint8)
