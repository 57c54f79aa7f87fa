# SPDX-License-Identifier: Apache-2.0
"""Compute what the measurements leave open: directions of the parameters in which no configuration changed.

A parameter with one measured value may have any effect, and so has one of two parameters that always change together.
Directions are those of the logarithms of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .factors import Floats

EXPONENT_DEVIATION = 1.0
"""Standard deviation of the exponent with which a count grows in such a direction."""
_FLAT = 1e-6  # relative size of a direction without change


def directions(points: Floats) -> tuple[Floats, Floats]:
    """Return the directions without change, shape (directions, parameters), and the mean of the logarithms.

    points: shape (configurations, parameters). The smallest other value of a parameter is added to it if it has the
    value 0 somewhere.
    """
    logs = np.log(points + offsets(points))
    centre = logs.mean(axis=0)
    _, sizes, rows = np.linalg.svd(logs - centre, full_matrices=True)
    used = int((sizes > _FLAT * max(1.0, float(sizes.max(initial=0.0)))).sum())
    return rows[used:], centre


def offsets(points: Floats) -> Floats:
    """Return what is added to each parameter before its logarithm, shape (parameters,)."""
    least = np.where(points > 0, points, np.inf).min(axis=0, initial=np.inf)
    least = np.where(np.isinf(least), 1.0, least)
    return np.where((points > 0).all(axis=0), 0.0, least)


def distance(points: Floats, target: Sequence[float]) -> float:
    """Return the distance of a target from the points, along the directions without change, as a natural logarithm."""
    found, centre = directions(points)
    with np.errstate(divide="ignore"):
        away = np.log(np.asarray(target, dtype=np.float64) + offsets(points)) - centre
    return float(np.sqrt(((found @ np.where(np.isfinite(away), away, 0.0)) ** 2).sum()))
