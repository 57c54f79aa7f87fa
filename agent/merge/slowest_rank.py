"""How long the slowest rank of each run takes: exactly where the archive has the values of each rank, else bounds."""

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
    """Return the seconds of the program in the ranks of runs, each at its place of configurations and repetitions."""
    times = np.full((3, max(configuration) + 1, max(repetition) + 1), np.nan)
    for archive, where, count in zip(archives, configuration, repetition, strict=True):
        times[:, where, count] = program_times(archive)
    return RankTimes(*times)


def slowest_rank(archive: RunArchive) -> SlowestRank | None:
    """Return the slowest rank of a run if it takes much longer than the mean over ranks, else None."""
    point = np.array([list(archive.metadata.parameters.values())], dtype=np.float64)
    return rank_times([archive], [0], [0]).dominating(point)[0]


def program_times(archive: RunArchive) -> tuple[float, float, float]:
    """Return the mean over ranks of the time of the program, and what its slowest rank takes at least and at most.

    NaN without time. Values of single ranks are read only where the statistics leave open whether a rank dominates;
    where those are damaged, the statistics have to do.
    """
    if "time" not in archive.statistics:
        return np.nan, np.nan, np.nan
    program = ~archive.tree.start_and_end
    mean, low, high = _bounds(archive.statistics["time"], program)
    if not archive.metadata.rank_columns or low == high or high <= DOMINATES * mean:
        return mean, low, high
    try:
        slowest = _slowest(archive, program)
    except FormatError:
        return mean, low, high
    return mean, slowest, slowest


def _bounds(time: RankStatistics, program: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return the mean over ranks, and the least and the most that the slowest rank can take.

    It takes no more than the maxima of all call paths together. Each rank takes at least its own maxima and the minima
    of the other call paths.
    """
    mean, least, most = (np.nan_to_num(one[program]) for one in (time.mean, time.min, time.max))
    rank = time.max_rank[program]
    beyond = np.bincount(rank[rank >= 0], (most - least)[rank >= 0], minlength=1)
    low, high, average = float(least.sum() + beyond.max()), float(most.sum()), float(mean.sum())
    return average, min(max(low, average), high), high


def _slowest(archive: RunArchive, program: NDArray[np.bool_]) -> float:
    """Return the seconds of the program in its slowest rank, threads summed. Raises FormatError."""
    values = archive.values or read_metric(archive, "time")
    seconds: FloatArray = np.where(program[values.callpath], np.nan_to_num(values.metrics["time"]), 0.0)
    return float(np.bincount(values.rank, seconds, minlength=1).max())
