"""Statistics of a metric over the ranks of a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric

from .archive import RankStatistics

_CELLS = 1 << 22  # call paths × ranks held as a dense block at a time


def over_ranks(
    metric: Metric,
    callpath: IntArray,
    rank: IntArray,
    values: NDArray[np.int64] | NDArray[np.float64],
    *,
    ranks: IntArray,
    paths: int,
) -> RankStatistics:
    """Return sum, min, max, mean, standard deviation (population) over `ranks` for each of `paths` call paths.

    callpath, rank, values: rows as in `RunValues`, sorted by call path; several rows of a rank are its threads and
    combine by `metric.over_locations`. ranks: all measured ranks, ascending; one without rows counts as 0.
    """
    width = max(1, ranks.size)
    step = max(1, _CELLS // width)
    column = np.searchsorted(ranks, rank)
    blocks = []
    for first in range(0, paths, step):
        last = min(paths, first + step)
        begin, end = np.searchsorted(callpath, [first, last])
        rows = slice(int(begin), int(end))
        dense = np.zeros((last - first, width))
        present = np.zeros((last - first, width), dtype=bool)
        cells = (callpath[rows] - first, column[rows])
        combine = np.maximum if metric.over_locations == "max" else np.add
        combine.at(dense, cells, values[rows].astype(np.float64))
        present[cells] = True
        blocks.append(_block(dense, present))
    blocks = blocks or [_block(np.zeros((0, width)), np.zeros((0, width), dtype=bool))]
    joined = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in _FIELDS}
    for name in ("min_rank", "max_rank"):
        index = joined[name]
        joined[name] = np.where(index >= 0, ranks[index], -1) if ranks.size else index
    return RankStatistics(**joined)


_FIELDS = ("ranks", "sum", "min", "max", "mean", "std", "min_rank", "max_rank")


def _block(dense: NDArray[np.float64], present: NDArray[np.bool_]) -> RankStatistics:
    """Return the statistics of dense values (call paths, ranks); min_rank and max_rank are column indices."""
    known = ~np.isnan(dense)
    count = known.sum(axis=1)
    some = count > 0
    divisor = np.maximum(count, 1)
    filled = np.where(known, dense, 0.0)
    total = filled.sum(axis=1)
    mean = total / divisor
    deviation = np.where(known, dense - mean[:, None], 0.0)
    low = np.where(known, dense, np.inf)
    high = np.where(known, dense, -np.inf)

    def of_known(result: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(some, result, np.nan)

    return RankStatistics(
        ranks=present.sum(axis=1),
        sum=of_known(total),
        min=of_known(low.min(axis=1)),
        max=of_known(high.max(axis=1)),
        mean=of_known(mean),
        std=of_known(np.sqrt((deviation**2).sum(axis=1) / divisor)),
        min_rank=np.where(some, low.argmin(axis=1), -1),
        max_rank=np.where(some, high.argmax(axis=1), -1),
    )
