# SPDX-License-Identifier: Apache-2.0
"""Lines of measurement points: sets that differ in one parameter only."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray, IntArray
from ..calibration import MOST_LINES

# Totals of means over ranks are equal within this relative difference.
_ROUNDING = 1e-12


def lines(points: FloatArray, parameter: int, least: int = 3, most: int = MOST_LINES) -> list[IntArray]:
    """Return index arrays of the lines along `parameter` with at least `least` points, longest first.

    points: (C, m), all different. At most `most` are returned, spread over the space.
    """
    content = np.ascontiguousarray(points, dtype=np.float64)
    return list(_lines(content.tobytes(), content.shape[1], parameter, least, most))


@lru_cache(maxsize=256)
def _lines(content: bytes, width: int, parameter: int, least: int, most: int) -> tuple[IntArray, ...]:
    """Return the same as `lines`, fast for thousands of calls with few points."""
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
    """Return the number of independent observations of values (N, C), at least 2.

    Deviations may be equal along all lines. The number is therefore the number of distinct values of the parameters
    with an effect: `least` returns the variation (N,) that counts as no effect, for values on a line (N, c).
    """
    result = np.ones(len(values))
    for parameter in range(points.shape[1]):
        parts = (values[:, line] for line in lines(points, parameter, least=2))
        effects = [np.ptp(part, axis=1) > least(part) for part in parts]
        if effects:
            result += np.logical_or.reduce(effects) * (np.unique(points[:, parameter]).size - 1)
    return np.maximum(result, 2.0)


def same_places(own: list[IntArray], positions: FloatArray) -> list[IntArray]:
    """Return the lines as arrays (lines, points), grouped by the values of the parameter."""
    groups: dict[bytes, list[IntArray]] = {}
    for line in own:
        groups.setdefault(positions[line].tobytes(), []).append(line)
    return [np.stack(group) for group in groups.values()]


def has_no_effect(points: FloatArray, values: FloatArray, index: int) -> NDArray[np.bool_]:
    """Return which values (N, C) are equal along all lines of one parameter that has several values."""
    found = lines(points, index, least=2)
    result = np.full(len(values), bool(found))
    for line in found:
        result &= np.ptp(values[:, line], axis=1) == 0.0
    return result


def is_shared(points: FloatArray, values: FloatArray, index: int) -> NDArray[np.bool_]:
    """Return which values (N, C) are shares of equal totals (value × parameter) along all lines."""
    found = lines(points, index, least=2)
    result = np.full(len(values), bool(found))
    for line in found:
        totals = values[:, line] * points[line, index]
        result &= np.ptp(totals, axis=1) <= _ROUNDING * np.abs(totals).max(axis=1)
    return result


def different_points(points: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """Return the number of points (N,) with values (N, C) that differ in a parameter with an effect.

    The other points repeat these and add no information, also if they are shares of equal totals.
    """
    known = (has_no_effect, is_shared)
    effect = np.stack(
        [~np.logical_or(*(of(points, values, index) for of in known)) for index in range(points.shape[1])], axis=1
    )
    result = np.empty(len(values), dtype=np.int64)
    for key in np.unique(effect, axis=0):
        result[(effect == key).all(axis=1)] = len(np.unique(points[:, key], axis=0)) if key.any() else 1
    return result
