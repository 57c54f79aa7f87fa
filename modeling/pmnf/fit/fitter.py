# SPDX-License-Identifier: Apache-2.0
"""Weighted least squares of many hypotheses for many call paths at once, with closed-form leave-one-out errors.

All computations are array operations over batches of call paths. The modified Gram-Schmidt process makes the columns
orthogonal. It is applied twice, which makes them orthogonal to all digits (Giraud, Langou and Rozložník, The loss of
orthogonality in the Gram-Schmidt orthogonalization process, Computers & Mathematics with Applications 50, 2005). Normal
equations would be too inaccurate for nearly parallel columns such as n^3 and n^(11/4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...experiment import FloatArray
from ..calibration import BATCH_NUMBERS, DEPENDENT
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification, Tables


@dataclass(frozen=True, eq=False)
class Fits:
    """Least-squares fits of H hypotheses with K columns each, a constant included, to N call paths.

    coefficients: (N, H, K); NaN for hypotheses whose columns are linearly dependent.
    residual:     (N, H) root mean square of the weighted residuals over the points; inf for dependent columns.
    left_out:     (N, H) root mean square of the weighted leave-one-out residuals; inf for dependent columns, or if
                  the other points do not determine the model at some point (leverage 1).
    worst:        (N, H) largest absolute weighted residual; inf for dependent columns.
    """

    coefficients: FloatArray
    residual: FloatArray
    left_out: FloatArray
    worst: FloatArray


def fit(columns: FloatArray, values: FloatArray, weights: FloatArray) -> Fits:
    """Fit values ≈ Σ_k coefficients[k]·columns[k] for each call path and hypothesis.

    Minimizes Σ (weights·(values - model))² over the C points. columns: (H, K, C) if equal for all call paths, or
    (N, H, K, C). values, weights: (N, C), finite.
    """
    paths, points = values.shape
    hypotheses, width = columns.shape[-3], columns.shape[-2]
    result = Fits(np.empty((paths, hypotheses, width)), *(np.empty((paths, hypotheses)) for _ in range(3)))
    step = max(1, BATCH_NUMBERS // max(1, hypotheses * points * width))
    for start in range(0, paths, step):
        part = slice(start, start + step)
        batch = columns[part] if columns.ndim == 4 else columns[None]
        found = _fit_batch(batch, values[part], weights[part])
        for target, found_part in zip(vars(result).values(), found, strict=True):
            target[part] = found_part
    return result


def _fit_batch(
    columns: FloatArray, values: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    width, points = columns.shape[-2:]
    shape = values.shape[0], columns.shape[1]
    rest = np.empty((*shape, points))
    rest[:] = (values * weights)[:, None, :]
    leverage = np.zeros_like(rest)
    basis: list[FloatArray] = []
    triangle = np.zeros((*shape, width, width))
    projection = np.zeros((*shape, width))
    # Each weighted column is divided by its largest magnitude (peak), because squares of its values may overflow.
    peaks = np.ones_like(projection)
    dependent = np.zeros(shape, dtype=bool)
    for k in range(width):
        column = columns[:, :, k, :] * weights[:, None, :]
        peak = np.abs(column).max(axis=2)
        peak[~(peak > 0)] = 1.0
        peaks[:, :, k] = peak
        column /= peak[:, :, None]
        size = before = np.sqrt(_products(column, column))
        for known, place in [*zip(basis, range(k), strict=True)] * 2:
            share = _products(known, column)
            triangle[:, :, place, k] += share
            column -= share[:, :, None] * known
        if k:
            size = np.sqrt(_products(column, column))
        bad = ~(size > DEPENDENT * before)
        some_bad = bool(bad.any())
        if some_bad:
            dependent |= bad
            size = np.where(bad, 1.0, size)
        column /= size[:, :, None]
        if some_bad:
            column[bad] = 0.0
        triangle[:, :, k, k] = size
        basis.append(column)
        leverage += column * column
        # Two passes: the first leaves rounding errors, which are the whole residual if a model fits exactly.
        for _ in range(2):
            part = _products(column, rest)
            projection[:, :, k] += part
            rest -= part[:, :, None] * column
    coefficients = _back_substitute(triangle, projection) / peaks
    coefficients[dependent] = np.nan
    residual = np.sqrt(_products(rest, rest) / points)
    residual[dependent] = np.inf
    worst = np.abs(rest).max(axis=2)
    worst[dependent] = np.inf
    remaining = 1.0 - leverage
    open_points = remaining > 1e-9
    if open_points.all():
        left = rest / remaining
    else:
        left = np.where(open_points, rest / np.where(open_points, remaining, 1.0), np.inf)
    with np.errstate(over="ignore"):
        left_out = np.sqrt(np.mean(left * left, axis=2))
    left_out[dependent] = np.inf
    return coefficients, residual, left_out, worst


def _products(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the scalar products (N, H) of vectors (N, H, C)."""
    result: FloatArray = np.einsum("nhc,nhc->nh", some, others)
    return result


def _back_substitute(triangle: FloatArray, projection: FloatArray) -> FloatArray:
    width = projection.shape[2]
    result = np.zeros_like(projection)
    for k in range(width - 1, -1, -1):
        right = projection[:, :, k]
        if k + 1 < width:
            right = right - _products(triangle[:, :, k, k + 1 :], result[:, :, k + 1 :])
        result[:, :, k] = right / triangle[:, :, k, k]
    return result


def with_constant(products: FloatArray) -> FloatArray:
    """Return columns (..., 1 + K, C): a constant, followed by K products (..., K, C)."""
    return np.concatenate([np.ones((*products.shape[:-2], 1, products.shape[-1])), products], axis=-2)


def fit_hypotheses(
    tables: Tables, specification: Specification, values: FloatArray, weights: FloatArray, constant: bool = True
) -> Fitted:
    """Fit hypotheses to `values` (N, C) with `weights` (N, C).

    A hypothesis is a sum of K products of terms, one term per parameter, plus a constant if `constant`. specification:
    (H, K, m) for m parameters, or (N, H, K, m) if each call path has separate hypotheses. The coefficients are
    (N, H, 1 + K); the first one is the constant, 0 without one.
    """
    products = tables.design(specification)
    result = fit(with_constant(products) if constant else products, values, weights)
    coefficients = result.coefficients
    if not constant:
        coefficients = np.concatenate([np.zeros((*coefficients.shape[:2], 1)), coefficients], axis=2)
    return Fitted(specification, coefficients, result.residual, result.left_out, result.worst)
