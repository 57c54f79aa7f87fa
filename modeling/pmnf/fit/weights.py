# SPDX-License-Identifier: Apache-2.0
"""Weights of values in least squares that minimize relative errors, because noise is proportional to the value.

Shapes: N call paths, C configurations.
"""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import WEIGHT_RATIO


def relative_weights(values: FloatArray) -> FloatArray:
    """Return weights 1/|value| for values (N, C).

    A value of 0 has the weight of the smallest other magnitude. No weight exceeds 1e6/largest magnitude.
    """
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    floor = np.where(top > 0, 1e-6 * top, 1.0)
    least = np.where(size > 0, size, np.inf).min(axis=1, keepdims=True)
    size = np.where(size > 0, size, np.where(np.isfinite(least), least, 1.0))
    weights: FloatArray = 1.0 / np.maximum(size, floor)
    return weights


def model_weights(values: FloatArray, fitted: FloatArray) -> FloatArray:
    """Return weights 1/|fitted| for values (N, C), where `fitted` (N, C) are the values of a first model.

    With weights 1/value, low values count too much: for noise of the relative standard deviation s, models are too low
    by the factor 1 - 2·s² on average. Weights from a first fit have no such bias (iteratively reweighted least squares;
    McCullagh and Nelder, Generalized Linear Models, 1989, section 8.4). A weight differs from that of relative_weights
    by at most the factor WEIGHT_RATIO.
    """
    of_values = relative_weights(values)
    weights: FloatArray = np.clip(
        1.0 / np.maximum(np.abs(fitted), 1e-300), of_values / WEIGHT_RATIO, of_values * WEIGHT_RATIO
    )
    return weights


def count_weights(
    counts: FloatArray, single: FloatArray | None = None, between: FloatArray | None = None
) -> FloatArray:
    """Return factors (N, C) for the weights of means of `counts` (N, C) repetitions; the mean of their squares is 1.

    A factor is proportional to 1/√(single/counts + between). single: (N,) variance of one repetition, 1 if not given.
    between: (N,) variance between configurations, which more repetitions do not reduce, 0 if not given (random effects;
    DerSimonian and Laird, Meta-analysis in clinical trials, Controlled Clinical Trials 7, 1986).
    """
    variance = (1.0 if single is None else single[:, None]) / np.maximum(counts, 1.0)
    if between is not None:
        variance = variance + between[:, None]
    least = np.where(variance > 0.0, variance, np.inf).min(axis=1, keepdims=True)
    precision = np.where(np.isfinite(least), least, 1.0) / np.where(variance > 0.0, variance, 1.0)
    precision = np.where(np.isfinite(least), precision, 1.0)
    result: FloatArray = np.sqrt(precision / precision.mean(axis=1, keepdims=True))
    return result
