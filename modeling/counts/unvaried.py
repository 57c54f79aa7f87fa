# SPDX-License-Identifier: Apache-2.0
"""Find the directions of the parameters in which no configuration changed.

A direction is a vector in the space of the logarithms of the parameters. If a parameter has only one measured value,
its effect is not determined. If two parameters always change together, their separate effects are not determined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .factors import Floats

EXPONENT_DEVIATION = 1.0
"""Standard deviation of the unknown exponent with which a count grows in a direction without change."""
_FLAT = 1e-6  # a direction is without change if its relative singular value is below this


def directions(points: Floats) -> tuple[Floats, Floats]:
    """Return orthonormal directions without change, shape (directions, parameters), and the mean of the logarithms.

    points: shape (configurations, parameters). The logarithms are those of points + offsets(points).
    """
    logs = np.log(points + offsets(points))
    centre = logs.mean(axis=0)
    _, sizes, rows = np.linalg.svd(logs - centre, full_matrices=True)
    used = int((sizes > _FLAT * max(1.0, float(sizes.max(initial=0.0)))).sum())
    return rows[used:], centre


def offsets(points: Floats) -> Floats:
    """Return the numbers (parameters,) that are added to the parameters before their logarithms.

    The number is 0 for a parameter without the value 0. Otherwise, it is the smallest positive value of the parameter
    (1 if there is none).
    """
    least = np.where(points > 0, points, np.inf).min(axis=0, initial=np.inf)
    least = np.where(np.isinf(least), 1.0, least)
    return np.where((points > 0).all(axis=0), 0.0, least)


def distance(points: Floats, target: Sequence[float]) -> float:
    """Return the distance of a target from the points along the directions without change.

    The unit is one natural logarithm of a parameter. target: one value per parameter.
    """
    found, centre = directions(points)
    with np.errstate(divide="ignore"):
        away = np.log(np.asarray(target, dtype=np.float64) + offsets(points)) - centre
    return float(np.sqrt(((found @ np.where(np.isfinite(away), away, 0.0)) ** 2).sum()))
