# SPDX-License-Identifier: Apache-2.0
"""Find the directions of the parameters in which no configuration changed.

A parameter with a single measured value may have any effect, and so may each of two parameters that always change
together. Directions are vectors in the space of the logarithms of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .factors import Floats

EXPONENT_DEVIATION = 1.0
"""Standard deviation of the exponent with which a count may grow in such a direction."""
_FLAT = 1e-6  # a direction is without change if its relative singular value is below this


def directions(points: Floats) -> tuple[Floats, Floats]:
    """Return orthonormal directions without change, shape (directions, parameters), and the mean of the logarithms.

    points: shape (configurations, parameters). `offsets` are added before the logarithms.
    """
    logs = np.log(points + offsets(points))
    centre = logs.mean(axis=0)
    _, sizes, rows = np.linalg.svd(logs - centre, full_matrices=True)
    used = int((sizes > _FLAT * max(1.0, float(sizes.max(initial=0.0)))).sum())
    return rows[used:], centre


def offsets(points: Floats) -> Floats:
    """Return the numbers (parameters,) that are added to the parameters before their logarithms.

    They are 0, except for a parameter that has the value 0 somewhere: its smallest positive value (1 without one).
    """
    least = np.where(points > 0, points, np.inf).min(axis=0, initial=np.inf)
    least = np.where(np.isinf(least), 1.0, least)
    return np.where((points > 0).all(axis=0), 0.0, least)


def distance(points: Floats, target: Sequence[float]) -> float:
    """Return the distance of a target from the points along the directions without change, in natural logarithms."""
    found, centre = directions(points)
    with np.errstate(divide="ignore"):
        away = np.log(np.asarray(target, dtype=np.float64) + offsets(points)) - centre
    return float(np.sqrt(((found @ np.where(np.isfinite(away), away, 0.0)) ** 2).sum()))
