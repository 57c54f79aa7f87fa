# SPDX-License-Identifier: Apache-2.0
"""Inclusive values of the rank that has most, where ranks are combined by their largest value."""

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
    """Return per metric that adds up the largest inclusive value of a rank, in this shape, and notes.

    paths: where call paths of each run are in the experiment; places: its configuration and repetition. Of runs without
    the values of each rank it is the sum of the maxima of call paths, which is an upper bound; a note names them.
    """
    result = {name: np.full(shape, np.nan) for name, metric in metrics.items() if metric.over_locations == "sum"}
    bounded = []
    for archive, path, (where, count) in zip(archives, paths, places, strict=True):
        values = _values(archive)
        if values is None and archive.metadata.ranks > 1:
            bounded.append(archive.path.name)
        for name, column in result.items():
            own = "time" if name == THREAD_TIME and name not in archive.statistics else name  # of the only thread
            if own in archive.statistics:
                column[:, where, count] = 0.0
                column[path, where, count] = _largest(archive, values, own)
    if not bounded:
        return result, []
    of = bounded[0] if len(bounded) == 1 else f"{len(bounded)} runs, such as {bounded[0]},"
    return result, [f"inclusive values of {of} are sums of maxima over ranks, upper bounds: single ranks are not known"]


ONE_RANK = 1.05
"""How much larger the sum of maxima over ranks may be than the sum of one rank, for both to be of the same rank."""


def columns_of_one_rank(archives: Sequence[RunArchive], name: str) -> list[FloatArray]:
    """Return what one rank of each run has of a metric: the rank whose sum over all call paths is the largest.

    Shape of each: (call paths,). They are the maxima over ranks of each call path if these are of one rank in all runs,
    or nearly: then they have simpler laws, because no other rank is the largest one at another configuration. They are
    maxima, too, where the values of each rank are not known; their sum is an upper bound then.
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
    """Return the values of each rank, None where they were not kept or are damaged: statistics have to do."""
    if not archive.metadata.rank_columns:
        return None
    try:
        return read_archive(archive.path).values
    except FormatError:
        return None


def _largest(archive: RunArchive, values: RunValues | None, name: str) -> FloatArray:
    """Return the largest inclusive value of a rank of each call path, threads summed; shape (call paths,)."""
    if values is None:
        return archive.tree.inclusive(archive.statistics[name].max)
    found = archive.tree.inclusive(_dense(archive, values, name)).max(axis=1)
    unknown = np.isnan(archive.tree.inclusive(archive.statistics[name].max))
    return np.where(unknown, np.nan, found)


def _dense(archive: RunArchive, values: RunValues, name: str) -> FloatArray:
    """Return the values of each rank, threads summed; shape (call paths, ranks)."""
    ranks, column = np.unique(values.rank, return_inverse=True)
    dense = np.zeros((len(archive.tree), max(ranks.size, 1)))
    np.add.at(dense, (values.callpath, column), np.nan_to_num(values.metrics[name].astype(np.float64)))
    return dense
