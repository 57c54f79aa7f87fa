# SPDX-License-Identifier: Apache-2.0
"""Compute quantiles of many distributions at once, from histograms that ranks merged (reduction/cells.c in mpi_wrap).

The number of the bucket of a value consists of the leading bits of the double: bits >> (47 + level). Level 0 has 32
buckets per power of two. If a distribution uses more than `MOST_BUCKETS` buckets, its level increases by one, which
merges each pair of neighbouring buckets. The final level is the lowest level at which `MOST_BUCKETS` buckets suffice.
It does not depend on the order of merging. Source: I. Epicoco et al., "UDDSketch: accurate tracking of quantiles in
data streams", IEEE Access 8 (2020), section III, with leading bits instead of logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import FloatArray, IntArray

MOST_BUCKETS = 32
MOST_LEVELS = 16
_SHIFT = 47


@dataclass(frozen=True, eq=False)
class Sketches:
    """Histograms of several cells. A cell is one distribution: the values of one call path on all ranks.

    - level: int64 of shape (cells,).
    - cell, bucket, count: int64 of shape (buckets in use,), sorted by cell and bucket. count: number of values.
    """

    level: IntArray
    cell: IntArray
    bucket: IntArray
    count: IntArray

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return int(self.level.size)

    def quantile(self, q: float, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the q-quantile (0 <= q <= 1) of each cell, shape (cells,), linearly interpolated within a bucket.

        low, high: smallest and largest value of each cell, shape (cells,); the result is clipped to this range. The
        result is NaN for cells without values.
        """
        starts = np.searchsorted(self.cell, np.arange(self.cells + 1))
        cumulative = np.concatenate(([0], np.cumsum(self.count)))
        before = cumulative[starts[:-1]]
        number = cumulative[starts[1:]] - before
        wanted = q * np.maximum(number - 1, 0)
        at = np.searchsorted(cumulative, before + wanted, side="right") - 1
        at = np.clip(at, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
        at = np.minimum(at, max(self.cell.size - 1, 0))
        if not self.cell.size:
            return np.full(self.cells, np.nan)
        inside = (before + wanted - cumulative[at] + 0.5) / self.count[at]
        shift = _SHIFT + self.level
        bottom, top = _value(self.bucket[at], shift), _value(self.bucket[at] + 1, shift)
        value = np.clip(bottom + (top - bottom) * np.clip(inside, 0, 1), low, high)
        value = np.where(self.bucket[at] == 0, np.clip(0.0, low, high), value)
        return np.where(number > 0, value, np.nan)


def _value(bucket: IntArray, shift: IntArray) -> FloatArray:
    """Return the smallest double of each bucket, at most the largest finite double. shift: 47 + level of the cell."""
    largest = np.int64(np.array(np.finfo(np.float64).max).view(np.int64))
    bits = np.where(bucket >= (largest >> shift) + 1, largest, bucket << shift)
    return bits.view(np.float64)
