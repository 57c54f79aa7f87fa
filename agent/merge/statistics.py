# SPDX-License-Identifier: Apache-2.0
"""Compute statistics over the ranks of a run: first for parts of the ranks, which are then combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import IntArray, Metric

from ..archive.run import RankStatistics, RunValues
from ..archive.sketch import MOST_BUCKETS, Sketches
from .native import CELL, Cells, add_rows, merge_cells


@dataclass(frozen=True, eq=False)
class RankCells:
    """Statistics of every metric of every call path over some ranks.

    ranks: number of ranks. first_rank: the lowest of them. cells: shape (call paths, metrics); a rank without the call
    path has the value 0.
    """

    ranks: int
    first_rank: int
    cells: Cells

    def moved(self, places: IntArray, paths: int) -> RankCells:
        """Return the statistics for a tree of `paths` call paths, in which call path i has the index places[i].

        The ranks have none of the other call paths of this tree.
        """
        absent = np.zeros((), dtype=CELL)
        absent["known"] = absent["count"][0] = self.ranks
        absent["used"] = self.ranks > 0
        absent["min_rank"] = absent["max_rank"] = self.first_rank
        cells = np.full((paths, self.cells.shape[1]), absent)
        cells[places] = self.cells
        return RankCells(self.ranks, self.first_rank, cells)

    def joined(self, other: RankCells) -> RankCells:
        """Return the statistics over the ranks of both objects.

        They must have the same call paths and no rank in common. This object must not be used afterwards, because its
        cells are changed.
        """
        merge_cells(self.cells, other.cells)
        first_rank = min((entry.first_rank for entry in (self, other) if entry.ranks), default=0)
        return RankCells(self.ranks + other.ranks, first_rank, self.cells)


def cells_of(values: RunValues, metrics: Sequence[Metric], ranks: IntArray, paths: int) -> RankCells:
    """Return the statistics over ranks from rows that are sorted by call path and rank.

    ranks: all measured ranks, ascending. paths: number of call paths. Several rows of a rank are its threads, which are
    combined by `over_locations` of the metric. NaN is an unknown value.
    """
    cells = np.zeros((paths, len(metrics)), dtype=CELL)
    for number, metric in enumerate(metrics):
        column = values.metrics[metric.name].astype(np.float64)
        add_rows(cells, number, ranks, values.callpath, values.rank, column, metric.over_locations == "max")
    return RankCells(int(ranks.size), int(ranks[0]) if ranks.size else 0, cells)


def statistics_of(cells: Cells, metrics: Sequence[Metric]) -> dict[str, RankStatistics]:
    """Return the statistics of every metric over the known values, from cells of shape (call paths, metrics)."""
    result = {}
    for number, metric in enumerate(metrics):
        column = cells[:, number]
        known = column["known"].astype(np.int64)
        divisor = np.maximum(known, 1)
        of_known = {
            **{name: column[name] for name in ("sum", "min", "max")},
            "mean": column["sum"] / divisor,
            "std": np.sqrt(column["m2"] / divisor),
        }
        result[metric.name] = RankStatistics(
            ranks=column["present"].astype(np.int64),
            **{name: np.where(known > 0, array, np.nan) for name, array in of_known.items()},
            **{name: np.where(known > 0, column[name].astype(np.int64), -1) for name in ("min_rank", "max_rank")},
            sketches=_sketches(column),
        )
    return result


def _sketches(column: Cells) -> Sketches:
    """Return the sketches of the cells of one metric."""
    in_use = np.arange(MOST_BUCKETS) < column["used"][:, None]
    cell, _ = np.nonzero(in_use)
    bucket, count = (column[name][in_use].astype(np.int64) for name in ("bucket", "count"))
    return Sketches(column["level"].astype(np.int64), cell, bucket, count)
