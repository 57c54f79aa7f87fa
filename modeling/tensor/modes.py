# SPDX-License-Identifier: Apache-2.0
"""Modes of the tensor: a parameter, or the product or ratio of two, with a grid and the hat functions on the grid.

A hat function is 1 at one knot, 0 at all other knots, and linear between knots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray

IntArray = NDArray[np.intp]
Kind = Literal["numeric", "categorical"]
FEW_VALUES = 24
"""A parameter with at most this many different values has a knot at each value."""
LARGEST = 1e100
"""Largest absolute value of a parameter; the square of a larger one would overflow."""
MOST_NEW_KNOTS = 32
"""Largest number of knots that one extension adds to each side of a grid."""
FIRST_CELLS = (256, 256, 64, 16)
"""Number of cells of the first grid of a parameter with more than `FEW_VALUES` values, if there are one, two, three, or
more modes."""


@dataclass(frozen=True)
class Mode:
    """One mode: hat functions on knots if it is numeric, or an indicator function for each category.

    parameters: columns of the rows: one, or two for a derived mode (a product or ratio). signs: the exponents, 1 or -1,
    of the columns in a derived mode. logarithmic: whether the scale of the mode is the logarithm of the parameter.
    knots: ascending, in the scale of the mode; the codes of a categorical mode. indexed: whether every measured value
    is a knot.
    """

    parameters: tuple[int, ...]
    signs: tuple[int, ...]
    kind: Kind
    logarithmic: bool
    knots: FloatArray
    indexed: bool

    @property
    def size(self) -> int:
        """Return the number of knots."""
        return len(self.knots)

    @property
    def width(self) -> int:
        """Return the largest number of hat functions that are not zero at a measured value."""
        return 1 if self.indexed else 2

    def scaled(self, x: FloatArray) -> FloatArray:
        """Return the positions of rows x (N, d) in the scale of the mode, shape (N,).

        They are infinite or NaN where a logarithm does not exist.
        """
        if self.kind == "categorical":
            return x[:, self.parameters[0]]
        parts = [x[:, parameter] for parameter in self.parameters]
        if self.logarithmic:
            with np.errstate(divide="ignore"):
                parts = [np.log(np.maximum(part, 0.0)) for part in parts]
        return parts[0] if len(parts) == 1 else parts[0] * self.signs[0] + parts[1] * self.signs[1]

    def basis(self, x: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the number of the knot left of each row (N,), and the weights of this knot and the next (N, 2).

        Outside of the grid the outermost knot has weight 1. A category that was not measured has weights of zero.
        """
        z = self.scaled(x)
        if self.kind == "categorical":
            at = np.minimum(np.searchsorted(self.knots, z), self.size - 1)
            known = self.knots[at] == z
            return at, np.column_stack([known.astype(np.float64), np.zeros(len(z))])
        if self.size == 1:
            return np.zeros(len(z), dtype=np.intp), np.column_stack([np.ones(len(z)), np.zeros(len(z))])
        at = np.clip(np.searchsorted(self.knots, z, side="right") - 1, 0, self.size - 2)
        left = self.knots[at]
        right = (np.minimum(np.maximum(z, self.knots[0]), self.knots[-1]) - left) / (self.knots[at + 1] - left)
        return at, np.column_stack([1.0 - right, right])

    def refined(self) -> tuple[Mode, FloatArray]:
        """Return the mode with an additional knot in the middle of each cell, and a matrix (new knots, old knots).

        The matrix converts a factor on the old knots to the same function on the new knots.
        """
        middles = (self.knots[1:] + self.knots[:-1]) / 2.0
        knots = np.empty(2 * self.size - 1)
        knots[::2], knots[1::2] = self.knots, middles
        matrix = np.zeros((len(knots), self.size))
        matrix[np.arange(0, len(knots), 2), np.arange(self.size)] = 1.0
        odd = np.arange(1, len(knots), 2)
        matrix[odd, np.arange(self.size - 1)] = matrix[odd, np.arange(1, self.size)] = 0.5
        return replace(self, knots=knots), matrix

    def extended(self, x: FloatArray) -> tuple[Mode, FloatArray]:
        """Return the mode with a grid that contains all rows x (N, d), and a matrix (new knots, old knots).

        The matrix converts a factor: new knots have the value of the outermost old knot, a new category the mean of all
        categories. New cells are as wide as the outermost one (wider if there would be too many).
        """
        z = self.scaled(x)
        if self.kind == "categorical":
            new = np.setdiff1d(z, self.knots)
            fresh = np.full((len(new), self.size), 1.0 / self.size)
            knots = np.concatenate([self.knots, new])
            order = np.argsort(knots)
            return replace(self, knots=knots[order]), np.vstack([np.eye(self.size), fresh])[order]
        step = self.knots[1:] - self.knots[:-1]
        before = _beyond(self.knots[0] - z.min(), step[0] if len(step) else 0.0)
        after = _beyond(z.max() - self.knots[-1], step[-1] if len(step) else 0.0)
        knots = np.concatenate([self.knots[0] - before[::-1], self.knots, self.knots[-1] + after])
        eye = np.eye(self.size)
        matrix = np.vstack([np.repeat(eye[:1], len(before), axis=0), eye, np.repeat(eye[-1:], len(after), axis=0)])
        return replace(self, knots=knots, indexed=bool(self.indexed and np.isin(z, knots).all())), matrix

    def roughness(self) -> FloatArray:
        """Return the matrix of the penalty ∫ f″² on this grid, scaled to length 1, as its bands (3, size).

        Band k contains the entries (i + k, i) of the matrix. All are zero for a categorical mode.
        """
        bands = np.zeros((3, self.size))
        if self.kind == "categorical" or self.size < 3:
            return bands
        places = (self.knots - self.knots[0]) / (self.knots[-1] - self.knots[0])
        steps = np.diff(places)
        rows = np.zeros((self.size - 2, 3))
        rows[:, 0], rows[:, 2] = 1.0 / steps[:-1], 1.0 / steps[1:]
        rows[:, 1] = -rows[:, 0] - rows[:, 2]
        rows /= np.sqrt((steps[:-1] + steps[1:]) / 2.0)[:, None]
        for lag in range(3):
            for first in range(3 - lag):
                bands[lag, first : first + self.size - 2] += rows[:, first] * rows[:, first + lag]
        return bands


