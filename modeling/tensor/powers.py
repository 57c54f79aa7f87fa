# SPDX-License-Identifier: Apache-2.0
"""Model a time as a sum of products of powers and logarithms of parameters, with positive coefficients.

With positive coefficients the sum is positive. Outside of the measured values it approaches its fastest growing
product, as run times do. The sum is fitted to logarithms of times with Gauss-Newton steps, each of which is a
non-negative least-squares problem.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.optimize import nnls

from ..experiment import FloatArray
from .als import huber_roots, huber_scale

MOST_COLUMNS = 4
"""Largest number of parameters in products; parameters with the widest ranges are preferred."""
FACTORS = ((0.0, 0.0), (0.0, 1.0), (0.5, 0.0), (1.0, 0.0))
"""The factors of a parameter x in products, as exponents of x and of its logarithm: 1, logarithm, √x, x."""
STEEP_OFFSET = 0.05
"""Products contain the logarithm as offset + ln(x/low), where low is the smallest value of x. This is the offset of
parameters with few values (`steep`); the offset of others is 1. With offset 1, the time 1 + c·ln(x/low) has positive
coefficients only for c ≤ 1. Steeper logarithms, for example over nodes if one node needs no network, would be
approximated by powers, which grow faster outside of the measured values. The offset is above 0, so that no product is 0
at the smallest value (docs/design/tensor.md).
"""
SLOPE_STEP = 0.01
"""Difference of ln(x) over which a slope is computed."""
OUTER_WEIGHT, LEAST_PLACE = 2.0, 0.02
"""The weight of a row is a power of the geometric mean of its positions in the parameters; a position is 0 at the
smallest value and 1 at the largest one, in logarithms. The exponent of the power, and a number that is added to
positions, so that no weight is 0."""
STEPS, LEAST_RATIO = 3, 0.2
"""Number of Gauss-Newton steps, and the smallest target of a step relative to the time of the previous step."""


@dataclass(frozen=True)
class Powers:
    """The sum of K products: Σ coefficient · Π (x/low)^exponent · (offset + ln(x/low))^logarithm over P columns x.

    columns: the P columns. lows, offsets: (P,). exponents, logarithms: (K, P). coefficients: (K,), positive. capped:
    for each column, whether the growth beyond its range is limited to the growth at the end of the range (`step`).
    """

    columns: tuple[int, ...] = ()
    lows: FloatArray = field(default_factory=lambda: np.empty(0))
    exponents: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    logarithms: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    offsets: FloatArray = field(default_factory=lambda: np.empty(0))
    capped: tuple[bool, ...] = ()

    def logs(self, x: FloatArray) -> FloatArray:
        """Return ln(sum) for rows x (N, d), shape (N,); below the range, offset + ln(x/low) is kept above 0."""
        places = self._places(x)
        exponents = (
            places @ self.exponents.T
            + np.log(self.offsets + np.maximum(places, -self.offsets / 2.0)) @ self.logarithms.T
        )
        most = exponents.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(exponents - most) @ self.coefficients) + most[:, 0])

    def step(self, inside: FloatArray, x: FloatArray) -> FloatArray:
        """Return the change (N,) of ln(sum) from rows `inside` of the range (N, d) to rows x (N, d).

        For larger values of a capped column, the change is at most the slope at the end of the range times the
        distance, in logarithms. The slope of a sum of powers increases, and few values do not determine by how much.
        """
        place = inside.copy()
        free = [column for column, capped in zip(self.columns, self.capped, strict=True) if not capped]
        place[:, free] = x[:, free]
        result = self.logs(place) - self.logs(inside)
        for column in self.columns:
            distance = np.log(np.maximum(x[:, column], 1e-300)) - np.log(np.maximum(place[:, column], 1e-300))
            if column in free or not distance.any():
                continue
            before, here, place = place.copy(), self.logs(place), place.copy()
            before[:, column] *= np.exp(-SLOPE_STEP)
            place[:, column] = x[:, column]
            steady = (here - self.logs(before)) / SLOPE_STEP * distance
            change = self.logs(place) - here
            result += np.where(distance > 0.0, np.minimum(change, steady), change)
        return result

    def _places(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(x[:, list(self.columns)], 1e-300) / self.lows))


def power_columns(x: FloatArray, columns: Sequence[int], wanted: Sequence[int]) -> tuple[int, ...]:
    """Return at most MOST_COLUMNS of the positive columns, in ascending order.

    Columns in `wanted` are preferred, then columns with the widest ranges of their logarithms.
    """
    ranges = {column: float(np.ptp(np.log(x[:, column]))) for column in columns if x[:, column].min() > 0}
    order = sorted(ranges, key=lambda column: (column not in wanted, -ranges[column]))
    return tuple(sorted(order[:MOST_COLUMNS]))


def fit_powers(
    x: FloatArray,
    logs: FloatArray,
    columns: tuple[int, ...],
    steep: Collection[int] = (),
    capped: Collection[int] = (),
) -> Powers:
    """Return a sum of powers of `columns` that is proportional to the times of rows x (N, d).

    It is fitted to `logs` (N,), the logarithms of the times, with larger weights for rows with large values. steep:
    columns over which times can grow much faster than 1 + ln(x/low); capped: see `Powers`. The result is empty
    (`Powers()`) without columns, and if the numbers exceed the range of floating point.
    """
    if not columns:
        return Powers()
    lows = x[:, list(columns)].min(axis=0)
    offsets = np.array([STEEP_OFFSET if column in steep else 1.0 for column in columns])
    choices = np.array(list(product(FACTORS, repeat=len(columns))))
    exponents, logarithms = choices[:, :, 0], choices[:, :, 1]
    places = np.log(x[:, list(columns)] / lows)
    with np.errstate(over="ignore"):
        terms = np.exp(places @ exponents.T + np.log(offsets + places) @ logarithms.T)
    inner = LEAST_PLACE + places / np.maximum(places.max(axis=0), 1e-9)
    outer = np.exp(OUTER_WEIGHT * np.log(inner).mean(axis=1))
    center = float(np.median(logs))  # exp(target) is then about 1, whatever the unit of the times
    target = logs - center
    found, weights = target.copy(), outer
    coefficients = np.empty(0)
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = terms * (weights * np.exp(-found))[:, None]
            size = np.linalg.norm(scaled, axis=0)
        if not (np.isfinite(size) & (size > 0.0)).all():
            return Powers()  # values or times extend over hundreds of orders of magnitude
        right = weights * np.maximum(1.0 + target - found, LEAST_RATIO)
        coefficients = nnls(scaled / size, right, maxiter=20 * terms.shape[1])[0] / size
        used = coefficients > 0
        if not used.any():
            return Powers()
        terms, exponents, logarithms = terms[:, used], exponents[used], logarithms[used]
        coefficients = coefficients[used]
        found = np.log(terms @ coefficients)
        residual = np.abs(target - found)
        weights = outer * huber_roots(residual, huber_scale(residual))
    slow = tuple(column in capped for column in columns)
    return Powers(columns, lows, exponents, logarithms, coefficients, offsets, slow)
