# SPDX-License-Identifier: Apache-2.0
"""Rows with large uncertainty: unmeasured categories, and values without a logarithm."""

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
    """Return the half width of the interval of log time due to unmeasured categories, shape (N,), for rows x (N, d).

    Measured and unmeasured categories are assumed to be samples of one normal distribution. With K measured categories,
    an unmeasured one is within t(K - 1) · s · √(1 + 1/K) of their mean. s² = Σ (log_k - logs)² / (K - 1), where log_k
    is the prediction of the row with measured category k, and logs (N,) its own prediction. The result
    is 0 if all categories were measured. Several unmeasured categories are independent: their squares are summed.
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
    """Return which numbers of the rows (N, d) are at most 0 in a column whose measured values are all positive.

    Such a column has a logarithmic scale, in which these numbers do not exist. low: smallest measured values (d,).
    """
    result = (x <= 0.0) & (low > 0.0)
    result[:, list(categorical)] = False
    return np.asarray(result)


def differs_from_constant(x: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Return which rows (N, d) differ from the only measured value of a parameter (low = high, (d,)), shape (N,)."""
    return np.asarray(((low == high) & (x != low)).any(axis=1))
