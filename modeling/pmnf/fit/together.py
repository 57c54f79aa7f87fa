# SPDX-License-Identifier: Apache-2.0
"""Least squares for noisy values: fit hypotheses with different numbers of products at once.

As in fitter.fit, the modified Gram-Schmidt process makes columns orthogonal, but only once, which is enough for noisy
values. Missing products are columns of zeros. The constant is the last column, so that it can be left out if its
coefficient would be negative.

Shapes: M hypotheses (one per call path), K products, C points, m parameters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import BATCH_NUMBERS, DEPENDENT, NO_PART
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification, Tables

_Flags = NDArray[np.bool_]


def fit_together(
    tables: Tables,
    specification: Specification,
    values: FloatArray,
    weights: FloatArray,
    constant: _Flags,
    nonnegative: bool,
) -> Fitted:
    """Fit M hypotheses, each to the values (C,) of one call path, minimizing Σ (weights·(values - model))².

    specification: (M, K, m); a product of which all entries are -1 is missing. values, weights: (M, C). constant: (M,)
    which hypotheses have a constant. nonnegative: a constant that would be negative is left out, and hypotheses with
    another coefficient that is not positive are rejected (errors inf). Their smaller variants are candidates, too, so
    the best nonnegative hypothesis remains. The result has the shapes of N = M, H = 1. Its errors are defined in
    fitter.Fits, but `worst` is the root mean square residual instead of the largest residual.
    """
    number, width = specification.shape[:2]
    points = values.shape[1]
    used = np.asarray((specification >= 0).any(axis=2), dtype=bool)
    widths = (used * np.arange(1, 1 + width)).max(axis=1, initial=0)
    order = np.argsort(widths, kind="stable")  # batches of similar widths contain few columns of zeros
    coefficients, errors = np.zeros((number, 1 + width)), np.empty((2, number))
    step = max(1, BATCH_NUMBERS // ((2 + width) * points))
    for start in range(0, number, step):
        part = order[start : start + step]
        most = int(widths[part[-1]])
        columns = np.empty((2 + most, len(part), points))
        columns[:most] = tables.design(specification[part, :most].transpose(1, 0, 2))
        columns[:most] *= used[part, :most].T[:, :, None]
        columns[most] = constant[part, None]
        columns[most + 1] = values[part]
        columns *= weights[part]
        present = np.concatenate([used[part, :most].T, constant[None, part]])
        coefficients[part, : 1 + most], errors[:, part] = _solve(columns, present, nonnegative)
    if nonnegative:
        least = NO_PART * np.abs(values).max(axis=1, keepdims=True)
        small = (coefficients[:, 1:] <= least) & used
        errors[:, small.any(axis=1)] = np.inf
    residual, left_out = errors[:, :, None]
    return Fitted(specification[:, None], coefficients[:, None], residual, left_out, residual)


def _solve(columns: FloatArray, present: _Flags, nonnegative: bool) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (M, 1 + K), the constant first, and errors (2, M): residual and left_out of fitter.Fits.

    For linearly dependent columns, coefficients are NaN and errors inf. columns: (K + 2, M, C), weighted, in the order
    products, constant, values; they are overwritten. present: (K + 1, M), which products and constants are used.
    """
    last, points = len(present) - 1, columns.shape[2]
    least = DEPENDENT * np.sqrt(np.einsum("jmc,jmc->jm", columns[:-1], columns[:-1]))
    # [k, j, hypothesis]: the part of column j along the direction of column k, for j >= k
    triangle = np.empty((last + 2, last + 2, columns.shape[1]))
    dependent = np.zeros(columns.shape[1], dtype=bool)
    for k in range(last + 1):
        column = columns[k]
        size = np.sqrt(np.einsum("mc,mc->m", column, column))
        nothing = ~(size > least[k])
        if bool(nothing.any()):
            dependent |= nothing & present[k]
            column[nothing] = 0.0
            size[nothing] = 1.0
        column /= size[:, None]
        share = np.einsum("jmc,mc->jm", columns[k + 1 :], column)
        if k == last and nonnegative:
            negative = share[0] < 0.0
            column[negative] = 0.0
            share[0, negative] = 0.0
        triangle[k, k], triangle[k, k + 1 :] = size, share
        columns[k + 1 :] -= share[:, :, None] * column
    leverage = np.einsum("jmc,jmc->mc", columns[: last + 1], columns[: last + 1])
    found = np.empty((columns.shape[1], last + 1))
    for k in range(last, -1, -1):
        value = triangle[k, last + 1]
        for j in range(k + 1, last + 1):
            value = value - triangle[k, j] * found[:, (1 + j) % (last + 1)]
        found[:, (1 + k) % (last + 1)] = value / triangle[k, k]
    found[dependent] = np.nan
    rest = columns[last + 1]
    remaining = 1.0 - leverage
    open_points = remaining > 1e-9
    left = np.where(open_points, rest / np.where(open_points, remaining, 1.0), np.inf)
    with np.errstate(over="ignore"):
        errors = np.sqrt(np.stack([np.einsum("mc,mc->m", own, own) for own in (rest, left)]) / points)
    errors[:, dependent] = np.inf
    return found, errors
