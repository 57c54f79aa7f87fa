# SPDX-License-Identifier: Apache-2.0
"""Prepare measured points before modeling: usable values, and where a call path was executed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...catalogue import NOT_EXECUTED
from ...errors import ModelingError
from ...experiment import FloatArray
from ..calibration import EXTREME_EXPONENT, LARGEST_PARAMETER
from .noise import Repetitions

_Flags = NDArray[np.bool_]

# Up to this number of parameter values can explain where a call path was not executed.
_MOST_ABSENT = 4


def check(points: FloatArray, values: FloatArray, names: tuple[str, ...], executed: _Flags | None) -> None:
    """Raise ModelingError if shapes do not match or parameter values cannot be used."""
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
    """Convert rows with equal parameter values to repetitions of one configuration; sort the points."""
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
    """Return powers of two (N,) as divisors; 0 except for values so large or small that squares overflow."""
    size = np.nanmax(np.where(np.isnan(values), 0.0, np.abs(values)), axis=1, initial=0.0)
    _, exponent = np.frexp(size)
    result: NDArray[np.int64] = np.where(np.abs(exponent) > EXTREME_EXPONENT, exponent, 0).astype(np.int64)
    return result


def take(repetitions: Repetitions, paths: NDArray[np.int64], where: _Flags) -> Repetitions:
    """Return some call paths at some points."""
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
    """Return the points (C,) with x above 1, for a parameter x that is 1 elsewhere and has two values above 1.

    One process has no neighbours and nothing to merge, so counts at 1 may follow another formula.
    """
    others: _Flags = points[:, parameter] > 1.0
    possible = points[:, parameter].min() == 1.0 and np.unique(points[others, parameter]).size >= 2
    return others if possible else None


def same_along(points: FloatArray, values: FloatArray, parameter: int) -> _Flags:
    """Return which (N,) of the values (N, C) are equal at all points (C, m) that only differ in one parameter."""
    _, group = np.unique(np.delete(points, parameter, axis=1), axis=0, return_inverse=True)
    result = np.ones(len(values), dtype=bool)
    for number in np.unique(group).tolist():
        own = values[:, group.reshape(-1) == number]
        result &= np.ptp(own, axis=1) <= 1e-9 * np.abs(own).max(axis=1)
    return result


def ranges(points: FloatArray) -> tuple[tuple[float, float], ...]:
    """Return the lowest and highest value of each parameter, () without points."""
    if not points.shape[0]:
        return ()
    return tuple((float(low), float(high)) for low, high in zip(points.min(axis=0), points.max(axis=0), strict=True))


def absent_values(names: tuple[str, ...], points: FloatArray, missing: _Flags) -> list[tuple[str, float]]:
    """Return the values of one parameter that explain where (C,) a call path was not executed, () if there are none.

    There must be few of these values, and the call path is executed at none of them.
    """
    for index, name in enumerate(names):
        values = np.unique(points[missing, index])
        if 0 < values.size <= _MOST_ABSENT and not np.isin(points[~missing, index], values).any():
            return [(name, value) for value in values.tolist()]
    return []


def not_executed(names: tuple[str, ...], points: FloatArray, missing: _Flags) -> tuple[str, ...]:
    """Describe where a call path was not executed, by parameter values if these explain it."""
    if not missing.any():
        return ()
    if found := absent_values(names, points, missing):
        return (NOT_EXECUTED(where=f"at {', '.join(f'{name}={value:g}' for name, value in found)}"),)
    return (NOT_EXECUTED(where=f"in {int(missing.sum())} of {missing.size} configurations"),)


def unit_of(values: FloatArray, least: FloatArray) -> FloatArray:
    """Return the largest common divisors (N,) of differences of values (N, C); `least` (N,) if smaller."""
    unit = np.zeros(len(values))
    for column in (values - values[:, :1]).T[1:]:
        other = np.abs(column)
        while (more := other > least).any():
            part = np.where(more, other, 1.0)
            rest = np.abs(unit - part * np.round(unit / part))
            unit, other = np.where(more, other, unit), np.where(more, rest, 0.0)
    return np.maximum(unit, least)
