# SPDX-License-Identifier: Apache-2.0
"""Positive factors for times: the loss MLogQ2 with an interior-point Newton method, and its extrapolation.

Source: Hutter and Solomonik, "Application performance modeling via tensor completion" (SC '23), sections 4.2.2 and 5.3.
MLogQ2 is the mean of ln²(predicted / measured). The method minimizes it with a logarithmic barrier, which keeps every
entry of the factors positive. Newton's method fits the entries at each knot of a factor, and the weight of the barrier
decreases geometrically to a small part of the ridge. Outside of the grid, a factor is replaced by its best rank-one
approximation, a column vector times a row vector. The logarithm of the column vector, which is positive, is continued
by a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from .modes import IntArray, Mode

BARRIER, LOWERING = 1e-1, 0.2
"""First weight of the barrier, and factor by which it decreases."""
NEWTON_STEPS, SWEEPS_PER_BARRIER = 3, 4
LEAST_BARRIER = 1e-7
TO_BOUNDARY = 0.9
"""Largest Newton step, as a share of the distance at which an entry would become 0."""
MOST_RANK = 16
TAIL = 4
"""Number of outermost knots to which the line at each end of a factor is fitted."""


@dataclass(frozen=True)
class PositiveFactors:
    """Positive factors (knots, R) by mode; the sum over R of their products is the time divided by exp(center)."""

    factors: tuple[FloatArray, ...]
    center: float

    def logs(self, modes: Sequence[Mode], x: FloatArray) -> FloatArray:
        """Return ln(predicted time) of rows x (N, d), shape (N,), also outside of the grid."""
        result: FloatArray | None = None
        for mode, factor in zip(modes, self.factors, strict=True):
            first, weights = mode.basis(x)
            following = np.minimum(first + 1, mode.size - 1)
            values = factor[first] * weights[:, :1] + factor[following] * weights[:, 1:]
            if mode.kind == "categorical":
                values[weights[:, 0] == 0.0] = factor.mean(axis=0)
            elif mode.size > 2:
                z = mode.scaled(x)
                outside = (z < mode.knots[0]) | (z > mode.knots[-1])
                if outside.any():
                    values[outside] = _continued(mode, factor, z[outside])
            result = values if result is None else result * values
        assert result is not None
        return np.asarray(np.log(result.sum(axis=1)) + self.center)


def fit_positive(
    modes: Sequence[Mode], x: FloatArray, logs: FloatArray, rank: int, ridge: float, random: np.random.Generator
) -> PositiveFactors:
    """Return positive factors of at most MOST_RANK components that minimize MLogQ2.

    The measured times are geometric means of the rows nearest to the same knots. logs: (N,), ln(time) of rows x (N, d).
    """
    rank = min(rank, MOST_RANK)
    center = float(np.median(logs))
    cells, target, counts = _cells(modes, x, logs - center)
    level = len(modes) * [1.0]
    factors = [
        np.exp(0.1 * random.standard_normal((mode.size, rank))) * (1.0 / rank) ** (one / len(modes))
        for mode, one in zip(modes, level, strict=True)
    ]
    barrier = BARRIER
    while barrier > max(ridge * 1e-3, LEAST_BARRIER):
        for _ in range(SWEEPS_PER_BARRIER):
            for number in range(len(modes)):
                others = np.ones((len(cells), rank))
                for other, factor in enumerate(factors):
                    if other != number:
                        others *= factor[cells[:, other]]
                factors[number] = _newton(factors[number], cells[:, number], others, target, counts, ridge, barrier)
        barrier *= LOWERING
    return PositiveFactors(tuple(factors), center)


def _cells(modes: Sequence[Mode], x: FloatArray, logs: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Group rows by their nearest knots.

    Returns the knots of each of C groups (C, modes), the means of `logs` (C,), and the numbers of rows (C,).
    """
    places = []
    for mode in modes:
        first, weights = mode.basis(x)
        places.append(np.minimum(first + (weights[:, 1] > 0.5), mode.size - 1))
    cells, at, counts = np.unique(np.column_stack(places), axis=0, return_inverse=True, return_counts=True)
    return cells, np.bincount(at.ravel(), weights=logs) / counts, counts.astype(np.float64)


def _newton(
    factor: FloatArray,
    at: IntArray,
    others: FloatArray,
    target: FloatArray,
    counts: FloatArray,
    ridge: float,
    barrier: float,
) -> FloatArray:
    """Return a factor (knots, R) after NEWTON_STEPS Newton steps, which keep its entries positive.

    at: (C,), the knot of each group of rows; others: (C, R), the products of the other factors; target: (C,), mean
    ln(time); counts: (C,), numbers of rows.
    """
    size, rank = factor.shape
    order = np.argsort(at, kind="stable")
    bounds = np.searchsorted(at[order], np.arange(size + 1))
    others, target, counts, at = others[order], target[order], counts[order], at[order]
    share = len(counts) / size
    weight = counts / counts.mean()
    diagonal = np.arange(rank)
    for _ in range(NEWTON_STEPS):
        model = np.maximum((others * factor[at]).sum(axis=1), 1e-12)
        ratio = np.log(model) - target
        slope = weight * 2.0 * ratio / model
        # ln² is convex only if predicted/measured is below e; the limit 0.1 keeps the Hessian positive elsewhere
        curvature = np.sqrt(weight * 2.0 * np.maximum(1.0 - ratio, 0.1)) / model
        gradient = np.zeros((size, rank))
        hessian = np.zeros((size, rank, rank))
        for row in range(size):
            part = slice(bounds[row], bounds[row + 1])
            gradient[row] = slope[part] @ others[part]
            rows = others[part] * curvature[part, None]
            hessian[row] = rows.T @ rows
        gradient += 2.0 * ridge * share * factor - barrier * share / factor
        hessian[:, diagonal, diagonal] += 2.0 * ridge * share + barrier * share / factor**2
        move = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        reach = np.max(-move / factor, axis=1, keepdims=True)
        factor = factor + move * np.minimum(1.0, TO_BOUNDARY / np.maximum(reach, 1e-12))
    return factor


def _continued(mode: Mode, factor: FloatArray, z: FloatArray) -> FloatArray:
    """Return the rank-one approximation of a factor, continued to positions z (n,) outside of the knots, shape (n, R).

    The positions are in the scale of the mode. Each end is a line in the logarithm of the factor.
    """
    left, sizes, right = np.linalg.svd(factor, full_matrices=False)
    column, row = np.abs(left[:, 0]), np.abs(right[0]) * sizes[0]
    logs = np.log(np.maximum(column, 1e-300))
    tail = min(TAIL, mode.size)
    result = np.empty(len(z))
    for end, part in ((z < mode.knots[0], slice(0, tail)), (z > mode.knots[-1], slice(mode.size - tail, mode.size))):
        slope = np.polyfit(mode.knots[part], logs[part], 1)[0]
        edge = 0 if part.start == 0 else mode.size - 1
        result[end] = logs[edge] + slope * (z[end] - mode.knots[edge])
    return np.asarray(np.exp(np.clip(result, -600.0, 600.0))[:, None] * row[None, :])
