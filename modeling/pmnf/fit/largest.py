# SPDX-License-Identifier: Apache-2.0
"""Fit with larger weights at the largest parameter values, for functions that are not in the library.

If the residuals of a form are larger than the noise, the form has an error that changes slowly from point to point.
Points near the target are then more informative (Cleveland and Devlin, Locally Weighted Regression, Journal of the
American Statistical Association 83, 1988). Targets are usually beyond the largest values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...experiment import FloatArray
from ..calibration import LARGEST_FIRST
from ..hypotheses.pool import Pool, of_each_form
from ..hypotheses.tables import Tables
from .fitter import fit, with_constant


def nearness(points: FloatArray) -> FloatArray:
    """Return factors (C,) for the weights of points (C, m): 1 where all m parameters have their largest values.

    Elsewhere the factor is exp(-LARGEST_FIRST·d). d is the sum over the parameters of the distance from the largest
    value, in logarithms and relative to the range of the parameter. Parameters with a value of 0 use no logarithm.
    """
    positive = (points > 0).all(axis=0)
    scaled = np.where(positive, np.log(np.where(positive, points, 1.0)), points)
    distance = scaled.max(axis=0) - scaled
    distance /= np.maximum(distance.max(axis=0), 1e-300)
    factors: FloatArray = np.exp(-LARGEST_FIRST * distance.sum(axis=1))
    return factors


def refitted(pool: Pool, tables: Tables, values: FloatArray, weights: FloatArray) -> Pool:
    """Return the pool with coefficients fitted again, to `values` (N, C) with `weights` (N, C).

    No coefficient changes its sign (`_towards`). Errors and scores are not computed again, because the previous fits
    selected the hypotheses.
    """
    coefficients = pool.coefficients.copy()
    for width, constant, path, rank in of_each_form(pool):
        columns = tables.design(pool.specification[path, rank, :width])[:, None]
        columns = with_constant(columns) if constant else columns
        places = np.arange(1 - constant, 1 + width)
        before = coefficients[path[:, None], rank[:, None], places]
        after = fit(columns, values[path], weights[path]).coefficients[:, 0]
        coefficients[path[:, None], rank[:, None], places] = _towards(before, after)
    return replace(pool, coefficients=coefficients)


def _towards(before: FloatArray, after: FloatArray) -> FloatArray:
    """Move coefficients (M, K) from `before` straight towards `after`, until the first of them would change its sign.

    Hypotheses whose `after` is not finite keep `before`.
    """
    after = np.where(np.isfinite(after).all(axis=1, keepdims=True), after, before)
    changes = before * after < 0
    step = np.where(changes, before / np.where(changes, before - after, 1.0), 1.0).min(axis=1, keepdims=True)
    result: FloatArray = before + step * (after - before)
    return result
