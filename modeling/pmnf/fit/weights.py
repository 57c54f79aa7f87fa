# SPDX-License-Identifier: Apache-2.0
"""Weights of values for relative errors, because noise is multiplicative."""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import WEIGHT_RATIO


def relative_weights(values: FloatArray) -> FloatArray:
    """Return weights 1/value, for multiplicative noise. A zero has the weight of the smallest value above it."""
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    floor = np.where(top > 0, 1e-6 * top, 1.0)
    least = np.where(size > 0, size, np.inf).min(axis=1, keepdims=True)
    size = np.where(size > 0, size, np.where(np.isfinite(least), least, 1.0))
    weights: FloatArray = 1.0 / np.maximum(size, floor)
    return weights


def model_weights(values: FloatArray, fitted: FloatArray) -> FloatArray:
    """Return weights 1/fitted for values (N, C), because weights from noisy values bias models downwards.

    For noise of relative deviation s, least squares with weights 1/value is too low by 2 s² on average. Weights from a
    first fit have no such bias (iteratively reweighted least squares; McCullagh and Nelder, Generalized Linear Models,
    1989, section 8.4). If the first fit is far from a value, the value limits the weight.
    """
    of_values = relative_weights(values)
    weights: FloatArray = np.clip(
        1.0 / np.maximum(np.abs(fitted), 1e-300), of_values / WEIGHT_RATIO, of_values * WEIGHT_RATIO
    )
    return weights


def count_weights(
    counts: FloatArray, single: FloatArray | None = None, between: FloatArray | None = None
) -> FloatArray:
    """Return factors of weights (N, C) for means of these numbers of repetitions (N, C); their mean square is one.

    single: (N,) variance of one repetition; between: (N,) variance between configurations, which repetitions do not
    reduce (random effects; DerSimonian and Laird, Controlled Clinical Trials 7, 1986), 0 if not given.
    """
    variance = (1.0 if single is None else single[:, None]) / np.maximum(counts, 1.0)
    if between is not None:
        variance = variance + between[:, None]
    least = np.where(variance > 0.0, variance, np.inf).min(axis=1, keepdims=True)
    precision = np.where(np.isfinite(least), least, 1.0) / np.where(variance > 0.0, variance, 1.0)
    precision = np.where(np.isfinite(least), precision, 1.0)
    result: FloatArray = np.sqrt(precision / precision.mean(axis=1, keepdims=True))
    return result
