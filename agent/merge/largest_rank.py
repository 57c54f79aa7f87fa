# SPDX-License-Identifier: Apache-2.0
"""Inclusive values of the rank with the largest value, for experiments that combine ranks by their maximum."""

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
    """Return the largest inclusive value of a rank, for each additive metric and in the given shape, and notes.

    paths: for each run, the call path of the experiment of each of its call paths. places: configuration and repetition
    of each run. For runs without values of each rank, the result is the sum of the maxima of the call paths, which is
    an upper bound; a note names these runs.
    """
    result = {name: np.full(shape, np.nan) for name, metric in metrics.items() if metric.over_locations == "sum"}
    bounded = []
    for archive, path, (where, count) in zip(archives, paths, places, strict=True):
        values = _values(archive)
        if values is None and archive.metadata.ranks > 1:
            bounded.append(archive.path.name)
        for name, column in result.items():
            own = "time" if name == THREAD_TIME and name not in archive.statistics else name  # equal for one thread
            if own in archive.statistics:
                column[:, where, count] = 0.0
                column[path, where, count] = _largest(archive, values, own)
    if not bounded:
        return result, []
    of = bounded[0] if len(bounded) == 1 else f"{len(bounded)} runs, such as {bounded[0]},"
    return result, [f"inclusive values of {of} are upper bounds (sums of maxima over ranks): single ranks are unknown"]


ONE_RANK = 1.05
"""If the sum of maxima is at most this multiple of the sum of one rank, all maxima count as maxima of this rank."""


def columns_of_one_rank(archives: Sequence[RunArchive], name: str) -> list[FloatArray]:
    """Return the values of a metric for one rank of each run: the rank with the largest sum over all call paths.

    The shape for each run is (call paths,). If almost all maxima over the ranks belong to this rank in all runs, the
    result is the maxima: they have simpler models, because the rank of the maximum does not change between
    configurations. If the values of each rank are unknown, the result is the maxima, too; then their sum is an upper
    bound.
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
    """Return the values of each rank; None if they are missing or damaged, so that statistics must be used."""
    if not archive.metadata.rank_columns:
        return None
    try:
        return read_archive(archive.path).values
    except FormatError:
        return None


def _largest(archive: RunArchive, values: RunValues | None, name: str) -> FloatArray:
    """Return the largest inclusive value of a rank for each call path, summed over threads; shape (call paths,)."""
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
