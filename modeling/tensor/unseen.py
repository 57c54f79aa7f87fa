# SPDX-License-Identifier: Apache-2.0
"""Rows of which the measurements say less than of any other: unseen categories, and places without a logarithm."""

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
    """Return by how much a category that was not measured may move the logarithm of each row x (N, d), (N,).

    Measured and unseen categories count as draws of one normal distribution. With K measured ones the next is within
    t(K - 1) · s · √(1 + 1/K) of their mean, s² being the mean square of what `predicted` says of the row with each
    measured category, less `logs` (N,), which it says of the row itself, over K - 1. 0 where all categories were
    measured. Several unseen ones are independent: their squares add up.
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
    """Return which numbers of the rows (N, d) are 0 or below although all measured ones of the column are above it.

    Times are modelled along the logarithm there, which has no such place. low: least measured values (d,).
    """
    result = (x <= 0.0) & (low > 0.0)
    result[:, list(categorical)] = False
    return np.asarray(result)


def unlike_constant(x: FloatArray, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Return which rows (N, d) have another value of a parameter that had one only, low = high (d,) there, (N,)."""
    return np.asarray(((low == high) & (x != low)).any(axis=1))
