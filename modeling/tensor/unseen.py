# SPDX-License-Identifier: Apache-2.0
"""Find rows at which little is known: unmeasured categories, values without a logarithm, other values of constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as t_distribution

from ..experiment import FloatArray
from .modes import Mode


def category_half_width(
    modes: Sequence[Mode],
    x: FloatArray,
    logs: FloatArray,
    predicted: Callable[[FloatArray], FloatArray],
    confidence: float,
) -> FloatArray:
    """Return the half width (N,) of the interval of ln(time) that unmeasured categories cause, for rows x (N, d).

    Measured and unmeasured categories are assumed to be samples of one normal distribution. With K measured categories,
    ln(time) of an unmeasured one is within t · s · √(1 + 1/K) of their mean, where t is the quantile of Student's
    distribution with K - 1 degrees of freedom. s² = Σ (log_k - logs)² / (K - 1), where log_k is the prediction for the
    row with category k instead, and logs (N,) the prediction for the row. The result is 0 if all categories of a row
    were measured. Several unmeasured categories in a row are independent: their squares are added.

    predicted: returns ln(time) for rows. confidence: probability of the interval.
    """
    squares = np.zeros(len(x))
    for mode in modes:
        if mode.kind != "categorical":
            continue
        column = mode.parameters[0]
        rows = np.flatnonzero(~np.isin(x[:, column], mode.knots))
        if not len(rows):
            continue
        part, apart = x[rows], np.zeros(len(rows))
        for value in mode.knots:
            part[:, column] = value
            apart += (predicted(part) - logs[rows]) ** 2
        freedom = mode.size - 1
        quantile = float(t_distribution.ppf((1.0 + confidence) / 2.0, freedom)) if freedom else np.inf
        squares[rows] += quantile**2 * apart / max(freedom, 1) * (1.0 + 1.0 / mode.size)
    return np.asarray(np.sqrt(squares))


def without_logarithm(x: FloatArray, low: FloatArray, categorical: Sequence[int]) -> NDArray[np.bool_]:
    """Return which numbers of rows x (N, d) are at most 0 in a numeric column whose measured values are positive.

    The scale of such a column is usually logarithmic, so these numbers have no position in it. low: (d,), smallest
    measured values.
    """
    result = (x <= 0.0) & (low > 0.0)
    result[:, list(categorical)] = False
    return np.asarray(result)


def differs_from_constant(x: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Return which rows x (N, d) have another value of a constant parameter, whose low and high (d,) are equal."""
    return np.asarray(((low == high) & (x != low)).any(axis=1))