def numeric_mode(
    x: FloatArray, parameter: int, logarithmic: bool | None = None, knots: FloatArray | None = None
) -> Mode:
    """Return the mode of the numeric column number `parameter` of rows x (N, d).

    logarithmic: whether its scale is logarithmic; None: if all values are positive and their logarithms are less
    skewed. knots: in units of the parameter; None: each measured value.
    """
    values = np.unique(x[:, parameter])
    if logarithmic is None:
        column = x[:, parameter]
        logarithmic = bool(values[0] > 0 and _skewness(np.log(column)) <= _skewness(column))
    if knots is not None:
        values = np.unique(np.asarray(knots, dtype=np.float64))
    places = np.log(values) if logarithmic else values
    return Mode((parameter,), (1,), "numeric", logarithmic, places, indexed=knots is None)


def categorical_mode(x: FloatArray, parameter: int) -> Mode:
    """Return the mode of the column number `parameter` of rows x (N, d), whose values have no order."""
    return Mode((parameter,), (1,), "categorical", False, np.unique(x[:, parameter]), True)


def derived_mode(x: FloatArray, first: int, second: int, sign: int) -> Mode:
    """Return the mode of the product (sign 1) or ratio (sign -1) of two positive columns, on a logarithmic grid."""
    mode = Mode((first, second), (1, sign), "numeric", True, np.empty(0), indexed=True)
    z = mode.scaled(x)
    values = distinct(z)
    if len(values) <= FEW_VALUES:
        return replace(mode, knots=values)
    return replace(mode, knots=_grid(z, FIRST_CELLS[-1]), indexed=False)


def _beyond(distance: float, step: float) -> FloatArray:
    """Return the distances of new knots from the edge of a grid, up to `distance`, about `step` apart.

    Empty if `distance` is not positive.
    """
    if distance <= 0.0:
        return np.empty(0)
    count = max(1, min(MOST_NEW_KNOTS, int(np.ceil(distance / step)))) if step > 0 else 1
    return np.linspace(distance / count, distance, count)


def distinct(z: FloatArray) -> FloatArray:
    """Return the different values, ascending; values that differ only by rounding count as one."""
    values = np.unique(z)
    apart = np.diff(values) > 1e-9 * max(1.0, float(np.abs(values).max()))
    return np.asarray(values[np.concatenate([[True], apart])])


def _grid(z: FloatArray, cells: int) -> FloatArray:
    """Return `cells` + 1 uniform knots, or quantiles if more than half of the uniform cells would contain no value."""
    uniform = np.linspace(z.min(), z.max(), cells + 1)
    if np.count_nonzero(np.histogram(z, uniform)[0]) * 2 >= cells:
        return uniform
    return distinct(np.quantile(z, np.linspace(0.0, 1.0, cells + 1)))


def _skewness(values: FloatArray) -> float:
    spread = values.std()
    return abs(float(np.mean((values - values.mean()) ** 3) / spread**3)) if spread > 0 else 0.0


def modes_of(
    x: FloatArray,
    categorical: Sequence[int] = (),
    spacing: Sequence[bool | None] = (),
    knots: Sequence[FloatArray | None] = (),
) -> tuple[Mode, ...]:
    """Return a mode for each column of rows x (N, d) that has more than one value.

    categorical: columns whose values have no order. spacing, knots: for each column, the arguments `logarithmic` and
    `knots` of `numeric_mode`. Without given knots, columns of more than `FEW_VALUES` values have `FIRST_CELLS` cells.
    """
    result: list[Mode] = []
    regular = []
    for parameter in range(x.shape[1]):
        if np.all(x[:, parameter] == x[0, parameter]):
            continue
        given = knots[parameter] if knots else None
        if parameter in categorical:
            result.append(categorical_mode(x, parameter))
            continue
        mode = numeric_mode(x, parameter, spacing[parameter] if spacing else None, given)
        if given is None and mode.size > FEW_VALUES:
            regular.append(len(result))
        result.append(mode)
    cells = FIRST_CELLS[min(len(result), len(FIRST_CELLS)) - 1] if result else 0
    cells = max(4, min(cells, len(x) // 16))
    for number in regular:
        mode = result[number]
        result[number] = replace(mode, knots=_grid(mode.scaled(x), cells), indexed=False)
    return tuple(result)


def few_values(x: FloatArray, before: Sequence[FloatArray] | None = None) -> tuple[FloatArray, ...]:
    """Return the different values of each column, ascending; an empty array if there are more than `FEW_VALUES`.

    before: the result for earlier rows, whose values are added.
    """
    result = []
    for column in range(x.shape[1]):
        values = np.unique(x[:, column])
        if before is not None:
            values = np.union1d(before[column], values) if len(before[column]) else before[column]
        result.append(values if len(values) <= FEW_VALUES else np.empty(0))
    return tuple(result)


def too_large(x: FloatArray) -> list[int]:
    """Return the columns of x (N, d) that vary and contain a magnitude larger than `LARGEST`."""
    varied = x.min(axis=0) < x.max(axis=0)
    return np.flatnonzero(varied & (np.abs(x).max(axis=0) > LARGEST)).tolist()
