"""Statistics over the ranks of a run: of some ranks first, then of more and more of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import FloatArray, IntArray, Metric

from ..archive.run import RankStatistics, RunValues
from ..archive.sketch import Sketches, joined, sketches_of, with_zeros

_CELLS = 1 << 21  # call paths × ranks held as a dense block at a time


@dataclass(frozen=True, eq=False)
class RankSums:
    """What is known of every metric of every call path over some ranks, of those that have the call path.

    ranks: how many ranks; first_rank: the lowest of them. present, absent_rank: shape (paths,); ranks that have the
    call path, and the lowest that does not (-1: none). The others: shape (metrics, paths); known: ranks whose value is
    known; m2: sum of squared deviations from the mean; min_rank, max_rank: the lowest ranks with these values.
    sketches: cell metric · paths + path.
    """

    ranks: int
    first_rank: int
    present: IntArray
    absent_rank: IntArray
    known: IntArray
    sum: FloatArray
    m2: FloatArray
    min: FloatArray
    max: FloatArray
    min_rank: IntArray
    max_rank: IntArray
    sketches: Sketches

    def moved(self, places: IntArray, paths: int) -> RankSums:
        """Return the same with call path i at places[i] of `paths`; the ranks do not have the other call paths."""
        metrics, old = self.known.shape

        def spread(array: NDArray[np.generic]) -> NDArray[np.generic]:
            wide = np.zeros((*array.shape[:-1], paths), dtype=array.dtype)
            wide[..., places] = array
            return wide

        absent_rank = np.full(paths, self.first_rank, dtype=np.int64)
        absent_rank[places] = self.absent_rank
        cell = np.arange(metrics)[:, None] * paths + places if old else np.zeros((metrics, 0), dtype=np.int64)
        arrays = {name: spread(getattr(self, name)) for name in ("present", *_ARRAYS)}
        sketches = self.sketches.moved(cell.reshape(-1).astype(np.int64), metrics * paths)
        return RankSums(self.ranks, self.first_rank, absent_rank=absent_rank, sketches=sketches, **arrays)  # type: ignore[arg-type]


_ARRAYS = ("known", "sum", "m2", "min", "max", "min_rank", "max_rank")


def sums_of(values: RunValues, metrics: Sequence[Metric], ranks: IntArray, paths: int) -> RankSums:
    """Return what is known over `ranks` (all measured ones, ascending) from rows sorted by call path.

    Several rows of a rank are its threads and combine by `over_locations`. NaN is a value that is not known.
    """
    width = max(1, ranks.size)
    step = max(1, _CELLS // width)
    column = np.searchsorted(ranks, values.rank)
    present = np.zeros(paths, dtype=np.int64)
    absent_rank = np.full(paths, -1, dtype=np.int64)
    result = {name: np.zeros((len(metrics), paths)) for name in _ARRAYS}
    sketches = []
    for number, metric in enumerate(metrics):
        for first in range(0, max(paths, 1), step):
            last = min(paths, first + step)
            begin, end = np.searchsorted(values.callpath, [first, last])
            rows = slice(int(begin), int(end))
            dense = np.zeros((last - first, width))
            there = np.zeros((last - first, width), dtype=bool)
            cells = (values.callpath[rows] - first, column[rows])
            combine = np.maximum if metric.over_locations == "max" else np.add
            combine.at(dense, cells, values.metrics[metric.name][rows].astype(np.float64))
            there[cells] = True
            if number == 0 and ranks.size:
                present[first:last] = there.sum(axis=1)
                lowest = ranks[there.argmin(axis=1)]
                absent_rank[first:last] = np.where(there.all(axis=1), -1, lowest)
            known = there & ~np.isnan(dense)
            for name, array in _block(dense, known, ranks).items():
                result[name][number, first:last] = array
            where, _ = np.nonzero(known)
            sketches.append(_shifted(sketches_of(where, dense[known], last - first), number * paths + first))
    integers = {name: result[name].astype(np.int64) for name in ("known", "min_rank", "max_rank")}
    return RankSums(
        ranks=int(ranks.size),
        first_rank=int(ranks[0]) if ranks.size else 0,
        present=present,
        absent_rank=absent_rank,
        **{**result, **integers},  # type: ignore[arg-type]
        sketches=_chained(sketches),
    )


def _block(dense: FloatArray, known: NDArray[np.bool_], ranks: IntArray) -> dict[str, NDArray[np.generic]]:
    count = known.sum(axis=1)
    filled = np.where(known, dense, 0.0)
    total = filled.sum(axis=1)
    mean = total / np.maximum(count, 1)
    low = np.where(known, dense, np.inf)
    high = np.where(known, dense, -np.inf)
    some = count > 0
    smallest, largest = np.where(some, low.min(axis=1), 0.0), np.where(some, high.max(axis=1), 0.0)
    deviation = np.where(known, dense - mean[:, None], 0.0)
    named = ranks if ranks.size else np.zeros(1, dtype=np.int64)
    return {
        "known": count,
        "sum": total,
        "m2": np.where(smallest == largest, 0.0, (deviation**2).sum(axis=1)),
        "min": smallest,
        "max": largest,
        "min_rank": named[low.argmin(axis=1)],
        "max_rank": named[high.argmax(axis=1)],
    }


def _shifted(sketches: Sketches, cells: int) -> Sketches:
    return Sketches(sketches.level, sketches.cell + cells, sketches.bucket, sketches.count)


def _chained(sketches: list[Sketches]) -> Sketches:
    names = ("level", "cell", "bucket", "count")
    empty = np.zeros(0, dtype=np.int64)
    return Sketches(*(np.concatenate([empty, *(getattr(entry, name) for entry in sketches)]) for name in names))


def joined_sums(a: RankSums, b: RankSums) -> RankSums:
    """Return what is known over the ranks of both, which are all different. Call path i is the same one in both.

    Sums of squares: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances" (1979), equation 2.1.
    """
    known = a.known + b.known
    mean_a, mean_b = a.sum / np.maximum(a.known, 1), b.sum / np.maximum(b.known, 1)
    both = (a.known > 0) & (b.known > 0)
    between = (mean_b - mean_a) ** 2 * (a.known * b.known / np.maximum(known, 1))
    low, min_rank = _extreme(a, b, a.min, b.min, a.min_rank, b.min_rank, -1)
    high, max_rank = _extreme(a, b, a.max, b.max, a.max_rank, b.max_rank, 1)
    absent = np.where(a.absent_rank < 0, b.absent_rank, a.absent_rank)
    lower = (b.absent_rank >= 0) & (b.absent_rank < absent)
    return RankSums(
        ranks=a.ranks + b.ranks,
        first_rank=min(a.first_rank, b.first_rank),
        present=a.present + b.present,
        absent_rank=np.where(lower, b.absent_rank, absent),
        known=known,
        sum=a.sum + b.sum,
        m2=np.where(low == high, 0.0, a.m2 + b.m2 + np.where(both, between, 0.0)),
        min=low,
        max=high,
        min_rank=min_rank,
        max_rank=max_rank,
        sketches=joined(a.sketches, b.sketches),
    )


def _extreme(
    a: RankSums, b: RankSums, of_a: FloatArray, of_b: FloatArray, rank_a: IntArray, rank_b: IntArray, sign: int
) -> tuple[FloatArray, IntArray]:
    better = (sign * of_b > sign * of_a) | ((of_b == of_a) & (rank_b < rank_a))
    take_b = (b.known > 0) & ((a.known == 0) | better)
    return np.where(take_b, of_b, of_a), np.where(take_b, rank_b, rank_a)


def with_absent(sums: RankSums) -> RankSums:
    """Return what is known if ranks without a call path count as 0 there."""
    absent = sums.ranks - sums.present
    zeros = np.broadcast_to(absent, sums.known.shape).astype(np.int64)
    nothing = np.zeros(sums.known.shape)
    rank = np.broadcast_to(sums.absent_rank, sums.known.shape).astype(np.int64)
    none = Sketches(np.zeros(sums.sketches.cells, dtype=np.int64), *(np.zeros(0, dtype=np.int64) for _ in range(3)))
    shape = sums.present.shape
    others = RankSums(
        ranks=0,
        first_rank=sums.first_rank,
        present=np.zeros(shape, dtype=np.int64),
        absent_rank=np.full(shape, -1, dtype=np.int64),
        known=zeros,
        sum=nothing,
        m2=nothing,
        min=nothing,
        max=nothing,
        min_rank=rank,
        max_rank=rank,
        sketches=with_zeros(none, zeros.reshape(-1)),
    )
    return joined_sums(sums, others)


def statistics_from(sums: RankSums, metrics: Sequence[Metric]) -> dict[str, RankStatistics]:
    """Return the statistics of every metric, of what is known."""
    paths = sums.present.size
    result = {}
    for number, metric in enumerate(metrics):
        known = sums.known[number]
        some = known > 0
        divisor = np.maximum(known, 1)
        of_known = {
            "sum": sums.sum[number],
            "min": sums.min[number],
            "max": sums.max[number],
            "mean": sums.sum[number] / divisor,
            "std": np.sqrt(sums.m2[number] / divisor),
        }
        result[metric.name] = RankStatistics(
            ranks=sums.present,
            **{name: np.where(some, array, np.nan) for name, array in of_known.items()},
            min_rank=np.where(some, sums.min_rank[number], -1),
            max_rank=np.where(some, sums.max_rank[number], -1),
            sketches=sums.sketches.part(number * paths, (number + 1) * paths),
        )
    return result
