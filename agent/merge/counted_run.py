# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run before they are written.

Both ways to collect them use this module: from profile files, and from a reduction over MPI. The results are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, IntArray, Metric

from ..archive.run import RankStatistics, RunValues
from .shard import OUTSIDE, THREAD_TIME, THREADS
from .statistics import RankCells, statistics_of


@dataclass(frozen=True, eq=False)
class CountedRun:
    """The measurements of a run.

    values: one row per call path, rank and thread; None if only statistics are known. statistics: by name of metric.
    """

    metrics: tuple[Metric, ...]
    tree: CallTree
    values: RunValues | None
    statistics: Mapping[str, RankStatistics]


def counted_run(
    metrics: Sequence[Metric], tree: CallTree, values: RunValues | None, statistics: RankCells
) -> CountedRun:
    """Return the run without empty call paths, unused regions and redundant metrics.

    - A call path is kept if a value of it, or of a call path below it, is not 0. Inlined functions that were never
      called are therefore removed.
    - The root for code outside of all regions is kept only if effort other than visits was counted there, because every
      thread spends a short time in it.
    - Regions without call paths are removed; the other regions are numbered in the order of the tree.
    - If no call path was executed by several threads, the metrics thread_time and threads are removed, because time and
      visits contain the same information.
    """
    metrics, values, statistics = _without_threads(metrics, values, statistics)
    counted = [number for number, metric in enumerate(metrics) if metric.is_effort and metric.name != "visits"]
    kept = (statistics.cells["max"][:, counted] > 0).any(axis=1)
    is_outside = np.array([region.name == OUTSIDE.name for region in tree.regions], dtype=bool)
    kept |= ((tree.parent >= 0) | ~is_outside[tree.region]) & _happened(tree, statistics)
    position = np.where(kept, np.cumsum(kept) - 1, -1)
    used, first = np.unique(tree.region[kept], return_index=True)
    order = used[np.argsort(first, kind="stable")]
    number = np.zeros(len(tree.regions), dtype=np.int64)
    number[order] = np.arange(order.size)
    parent = tree.parent[kept]
    small = CallTree(
        tuple(tree.regions[region] for region in order.tolist()),
        number[tree.region[kept]],
        np.where(parent >= 0, position[parent], -1),
    )
    return CountedRun(
        tuple(metrics),
        small,
        None if values is None else _rows(values, position),
        statistics_of(statistics.cells[kept], metrics),
    )


def _without_threads(
    metrics: Sequence[Metric], values: RunValues | None, statistics: RankCells
) -> tuple[Sequence[Metric], RunValues | None, RankCells]:
    """Return the run without thread_time and threads if each call path was executed by one thread of a rank only."""
    names = [metric.name for metric in metrics]
    if THREADS not in names or (statistics.cells["max"][:, names.index(THREADS)] > 1).any():
        return metrics, values, statistics
    kept = [number for number, name in enumerate(names) if name not in (THREADS, THREAD_TIME)]
    statistics = replace(statistics, cells=np.ascontiguousarray(statistics.cells[:, kept]))
    if values is not None:
        columns = {name: column for name, column in values.metrics.items() if name not in (THREADS, THREAD_TIME)}
        values = replace(values, metrics=columns)
    return [metrics[number] for number in kept], values, statistics


def _happened(tree: CallTree, statistics: RankCells) -> NDArray[np.bool_]:
    """Return which call paths have a value other than 0, or a descendant with such a value; shape (call paths,)."""
    happened: NDArray[np.bool_] = ~(statistics.cells["max"] == 0).all(axis=1)  # NaN (unknown) counts as another value
    for path in np.flatnonzero(happened).tolist():
        above = int(tree.parent[path])
        while above >= 0 and not happened[above]:
            happened[above] = True
            above = int(tree.parent[above])
    return happened


def _rows(values: RunValues, position: IntArray) -> RunValues:
    path = position[values.callpath]
    stay = path >= 0
    if stay.all():
        return replace(values, callpath=path)
    metrics = {name: column[stay] for name, column in values.metrics.items()}
    return RunValues(path[stay], values.rank[stay], values.thread[stay], metrics)
