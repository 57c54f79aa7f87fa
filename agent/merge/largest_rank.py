# SPDX-License-Identifier: Apache-2.0
"""Compute the values of the rank with the largest value, for experiments that combine ranks by their maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray, IntArray, Metric

from ..archive.read import read_archive
from ..archive.run import RunArchive, RunValues
from .shard import THREAD_TIME


def largest_inclusive(
    archives: Sequence[RunArchive],
    paths: Sequence[IntArray],
    places: Sequence[tuple[int, int]],
    metrics: Mapping[str, Metric],
    shape: tuple[int, int, int],
) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the largest inclusive value of a rank for each additive metric, and notes.

    - paths: for each run, the index of its call paths in the experiment.
    - places: for each run, the indices of its configuration and repetition.
    - shape: (call paths, configurations, repetitions), the shape of each result.

    If a run has no values of single ranks, its result is the sum over the call paths of their maxima, which is an upper
    bound. A note names these runs.
    """
    result = {name: np.full(shape, np.nan) for name, metric in metrics.items() if metric.over_locations == "sum"}
    bounded = []
    for archive, path, (where, count) in zip(archives, paths, places, strict=True):
        values = _values(archive)
        if values is None and archive.metadata.ranks > 1:
            bounded.append(archive.path.name)
        for name, column in result.items():
            # An archive without thread_time has one thread per rank: its time is equal.
            own = "time" if name == THREAD_TIME and name not in archive.statistics else name
            if own in archive.statistics:
                column[:, where, count] = 0.0
                column[path, where, count] = _largest(archive, values, own)
    if not bounded:
        return result, []
    of = bounded[0] if len(bounded) == 1 else f"{len(bounded)} runs, such as {bounded[0]},"
    return result, [f"inclusive values of {of} are upper bounds (sums of maxima over ranks): single ranks are unknown"]


ONE_RANK = 1.05
"""Limit for (sum over the call paths of the maxima over ranks) / (sum over the call paths for one rank).

Up to this limit, almost all maxima are values of this rank, and the maxima are used as its values.
"""


def columns_of_one_rank(archives: Sequence[RunArchive], name: str) -> list[FloatArray]:
    """Return, for each run, the values of a metric for the rank with the largest sum over all call paths.

    The shape for each run is (call paths,). If almost all maxima over the ranks belong to this rank in all runs
    (`ONE_RANK`), the result is the maxima. They have simpler models than the values of a rank whose number differs
    between configurations. For a run without values of single ranks, the result is the maxima, too; their sum is then
    an upper bound.
    """
    maxima, columns = [archive.statistics[name].max for archive in archives], []
    for archive, most in zip(archives, maxima, strict=True):
        values = _values(archive)
        if values is None or name not in values.metrics:
            columns.append(most)
            continue
        dense = _dense(archive, values, name)
        columns.append(dense[:, int(dense.sum(axis=0).argmax())])
    alike = all(most.sum() <= ONE_RANK * own.sum() for most, own in zip(maxima, columns, strict=True))
    return maxima if alike else columns


def _values(archive: RunArchive) -> RunValues | None:
    """Return the values of single ranks; None if they are missing or damaged, so that statistics must be used."""
    if not archive.metadata.rank_columns:
        return None
    try:
        return read_archive(archive.path).values
    except FormatError:
        return None


def _largest(archive: RunArchive, values: RunValues | None, name: str) -> FloatArray:
    """Return, for each call path, the largest inclusive value of a rank, summed over threads; shape (call paths,).

    values: None: return the inclusive sum of the maxima instead. The result is NaN where a value is unknown.
    """
    if values is None:
        return archive.tree.inclusive(archive.statistics[name].max)
    found = archive.tree.inclusive(_dense(archive, values, name)).max(axis=1)
    unknown = np.isnan(archive.tree.inclusive(archive.statistics[name].max))
    return np.where(unknown, np.nan, found)


def _dense(archive: RunArchive, values: RunValues, name: str) -> FloatArray:
    """Return the values of each rank, summed over threads; shape (call paths, ranks)."""
    ranks, column = np.unique(values.rank, return_inverse=True)
    dense = np.zeros((len(archive.tree), max(ranks.size, 1)))
    np.add.at(dense, (values.callpath, column), np.nan_to_num(values.metrics[name].astype(np.float64)))
    return dense
