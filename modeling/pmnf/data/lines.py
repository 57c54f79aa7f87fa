# SPDX-License-Identifier: Apache-2.0
"""Lines of measured points: sets of points that differ in one parameter only.

Shapes: N call paths, C points, m parameters, c points of a line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray, IntArray
from ..calibration import MOST_LINES

# Totals that are computed from means over ranks count as equal up to this relative difference.
_ROUNDING = 1e-12


def lines(points: FloatArray, parameter: int, least: int = 3, most: int = MOST_LINES) -> list[IntArray]:
    """Return the lines along `parameter`, each as the indices of its points in the order of the parameter.

    points: (C, m), all different. Lines with fewer than `least` points are left out, and lines with at most half as
    many points as the longest line. Of more than `most` lines, `most` are returned, evenly chosen.
    """
    content = np.ascontiguousarray(points, dtype=np.float64)
    return list(_lines(content.tobytes(), content.shape[1], parameter, least, most))


@lru_cache(maxsize=256)
def _lines(content: bytes, width: int, parameter: int, least: int, most: int) -> tuple[IntArray, ...]:
    """Return the same as `lines`. The cache makes thousands of calls with the same points fast."""
    points = np.frombuffer(content).reshape(-1, width)
    found = _found(points, parameter, least, most)
    for line in found:
        line.setflags(write=False)
    return tuple(found)


def _found(points: FloatArray, parameter: int, least: int, most: int) -> list[IntArray]:
    others = np.delete(points, parameter, axis=1)
    if others.shape[1] == 0:
        everything = np.argsort(points[:, parameter], kind="stable")
        return [everything] if points.shape[0] >= least else []
    _, group = np.unique(others[:, 0] if others.shape[1] == 1 else others, axis=0, return_inverse=True)
    order = np.lexsort((points[:, parameter], group.reshape(-1)))
    found = np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1])
    found = [line for line in found if line.size >= least]
    longest = max((line.size for line in found), default=0)
    found = [line for line in found if line.size > longest // 2]
    if len(found) > most:
        keep = np.unique(np.linspace(0, len(found) - 1, most).round().astype(np.int64))
        found = [found[index] for index in keep]
    return found


def independent(
    points: FloatArray, values: FloatArray, least: Callable[[FloatArray], FloatArray | float]
) -> FloatArray:
    """Return the number (N,) of independent observations among the values (N, C) at points (C, m), at least 2.

    Points with the same value of a parameter may have the same deviation. The number is therefore 1 plus, for each
    parameter with an effect, its number of distinct values minus 1. A parameter has an effect if the values of some
    line differ by more than `least` of these values: it receives values (N, c) and returns a limit (N,) or a number.
    """
    result = np.ones(len(values))
    for parameter in range(points.shape[1]):
        parts = (values[:, line] for line in lines(points, parameter, least=2))
        effects = [np.ptp(part, axis=1) > least(part) for part in parts]
        if effects:
            result += np.logical_or.reduce(effects) * (np.unique(points[:, parameter]).size - 1)
    return np.maximum(result, 2.0)


def same_places(own: list[IntArray], positions: FloatArray) -> list[IntArray]:
    """Group lines whose points have the same values of the parameter: arrays (lines, points) of indices.

    own: lines along the parameter; positions: (C,) its value at each point.
    """
    groups: dict[bytes, list[IntArray]] = {}
    for line in own:
        groups.setdefault(positions[line].tobytes(), []).append(line)
    return [np.stack(group) for group in groups.values()]


def has_no_effect(points: FloatArray, values: FloatArray, index: int) -> NDArray[np.bool_]:
    """Return for each call path (N,) whether its values (N, C) are equal along the lines of one parameter.

    index: of the parameter. The lines come from `lines`, with two or more points. False if there are none.
    """
    found = lines(points, index, least=2)
    result = np.full(len(values), bool(found))
    for line in found:
        result &= np.ptp(values[:, line], axis=1) == 0.0
    return result


def is_shared(points: FloatArray, values: FloatArray, index: int) -> NDArray[np.bool_]:
    """Return for each call path (N,) whether its values (N, C) are equal shares of a total along the lines.

    This is the case if value × parameter is constant along each line. index: of the parameter. False without lines.
    """
    found = lines(points, index, least=2)
    result = np.full(len(values), bool(found))
    for line in found:
        totals = values[:, line] * points[line, index]
        result &= np.ptp(totals, axis=1) <= _ROUNDING * np.abs(totals).max(axis=1)
    return result


def different_points(points: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """Return the number (N,) of points that differ in a parameter with an effect on the values (N, C).

    A parameter has no effect if the values are equal along its lines, or shares of equal totals. Points that only
    differ in such a parameter add no information about the form of a model, and count once.
    """
    known = (has_no_effect, is_shared)
    effect = np.stack(
        [~np.logical_or(*(of(points, values, index) for of in known)) for index in range(points.shape[1])], axis=1
    )
    result = np.empty(len(values), dtype=np.int64)
    for key in np.unique(effect, axis=0):
        result[(effect == key).all(axis=1)] = len(np.unique(points[:, key], axis=0)) if key.any() else 1
    return result
