# SPDX-License-Identifier: Apache-2.0
"""What repetitions say of counts that depend on data: how far their means are from the function of the parameters.

Such means deviate by chance, as much as repetitions do that had other data, and by rounding: what is a whole number, or
a multiple of another one, is on average off by what a uniform distribution is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from ...experiment import FloatArray
from ..calibration import LEAST_EXPECTED_DEVIATION, LEAST_WORK, REPETITIONS_KNOW, VARIANCE_OF_ROUNDING
from ..data.noise import Repetitions


@dataclass(frozen=True, eq=False)
class Means:
    """Means of the counts of N call paths at C configurations.

    deviation: (N,) their relative standard deviation where they are largest, known as from `freedom` (N,) observations
    of it, none where repetitions do not differ. precision: (N, C) how much more precisely they are known than by that.
    """

    deviation: FloatArray
    freedom: FloatArray
    precision: FloatArray


def means(values: FloatArray, observations: FloatArray, repetitions: Repetitions) -> Means:
    """Return what `repetitions` say of their means `values` (N, C), of which so many (N,) are independent."""
    size = np.abs(values)
    top = np.maximum(size.max(axis=1, keepdims=True), np.finfo(float).tiny)
    size = np.maximum(size, LEAST_WORK * top)
    falls = (size / top) ** repetitions.falls[:, None]  # the relative deviation of the largest over that of each
    by_chance = repetitions.uncertainty / np.sqrt((falls**-2.0).mean(axis=1))
    by_chance = np.maximum(by_chance, LEAST_EXPECTED_DEVIATION)[:, None] ** 2
    rounding = VARIANCE_OF_ROUNDING * repetitions.unit[:, None] ** 2
    largest = by_chance + rounding / top**2
    precision = np.sqrt(largest / (by_chance / falls**2 + rounding / size**2))
    freedom = np.where(repetitions.differ, np.minimum(repetitions.freedom, REPETITIONS_KNOW * observations), 0.0)
    return Means(np.sqrt(largest[:, 0]), freedom, precision)


def student(
    squares: FloatArray, number: FloatArray | int, variance: FloatArray, certainty: FloatArray | float
) -> FloatArray:
    """Return -2 log of the density of so many errors with these mean squares, but for powers of π.

    Their variance is known as from `certainty` observations of it: Student's t distribution of several variables.
    """
    many, known = np.asarray(number, dtype=np.float64), np.asarray(certainty, dtype=np.float64)
    constant = gammaln(0.5 * (many + known)) - gammaln(0.5 * known) - 0.5 * many * np.log(known)
    result: FloatArray = many * np.log(variance) - 2.0 * constant
    return result + (many + known) * np.log1p(many * squares / (known * variance))
