"""What a run counted, before it is written: the same from profile files and from a reduction over MPI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from quipu.modeling.experiment import CallTree, IntArray, Metric

from ..archive.run import RankStatistics, RunValues
from ..archive.sketch import Sketches
from .shard import OUTSIDE
from .statistics import RankSums, statistics_from


@dataclass(frozen=True, eq=False)
class Merged:
    """Call tree, rows (None: statistics only) and statistics of a run."""

    metrics: tuple[Metric, ...]
    tree: CallTree
    values: RunValues | None
    statistics: Mapping[str, RankStatistics]


def merged(metrics: Sequence[Metric], tree: CallTree, values: RunValues | None, sums: RankSums) -> Merged:
    """Return the run; ranks without a call path are in `sums` as 0.

    The root outside of all regions stays only if something was counted there: every thread spends some time in it, on
    its way to the first region. Regions are numbered in the order of the tree, those without call paths are left out.
    """
    metrics = tuple(metrics)
    statistics = statistics_from(sums, metrics)
    roots = [path for path in tree.roots if tree.region_of(path).name == OUTSIDE.name]
    counted = [name for name in statistics if name != "visits" and _is_effort(metrics, name)]
    idle = [path for path in roots if not any(statistics[name].max[path] > 0 for name in counted)]
    kept = np.setdiff1d(np.arange(len(tree)), idle)
    position = np.full(len(tree), -1, dtype=np.int64)
    position[kept] = np.arange(kept.size)
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
    return Merged(
        metrics,
        small,
        None if values is None else _rows(values, position),
        {name: _statistics(entry, kept, position) for name, entry in statistics.items()},
    )


def _is_effort(metrics: Sequence[Metric], name: str) -> bool:
    return next(metric.is_effort for metric in metrics if metric.name == name)


def _rows(values: RunValues, position: IntArray) -> RunValues:
    path = position[values.callpath]
    stay = path >= 0
    if stay.all():
        return replace(values, callpath=path)
    metrics = {name: column[stay] for name, column in values.metrics.items()}
    return RunValues(path[stay], values.rank[stay], values.thread[stay], metrics)


def _statistics(entry: RankStatistics, kept: IntArray, position: IntArray) -> RankStatistics:
    sketches = entry.sketches
    if sketches is not None:
        stay = position[sketches.cell] >= 0
        sketches = Sketches(
            sketches.level[kept], position[sketches.cell[stay]], sketches.bucket[stay], sketches.count[stay]
        )
    names = ("ranks", "sum", "min", "max", "mean", "std", "min_rank", "max_rank")
    return RankStatistics(**{name: getattr(entry, name)[kept] for name in names}, sketches=sketches)
