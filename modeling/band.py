# SPDX-License-Identifier: Apache-2.0
"""Check whether the measured times of the program are inside the 90 % intervals of its models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .evaluation import evaluate
from .experiment import Experiment, median_over_repetitions
from .models import Analysis

INTERVAL = 0.9
"""Expected share of measured points that are inside of their intervals."""
_CHANCE = 0.05
"""Points outside are reported if the probability of at least so many by chance alone is at most this number."""
_FAR = 1.5
"""Points outside are always reported if a time differs by this factor from the nearest end of its interval."""
_MOST_POINTS = 200


@dataclass(frozen=True)
class Outside:
    """The measured points whose time is outside of the interval of the models.

    points: number of points outside. of: number of points that were compared. The other fields describe the point with
    the largest deviation: its parameter values, its measured time, and the ends of its interval (seconds).
    """

    points: int
    of: int
    point: tuple[float, ...]
    measured: float
    lower: float
    upper: float


def outside_of_band(analysis: Analysis, experiment: Experiment) -> Outside | None:
    """Return the points outside of their intervals; None if chance explains them, or there are no models of time.

    The measured time of a point is the median of its repetitions. Only points with a processor for each rank are
    compared.
    """
    if "time" not in analysis.exclusive or "time" not in experiment.values or analysis.over_ranks == "max":
        return None
    times = median_over_repetitions(experiment.program("time"))
    known = np.flatnonzero(np.isfinite(times) & (times > 0) & experiment.dedicated)[:_MOST_POINTS]
    found: list[tuple[float, Outside]] = []
    for place in known.tolist():
        point = tuple(experiment.points[place].tolist())
        total = evaluate(analysis, dict(zip(analysis.parameters, point, strict=True))).total
        measured = float(times[place])
        off = max(total.lower / measured, measured / total.upper if total.upper > 0 else np.inf)
        if off > 1.0:
            found.append((off, Outside(0, 0, point, measured, total.lower, total.upper)))
    if not found:
        return None
    far, worst = max(found, key=lambda entry: entry[0])
    if far < _FAR and _chance_of(len(found), known.size) > _CHANCE:
        return None
    return Outside(len(found), int(known.size), worst.point, worst.measured, worst.lower, worst.upper)


def _chance_of(outside: int, of: int) -> float:
    """Return the probability that at least `outside` of `of` points are outside of their intervals by chance alone."""
    from scipy.stats import binom

    return float(binom.sf(outside - 1, of, 1.0 - INTERVAL))
