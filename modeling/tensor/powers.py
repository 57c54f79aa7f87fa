# SPDX-License-Identifier: Apache-2.0
"""Model a time as a sum of products of powers and logarithms of parameters, with positive coefficients.

With positive coefficients the sum is positive, and outside of the data it approaches its fastest growing product, like
run times. The sum is fitted to logarithms of times with Gauss-Newton steps, each a non-negative least-squares problem.
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
"""Largest number of parameters in products: the ones with the widest ranges."""
FACTORS = ((0.0, 0.0), (0.0, 1.0), (0.5, 0.0), (1.0, 0.0))
"""Exponents of a parameter and of its logarithm in a product."""
STEEP_OFFSET = 0.05
"""Offset of the logarithm of a parameter of a grid; the offset of other parameters is 1. With offset 1, the time
1 + c·log(x) has positive coefficients only for c ≤ 1. Steeper logarithms, for example over nodes if one node needs no
network, would be approximated by powers, which grow faster outside of the data. The offset is above 0, so that no
product is 0 at the smallest value (docs/design/tensor.md).
"""
SLOPE_STEP = 0.01
"""Difference of logarithms over which a slope is computed."""
OUTER_WEIGHT, LEAST_PLACE = 2.0, 0.02
"""The weight of a row is a power of its mean position between the smallest (0) and the largest value (1) of the
parameters. Values: the exponent, and a number that is added to positions, so that no weight is 0."""
STEPS, LEAST_RATIO = 3, 0.2
"""Number of Gauss-Newton steps, and the least ratio of the target of a step to the time."""


@dataclass(frozen=True)
class Powers:
    """The sum over products (K) of coefficients · Π (x/low)^exponent · (offset + log(x/low))^logarithm, by column (P).

    capped: whether the growth beyond the range of a column is limited to the growth at its end.
    """

    columns: tuple[int, ...] = ()
    lows: FloatArray = field(default_factory=lambda: np.empty(0))
    exponents: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    logarithms: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    offsets: FloatArray = field(default_factory=lambda: np.empty(0))
    capped: tuple[bool, ...] = ()

    def logs(self, x: FloatArray) -> FloatArray:
        """Return the logarithm of the sum for each row, shape (N,); below the range, logarithms are kept above 0."""
        places = self._places(x)
        exponents = (
            places @ self.exponents.T
            + np.log(self.offsets + np.maximum(places, -self.offsets / 2.0)) @ self.logarithms.T
        )
        most = exponents.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(exponents - most) @ self.coefficients) + most[:, 0])

    def step(self, inside: FloatArray, x: FloatArray) -> FloatArray:
        """Return the change of the logarithm from rows inside of the range to others, (N,).

        For larger values of a capped column, it is at most the slope at the end of the range times the distance. A sum
        of powers has an increasing slope in logarithms, which few values do not determine.
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
    """Return the positive columns for the sum: wanted ones first, then the ones with the widest ranges."""
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
    """Return a sum proportional to the times of rows, fitted to their logarithms with more weight on large values.

    steep: columns over which times can grow much faster than 1 + log(x/low). capped: see `Powers`.
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
    center = float(np.median(logs))  # times of 1e-300 s are possible
    target = logs - center
    found, weights = target.copy(), outer
    coefficients = np.empty(0)
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = terms * (weights * np.exp(-found))[:, None]
            size = np.linalg.norm(scaled, axis=0)
        if not (np.isfinite(size) & (size > 0.0)).all():
            return Powers()  # values or times over hundreds of orders of magnitude
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
