"""Quantiles of many distributions at once, from histograms that can be joined in any order.

A bucket is the leading bits of the double: value bits >> (47 + level), so 32 buckets per power of two at level 0. With
more than `MOST_BUCKETS` buckets in use, a distribution goes up a level: neighbouring pairs join. The level at the end
is the lowest one that has room for all values, whatever the order of joining: I. Epicoco et al., "UDDSketch: accurate
tracking of quantiles in data streams", IEEE Access 8 (2020), section III, with bits in place of logarithms.
mpi_wrap/native/reduce_cells.c keeps the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import FloatArray, IntArray

MOST_BUCKETS = 32
MOST_LEVELS = 16
_SHIFT = 47
_BITS = 16  # of a bucket number


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

    def moved(self, places: IntArray, cells: int) -> Sketches:
        """Return the same sketches with cell i at places[i] of `cells`; places are all different."""
        level = np.zeros(cells, dtype=np.int64)
        level[places] = self.level
        cell = places[self.cell]
        order = np.argsort(cell, kind="stable")
        return Sketches(level, cell[order], self.bucket[order], self.count[order])

    def part(self, first: int, last: int) -> Sketches:
        """Return the sketches of cells first <= i < last."""
        begin, end = np.searchsorted(self.cell, [first, last])
        rows = slice(int(begin), int(end))
        return Sketches(self.level[first:last], self.cell[rows] - first, self.bucket[rows], self.count[rows])

    def quantile(self, q: float, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the q-quantile (0 <= q <= 1) of every cell, linear within a bucket; NaN for empty cells.

        low, high: smallest and largest value of every cell, which the result never leaves.
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


def sketches_of(cell: IntArray, values: FloatArray, cells: int) -> Sketches:
    """Return the sketches of values that belong to these cells; values below 0 count as 0. No value is NaN."""
    bits = np.where(values > 0, values, 0.0).view(np.int64) >> _SHIFT
    keys = np.sort(cell << _BITS | bits)
    return _limited(np.zeros(cells, dtype=np.int64), keys, np.ones(keys.size, dtype=np.int64))


def joined(a: Sketches, b: Sketches) -> Sketches:
    """Return the sketches of the values of both; cell i is the same distribution in both."""
    level = np.maximum(a.level, b.level)
    keys = np.concatenate([_keys(a, level), _keys(b, level)])
    order = np.argsort(keys, kind="stable")
    return _limited(level, keys[order], np.concatenate([a.count, b.count])[order])


def with_zeros(sketches: Sketches, zeros: IntArray) -> Sketches:
    """Return the sketches with so many more zeros in every cell."""
    some = np.flatnonzero(zeros)
    none = np.zeros(sketches.cells, dtype=np.int64)
    return joined(sketches, Sketches(none, some, np.zeros(some.size, dtype=np.int64), zeros[some]))


def _keys(sketches: Sketches, level: IntArray) -> IntArray:
    more = (level - sketches.level)[sketches.cell]
    return sketches.cell << _BITS | sketches.bucket >> more


def _limited(level: IntArray, keys: IntArray, count: IntArray) -> Sketches:
    """Return the sketches with these sorted keys, equal ones added up, at the lowest levels that have room."""
    level = level.copy()
    while True:
        keys, count = _added(keys, count)
        cell = keys >> _BITS
        too_full = np.bincount(cell, minlength=level.size) > MOST_BUCKETS
        if not too_full.any():
            return Sketches(level, cell, keys & ((1 << _BITS) - 1), count)
        level += too_full
        keys = cell << _BITS | (keys & ((1 << _BITS) - 1)) >> too_full[cell]


def _added(keys: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    if not keys.size:
        return keys, count
    starts: NDArray[np.int64] = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return (keys, count) if starts.size == keys.size else (keys[starts], np.add.reduceat(count, starts))
