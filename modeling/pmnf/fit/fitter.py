# SPDX-License-Identifier: Apache-2.0
"""Batched weighted least squares over hypotheses × call paths, with closed-form leave-one-out errors.

All computations are array operations without a loop over call paths. The modified Gram-Schmidt process makes columns
orthogonal, twice ("twice is enough", Giraud et al. 2005). Normal equations would be too inaccurate for columns such as
n^3 and n^(11/4).
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
    """Least-squares fits of H hypotheses to N call paths.

    coefficients: (N, H, K); NaN for hypotheses whose columns depend on each other.
    residual:     (N, H) root mean square of the weighted residuals over points; inf for dependent columns.
    left_out:     (N, H) root mean square of the weighted leave-one-out residuals; inf where not defined
                  (as many coefficients as points).
    worst:        (N, H) largest weighted residual.
    """

    coefficients: FloatArray
    residual: FloatArray
    left_out: FloatArray
    worst: FloatArray


def fit(columns: FloatArray, values: FloatArray, weights: FloatArray) -> Fits:
    """Fit values ≈ columns @ coefficients, minimizing Σ (weights·(values - model))².

    columns: (H, K, C), equal for all call paths, or (N, H, K, C). values, weights: (N, C).
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
    peaks = np.ones_like(projection)  # squares of columns times weights may overflow, but not their ratios
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
        # two passes here as well: the residual of exact data is pure rounding
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
    """Return columns (..., 1 + K, C) of a constant and of products (..., K, C)."""
    return np.concatenate([np.ones((*products.shape[:-2], 1, products.shape[-1])), products], axis=-2)


def fit_hypotheses(
    tables: Tables, specification: Specification, values: FloatArray, weights: FloatArray, constant: bool = True
) -> Fitted:
    """Fit products to `values` (N, C) with `weights`, and a `constant`; specification (H, K, m) or (N, H, K, m)."""
    products = tables.design(specification)
    result = fit(with_constant(products) if constant else products, values, weights)
    coefficients = result.coefficients
    if not constant:
        coefficients = np.concatenate([np.zeros((*coefficients.shape[:2], 1)), coefficients], axis=2)
    return Fitted(specification, coefficients, result.residual, result.left_out, result.worst)
