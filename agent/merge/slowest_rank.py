# SPDX-License-Identifier: Apache-2.0
"""Compute the time of the slowest rank of each run: exactly from the values of each rank, otherwise bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray
from quipu.modeling.slowest_rank import DOMINATES, RankTimes, SlowestRank

from ..archive.read import read_metric
from ..archive.run import RankStatistics, RunArchive


def rank_times(archives: Sequence[RunArchive], configuration: Sequence[int], repetition: Sequence[int]) -> RankTimes:
    """Return the seconds of the program in the mean and the slowest rank of all runs, by configuration and repetition.

    configuration, repetition: indices for each run. The statistics over ranks give bounds for the slowest rank. If the
    upper bounds of a configuration exceed `DOMINATES` times the mean, the values of single ranks are read for all
    repetitions of this configuration. The repetitions of a configuration therefore have either bounds or exact times,
    except where values are missing or damaged.
    """
    times = np.full((3, max(configuration) + 1, max(repetition) + 1), np.nan)
    for archive, where, count in zip(archives, configuration, repetition, strict=True):
        times[:, where, count] = _statistics(archive)
    known = np.where(np.isnan(times[0]), 0.0, times)
    open_ones = known[2].sum(axis=1) > DOMINATES * known[0].sum(axis=1)
    for archive, where, count in zip(archives, configuration, repetition, strict=True):
        if open_ones[where]:
            times[:, where, count] = _exactly(archive, times[:, where, count])
    return RankTimes(*times)


def slowest_rank(archive: RunArchive) -> SlowestRank | None:
    """Return the slowest rank of a run if it takes more than `DOMINATES` times the mean over ranks; otherwise None."""
    point = np.array([list(archive.metadata.parameters.values())], dtype=np.float64)
    return rank_times([archive], [0], [0]).dominating(point)[0]


def _statistics(archive: RunArchive) -> tuple[float, float, float]:
    """Return, from the statistics, the mean over ranks, and lower and upper bound of the slowest rank (seconds)."""
    if "time" not in archive.statistics:
        return np.nan, np.nan, np.nan
    return _bounds(archive.statistics["time"], ~archive.tree.start_and_end)


def _exactly(archive: RunArchive, times: Sequence[float] | FloatArray) -> tuple[float, float, float]:
    """Return `times` (mean, lower and upper bound in seconds) with the exact time of the slowest rank as both bounds.

    Returns `times` unchanged if the archive has no values of single ranks, or if these are damaged.
    """
    mean, low, high = map(float, times)
    if not archive.metadata.rank_columns or not low < high:
        return mean, low, high
    try:
        slowest = _slowest(archive, ~archive.tree.start_and_end)
    except FormatError:
        return mean, low, high
    return mean, slowest, slowest


def _bounds(time: RankStatistics, program: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the mean over ranks, and the lower and the upper bound of the slowest rank (seconds).

    The upper bound is the sum of the maxima of all call paths. A rank takes at least the sum of the maxima of the call
    paths in which it is the slowest, and of the minima of all other call paths; the lower bound is the largest of these
    sums over the ranks, and at least the mean. program: which call paths belong to the program.
    """
    mean, least, most = (np.nan_to_num(one[program]) for one in (time.mean, time.min, time.max))
    rank = time.max_rank[program]
    beyond = np.bincount(rank[rank >= 0], (most - least)[rank >= 0], minlength=1)
    low, high, average = float(least.sum() + beyond.max()), float(most.sum()), float(mean.sum())
    return average, min(max(low, average), high), high


def _slowest(archive: RunArchive, program: NDArray[np.bool_]) -> float:
    """Return the seconds of the program in its slowest rank. Raises FormatError if the values are damaged."""
    values = archive.values or read_metric(archive, "time")
    seconds: FloatArray = np.where(program[values.callpath], np.nan_to_num(values.metrics["time"]), 0.0)
    return float(np.bincount(values.rank, seconds, minlength=1).max())
