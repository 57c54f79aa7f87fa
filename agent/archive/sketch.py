# SPDX-License-Identifier: Apache-2.0
"""Quantiles of many distributions at once, from merged histograms (mpi_wrap/native/reduction/cells.c).

The bucket of a value is the leading bits of the double: bits >> (47 + level), which gives 32 buckets per power of two
at level 0. If a distribution uses more than `MOST_BUCKETS` buckets, its level increases by one and each pair of
neighbouring buckets is merged. The final level is the lowest one with space for all values, and does not depend on the
order of merging. Source: I. Epicoco et al., "UDDSketch: accurate tracking of quantiles in data streams", IEEE Access 8
(2020), section III, with leading bits instead of logarithms.
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
    """Histograms of several cells (distributions).

    level: int64 of shape (cells,). cell, bucket, count: int64 of shape (buckets in use,), by cell and bucket ascending.
    """

    level: IntArray
    cell: IntArray
    bucket: IntArray
    count: IntArray

    @property
    def cells(self) -> int:
        """Number of distributions."""
        return int(self.level.size)

    def quantile(self, q: float, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the q-quantile (0 <= q <= 1) of each cell, linearly interpolated in a bucket; NaN for empty cells.

        low, high: smallest and largest value of each cell; the result is clipped to them.
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
    """Return the smallest double of a bucket."""
    largest = np.int64(np.array(np.finfo(np.float64).max).view(np.int64))
    bits = np.where(bucket >= (largest >> shift) + 1, largest, bucket << shift)
    return bits.view(np.float64)
