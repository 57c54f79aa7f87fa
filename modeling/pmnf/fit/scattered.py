# SPDX-License-Identifier: Apache-2.0
"""Rate functions g(x) of one parameter x at points that form no lines: regression with varying coefficients.

A model that contains x in one function g only is a + b·g(x) if the other parameters z are constant. In general it is
a(z) + b(z)·g(x) (Hastie and Tibshirani, Varying-Coefficient Models, Journal of the Royal Statistical Society B 55,
1993). Here a and b are a polynomial of low degree in the logarithms of z, times the power law of z that is nearest to
the values.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from ...experiment import FloatArray
from ..calibration import BATCH_NUMBERS, SCATTERED_DEGREE, SCATTERED_POINTS


def varying_errors(
    points: FloatArray, terms: FloatArray, values: FloatArray, parameter: int
) -> tuple[FloatArray, FloatArray]:
    """Return the relative squared errors of a(z) + b(z)·term, and of b(z)·term, two arrays (N, A).

    N call paths, A terms, C points, m parameters. points: (C, m); terms: (A, C), functions of `parameter` at the
    points; values: (N, C), whose magnitudes are used.
    """
    logs = np.log(np.maximum(points, 1e-300))
    top = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    size = np.maximum(np.abs(values) / top, 1e-9)
    design = np.concatenate([np.ones((len(points), 1)), logs], axis=1)
    slopes = np.log(size) @ np.linalg.pinv(design).T
    others = np.delete(np.arange(points.shape[1]), parameter)
    trend = slopes[:, 1 + others] @ logs[:, others].T - np.log(size)
    basis = _polynomials(logs[:, others])
    scaled = np.exp(np.maximum(trend - trend.max(axis=1, keepdims=True), -300.0))
    scaled /= np.sqrt((scaled**2).mean(axis=1, keepdims=True))
    free = basis[None] * scaled[:, None]  # (N, B, C), the terms of a(z) divided by the values
    target = np.ones((len(values), points.shape[0]))
    orthogonal, _ = np.linalg.qr(free.transpose(0, 2, 1))
    rest = target - (orthogonal @ (orthogonal.transpose(0, 2, 1) @ target[:, :, None]))[:, :, 0]
    with_free, pure = np.empty((len(values), len(terms))), np.empty((len(values), len(terms)))
    step = max(1, BATCH_NUMBERS // free.size)
    for start in range(0, len(terms), step):
        part = slice(start, start + step)
        columns = free * terms[part, None, None]
        pure[:, part] = _left(columns, target).T
        columns = columns - (columns @ orthogonal) @ orthogonal.transpose(0, 2, 1)
        with_free[:, part] = _left(columns, rest).T
    return with_free, pure


def _left(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Return the squared residuals (A, N) of a target (N, C) after a fit of columns (A, N, B, C)."""
    length = np.sqrt((columns**2).sum(axis=3, keepdims=True))
    columns = columns / np.maximum(length, 1e-300)
    normal = columns @ columns.swapaxes(2, 3)
    normal += 1e-12 * np.eye(normal.shape[2])
    right = columns @ target[:, :, None]
    solution = np.linalg.solve(normal, right)
    result: FloatArray = np.maximum((target**2).sum(axis=1) - (solution * right).sum(axis=(2, 3)), 0.0)
    return result


def _polynomials(logs: FloatArray) -> FloatArray:
    """Return the monomials (B, C) of polynomials in the logarithms (C, m - 1) of the other parameters.

    The degree is the highest one, up to SCATTERED_DEGREE, with SCATTERED_POINTS points per coefficient of a and b.
    """
    low, high = logs.min(axis=0), logs.max(axis=0)
    inside = (2.0 * logs - low - high) / np.where(high > low, high - low, 1.0)
    found = [np.ones(len(logs))]
    for degree in range(1, SCATTERED_DEGREE + 1):
        more = [
            np.prod(inside[:, list(chosen)], axis=1)
            for chosen in combinations_with_replacement(range(logs.shape[1]), degree)
        ]
        if SCATTERED_POINTS * 2 * (len(found) + len(more)) > len(logs):
            break
        found += more
    return np.stack(found)
