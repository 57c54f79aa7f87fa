# SPDX-License-Identifier: Apache-2.0
"""Use repetitions of counts that depend on data: how far their means are from a function of the parameters.

The means deviate by chance, as repetitions with other data do, and by rounding: whole numbers, or multiples of a
number, have the error of a uniform distribution.
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

    deviation: (N,) their relative standard deviation at the largest counts, estimated from `freedom` (N,) observations;
    freedom is 0 if repetitions do not differ. precision: (N, C) factor by which the precision of a mean exceeds this.
    """

    deviation: FloatArray
    freedom: FloatArray
    precision: FloatArray


def means(values: FloatArray, observations: FloatArray, repetitions: Repetitions) -> Means:
    """Return the summary of `repetitions` with means `values` (N, C), of which this number (N,) is independent."""
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
    """Return -2 log of the density of errors with these mean squares, up to powers of π.

    Their variance is estimated from `certainty` observations: multivariate Student's t distribution.
    """
    many, known = np.asarray(number, dtype=np.float64), np.asarray(certainty, dtype=np.float64)
    constant = gammaln(0.5 * (many + known)) - gammaln(0.5 * known) - 0.5 * many * np.log(known)
    result: FloatArray = many * np.log(variance) - 2.0 * constant
    return result + (many + known) * np.log1p(many * squares / (known * variance))
