# SPDX-License-Identifier: Apache-2.0
"""Prepare measured points before modeling: check values, join repetitions, find where a call path was executed.

Shapes: N call paths, C points (configurations), R repetitions, m parameters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...catalogue import NOT_EXECUTED
from ...errors import ModelingError
from ...experiment import FloatArray
from ..calibration import EXTREME_EXPONENT, LARGEST_PARAMETER
from .noise import Repetitions

_Flags = NDArray[np.bool_]

# A call path counts as absent at certain values of a parameter if there are at most this many of them.
_MOST_ABSENT = 4


def check(points: FloatArray, values: FloatArray, names: tuple[str, ...], executed: _Flags | None) -> None:
    """Raise ModelingError if names repeat, shapes do not match, or a parameter value cannot be used.

    points: (C, m); values: (N, C, R); names: of the m parameters; executed: (N, C) or None. Parameter values must be 0,
    or between 1/LARGEST_PARAMETER and LARGEST_PARAMETER.
    """
    if len(set(names)) != len(names):
        raise ModelingError(f"parameters must have different names: {', '.join(names)}")
    if points.ndim != 2 or points.shape[1] != len(names):
        raise ModelingError(f"points have shape {points.shape}, but there are {len(names)} parameters")
    if values.ndim != 3 or values.shape[1] != points.shape[0]:
        raise ModelingError(f"values have shape {values.shape}; expected (call paths, {points.shape[0]}, repetitions)")
    if executed is not None and executed.shape != values.shape[:2]:
        raise ModelingError(f"executed has shape {executed.shape}; expected {values.shape[:2]}")
    for index, name in enumerate(names):
        column = points[:, index]
        if not np.isfinite(column).all() or (column < 0).any():
            raise ModelingError(f"parameter {name} has a negative or infinite value; models need numbers from 0 up")
        positive = column[column > 0]
        most = LARGEST_PARAMETER
        if positive.size and (positive.max() > most or positive.min() < 1.0 / most):
            raise ModelingError(f"parameter {name} has values beyond {most:g} or 1/{most:g}; use another unit")


def join_duplicates(
    points: FloatArray, values: FloatArray, executed: _Flags | None
) -> tuple[FloatArray, FloatArray, _Flags | None]:
    """Convert rows of `points` (C, m) with equal parameter values to repetitions of one configuration.

    Returns the distinct points, sorted, the values with more repetitions (NaN for missing ones), and `executed` (N, C):
    whether any of the joined rows was executed. With R = 0, the values become one missing repetition.
    """
    unique, place = np.unique(points, axis=0, return_inverse=True)
    place = place.reshape(-1)
    if values.shape[2] == 0:
        values = np.full((*values.shape[:2], 1), np.nan)
    if np.array_equal(place, np.arange(len(unique))):
        return unique, values, executed
    count = np.bincount(place, minlength=unique.shape[0])
    times = int(count.max(initial=1))
    order = np.argsort(place, kind="stable")
    nth = np.arange(order.size) - np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)[place[order]]
    paths, repetitions = values.shape[0], values.shape[2]
    joined = np.full((paths, unique.shape[0], times, repetitions), np.nan)
    joined[:, place[order], nth] = values[:, order]
    flags: _Flags | None = None
    if executed is not None:
        flags = np.zeros((paths, unique.shape[0]), dtype=bool)
        for column, target in enumerate(place):
            flags[:, target] |= executed[:, column]
    return unique, joined.reshape(paths, unique.shape[0], -1), flags


def extreme_exponents(values: FloatArray) -> NDArray[np.int64]:
    """Return exponents e (N,) such that values divided by 2^e have no squares beyond the range of floating point.

    e is 0 for values of usual size. values: (N, C), NaN if missing.
    """
    size = np.nanmax(np.where(np.isnan(values), 0.0, np.abs(values)), axis=1, initial=0.0)
    _, exponent = np.frexp(size)
    result: NDArray[np.int64] = np.where(np.abs(exponent) > EXTREME_EXPONENT, exponent, 0).astype(np.int64)
    return result


def take(repetitions: Repetitions, paths: NDArray[np.int64], where: _Flags) -> Repetitions:
    """Return the repetitions of the call paths with these numbers, at the points in the mask `where` (C,)."""
    return Repetitions(
        repetitions.centre[paths][:, where],
        repetitions.scatter[paths],
        repetitions.freedom[paths],
        repetitions.count[paths],
        repetitions.counts[paths][:, where],
        repetitions.differ[paths],
        repetitions.falls[paths],
        repetitions.unit[paths],
    )


def without_one(points: FloatArray, parameter: int) -> _Flags | None:
    """Return the mask (C,) of the points at which a parameter is above 1.

    Counts at 1 may follow another formula, because one process has no neighbours and nothing to merge. None if the
    smallest value is not 1, or if fewer than two different values are above 1.
    """
    others: _Flags = points[:, parameter] > 1.0
    possible = points[:, parameter].min() == 1.0 and np.unique(points[others, parameter]).size >= 2
    return others if possible else None


def same_along(points: FloatArray, values: FloatArray, parameter: int) -> _Flags:
    """Return for each call path (N,) whether its values (N, C) do not depend on one parameter.

    Values at points (C, m) that only differ in this parameter must be equal, up to 1e-9 of the largest.
    """
    _, group = np.unique(np.delete(points, parameter, axis=1), axis=0, return_inverse=True)
    result = np.ones(len(values), dtype=bool)
    for number in np.unique(group).tolist():
        own = values[:, group.reshape(-1) == number]
        result &= np.ptp(own, axis=1) <= 1e-9 * np.abs(own).max(axis=1)
    return result


def ranges(points: FloatArray) -> tuple[tuple[float, float], ...]:
    """Return (lowest, highest) value of each parameter; () without points."""
    if not points.shape[0]:
        return ()
    return tuple((float(low), float(high)) for low, high in zip(points.min(axis=0), points.max(axis=0), strict=True))


def absent_values(names: tuple[str, ...], points: FloatArray, missing: _Flags) -> list[tuple[str, float]]:
    """Return the values of one parameter at which a call path was not executed, as pairs (name, value).

    missing: (C,) where the call path was not executed. The values must explain all of these points: there are at most
    _MOST_ABSENT of them, and the call path was executed at none of them. [] if no parameter has such values.
    """
    for index, name in enumerate(names):
        values = np.unique(points[missing, index])
        if 0 < values.size <= _MOST_ABSENT and not np.isin(points[~missing, index], values).any():
            return [(name, value) for value in values.tolist()]
    return []


def not_executed(names: tuple[str, ...], points: FloatArray, missing: _Flags) -> tuple[str, ...]:
    """Return a note on where a call path was not executed; () if it was executed at all points.

    The note names parameter values if `absent_values` finds them, else the number of configurations.
    """
    if not missing.any():
        return ()
    if found := absent_values(names, points, missing):
        return (NOT_EXECUTED(where=f"at {', '.join(f'{name}={value:g}' for name, value in found)}"),)
    return (NOT_EXECUTED(where=f"in {int(missing.sum())} of {missing.size} configurations"),)


def unit_of(values: FloatArray, least: FloatArray) -> FloatArray:
    """Return the greatest common divisor (N,) of the differences of values (N, C), which need not be whole.

    Computed by Euclid's algorithm; remainders up to `least` (N,) count as 0. The result is at least `least`.
    """
    unit = np.zeros(len(values))
    for column in (values - values[:, :1]).T[1:]:
        other = np.abs(column)
        while (more := other > least).any():
            part = np.where(more, other, 1.0)
            rest = np.abs(unit - part * np.round(unit / part))
            unit, other = np.where(more, other, unit), np.where(more, rest, 0.0)
    return np.maximum(unit, least)
