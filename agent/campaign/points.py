# SPDX-License-Identifier: Apache-2.0
"""The points of a campaign: all combinations of the values of its parameters, or a list."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from quipu.modeling.documents import is_number, is_parameter
from quipu.modeling.errors import FormatError

Point = tuple[float, ...]
Mistake = Callable[[str, str], FormatError]
"""A function of a key of the campaign file and a message, which returns the error to raise."""
_LARGEST_GRID = 100_000


def read_points(given: object, explicit: object, mistake: Mistake) -> tuple[tuple[str, ...], tuple[Point, ...]]:
    """Return the names of the parameters, and the points in the order of execution.

    The points are ascending, and the first parameter changes last. given: the table [parameters] with the values of
    each parameter, or a list of names. explicit: the key `points`, a list of rows with one value for each parameter;
    None: all combinations of the values in `given`. Raises the result of `mistake`.
    """
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        if explicit is None:
            raise mistake("parameters", "a list of names needs points = [[…], …] in [experiment]")
        given = {name: [] for name in given}
    if not isinstance(given, dict):
        raise mistake("parameters", "should be a table: [parameters] with lines like p = [1, 2, 4]")
    for name in given:
        if not is_parameter(name):
            raise mistake(name, "is not usable as a parameter name (letters, digits and _)")
    names = tuple(given)
    if explicit is not None:
        return names, _listed(names, explicit, mistake)
    given = {name: _series(name, values, mistake) for name, values in given.items()}
    if math.prod(len(values) for values in given.values()) > _LARGEST_GRID:
        raise mistake("parameters", f"make more than {_LARGEST_GRID} points")
    return names, tuple(itertools.product(*(sorted(set(values)) for values in given.values())))


def _series(name: str, values: object, mistake: Mistake) -> list[float]:
    """Return the values of a parameter from a list, or from a range {from, to, step} or {from, to, factor}.

    A range contains its end if the steps reach it.
    """
    if isinstance(values, list) and values and all(is_number(value) for value in values):
        return values
    if not isinstance(values, dict):
        raise mistake(name, "should be a list of numbers, like [1, 2, 4], or {from = 1, to = 64, factor = 2}")
    kind = "factor" if "factor" in values else "step"
    if set(values) != {"from", "to", kind} or not all(is_number(value) for value in values.values()):
        raise mistake(name, "a range needs numbers from and to, and step or factor")
    low, high, width = values["from"], values["to"], values[kind]
    if low > high or width <= (kind == "factor") or (kind == "factor" and low <= 0):
        raise mistake(name, "a range needs from < to, and step > 0 or factor > 1")
    result, value = [], low
    while value <= high * (1 + 1e-12):
        result.append(value)
        value = value * width if kind == "factor" else low + len(result) * width
        if len(result) > _LARGEST_GRID:
            raise mistake(name, f"makes more than {_LARGEST_GRID} values")
    return result


def _listed(names: tuple[str, ...], rows: object, mistake: Mistake) -> tuple[Point, ...]:
    """Return the points of a list in ascending order, without duplicates."""
    if not isinstance(rows, list) or not rows:
        raise mistake("points", "should be a list of points, like [[1, 64], [2, 128]]")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(names) or not all(is_number(value) for value in row):
            order = ", ".join(names) or "no parameters"
            raise mistake("points", f"{row!r} should hold one number for each of: {order}")
    return tuple(sorted({tuple(row) for row in rows}))
