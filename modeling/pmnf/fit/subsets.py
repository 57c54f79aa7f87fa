# SPDX-License-Identifier: Apache-2.0
"""Least squares over all small subsets of a few columns, in closed form from the Gram matrix of each call path.

The results only rank the subsets, because normal equations lose half of the digits. Selected subsets are fitted again
(fitter.fit). "Explained squares" are the part of Σ (weights·values)² that a fit removes.

Shapes: N call paths, K columns, C points, S subsets of k columns. Column 0 is usually the constant.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import RIDGE

Subsets = NDArray[np.int64]
# One array (N, S) per coefficient, and explained squares (N, S).
Solution = tuple[list[FloatArray], FloatArray]
# Symmetric systems: diagonals, entries left of the diagonal by row, right-hand sides. Each entry is an array (N, S).
_Systems = tuple[list[FloatArray], list[list[FloatArray]], list[FloatArray]]


def gram(columns: FloatArray, values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weighted Gram matrix (N, K, K), the products (N, K) with the values, and Σ (weights·values)² (N,).

    columns: (N, K, C); values, weights: (N, C). The products are relative to the largest value (`of_size_one`).
    """
    values, weights = of_size_one(values, weights)
    weighted = columns * weights[:, None, :]
    matrix = weighted @ weighted.transpose(0, 2, 1)
    right = (weighted @ (values * weights)[:, :, None])[:, :, 0]
    return matrix, right, ((weights * values) ** 2).sum(axis=1)


def of_size_one(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values (N, C) divided by their largest magnitude, and weights multiplied by it.

    Squares of these values do not overflow. Coefficients become relative to the largest magnitude, too; explained
    squares do not change.
    """
    top = np.abs(values).max(axis=1, keepdims=True)
    top = np.where(top > 0, top, 1.0)
    return values / top, weights * top


def solve(matrix: FloatArray, right: FloatArray, subsets: Subsets) -> tuple[FloatArray, FloatArray]:
    """Return coefficients (N, S, k) and explained squares (N, S) for `subsets` (S, k) of the columns.

    matrix, right: of `gram`.
    """
    return _stacked(cholesky(*_systems(matrix, right, subsets[None])))


def solve_both(matrix: FloatArray, right: FloatArray, subsets: Subsets) -> tuple[Solution, Solution]:
    """Solve for subsets (1, S, k) or (N, S, k) of the columns, with column 0 (the constant) in addition, and without.

    matrix, right: of `gram`. The coefficient of the constant is the first one.
    """
    with_last = np.concatenate([subsets, np.zeros((*subsets.shape[:2], 1), dtype=np.int64)], axis=2)
    return cholesky_both(*_systems(matrix, right, with_last))


def _systems(matrix: FloatArray, right: FloatArray, subsets: Subsets) -> _Systems:
    size, width = matrix.shape[1], subsets.shape[2]
    flat = matrix.reshape(len(matrix), size * size)

    def entry(table: FloatArray, places: Subsets) -> FloatArray:
        return table.take(places[0], axis=1) if len(places) == 1 else np.take_along_axis(table, places, axis=1)

    def product(i: int, j: int) -> FloatArray:
        return entry(flat, subsets[:, :, i] * size + subsets[:, :, j])

    return (
        [product(i, i) for i in range(width)],
        [[product(i, j) for j in range(i)] for i in range(width)],
        [entry(right, subsets[:, :, i]) for i in range(width)],
    )


def solve_shared(
    table: FloatArray, subsets: Subsets, values: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the same as `solve` for columns (K, C) in `table` that are common to all call paths.

    Sums over points are then matrix products. subsets: (S, k); values, weights: (N, C).
    """
    values, weights = of_size_one(values, weights)
    squares = weights**2
    width = subsets.shape[1]
    columns = [table[subsets[:, i]] for i in range(width)]
    right = (squares * values) @ table.T
    found = cholesky(
        [(squares @ (table**2).T)[:, subsets[:, i]] for i in range(width)],
        [[squares @ (columns[i] * columns[j]).T for j in range(i)] for i in range(width)],
        [right[:, subsets[:, i]] for i in range(width)],
    )
    return _stacked(found)


def _stacked(solution: Solution) -> tuple[FloatArray, FloatArray]:
    return np.stack(np.broadcast_arrays(*solution[0]), axis=2), solution[1]


def cholesky(diagonal: list[FloatArray], cross: list[list[FloatArray]], right: list[FloatArray]) -> Solution:
    """Solve many small symmetric systems at once. Each entry of the matrices is an array (N, S) or (N, 1)."""
    norm, lower, forward = _forward(diagonal, cross, right)
    return _backward(norm, lower, forward), _squares(forward)


def cholesky_both(
    diagonal: list[FloatArray], cross: list[list[FloatArray]], right: list[FloatArray]
) -> tuple[Solution, Solution]:
    """Solve many small systems with their last column, a constant, and without it, by one factorization.

    In the solution with the constant, its coefficient is the first one.
    """
    norm, lower, forward = _forward(diagonal, cross, right)
    *others, constant = _backward(norm, lower, forward)
    explained = _squares(forward[:-1])
    without = _backward(norm[:-1], lower[:-1], forward[:-1])
    return ([constant, *others], explained + forward[-1] * forward[-1]), (without, explained)


def _forward(
    diagonal: list[FloatArray], cross: list[list[FloatArray]], right: list[FloatArray]
) -> tuple[list[FloatArray], list[list[FloatArray]], list[FloatArray]]:
    """Return the Cholesky factorization of systems scaled to a diagonal of 1, and its forward substitution.

    Three lists: the scale factors; the rows of the lower triangle, with the inverse of each entry of its diagonal; the
    solution of lower·forward = right. The first inverse is 1 and not used.
    """
    norm = [1.0 / np.sqrt(np.maximum(entry, 1e-300)) for entry in diagonal]
    lower: list[list[FloatArray]] = []
    forward: list[FloatArray] = []
    for i in range(len(diagonal)):
        line: list[FloatArray] = []
        pivot: FloatArray | None = None
        value = right[i] * norm[i]
        for j in range(i):
            entry = cross[i][j] * norm[i] * norm[j]
            for k in range(j):
                entry = entry - line[k] * lower[j][k]
            if j:
                entry = entry * lower[j][j]
            line.append(entry)
            pivot = entry * entry if pivot is None else pivot + entry * entry
            value = value - entry * forward[j]
        inverse = np.ones((1, 1)) if pivot is None else 1.0 / np.sqrt(np.maximum(1.0 + RIDGE - pivot, RIDGE))
        line.append(inverse)
        lower.append(line)
        forward.append(value if pivot is None else value * inverse)
    return norm, lower, forward


def _backward(norm: list[FloatArray], lower: list[list[FloatArray]], forward: list[FloatArray]) -> list[FloatArray]:
    """Return the coefficients by back substitution of the result of `_forward`."""
    solution = list(forward)
    for i in range(len(forward) - 1, -1, -1):
        value = forward[i]
        for k in range(i + 1, len(forward)):
            value = value - lower[k][i] * solution[k]
        solution[i] = value * lower[i][i] if i else value
    return [part * size for part, size in zip(solution, norm, strict=True)]


def _squares(parts: list[FloatArray]) -> FloatArray:
    total = np.zeros(np.broadcast_shapes(*(part.shape for part in parts)))
    for part in parts:
        total = total + part * part
    return total


def extended(pairs: Subsets, number: int) -> Subsets:
    """Return all sets (P · number, 3) of one of `pairs` (P, 2) and a third column from 1 to `number`.

    In some sets the third column is one of the pair; the caller must reject them.
    """
    third = np.tile(np.arange(1, number + 1), len(pairs))[:, None]
    return np.concatenate([np.repeat(pairs, number, axis=0), third], axis=1)


def all_subsets(number: int, width: int) -> Subsets:
    """Return the subsets of `width` of the columns 1 to `number` (0 is the constant)."""
    return np.array(list(combinations(range(1, number + 1), width)), dtype=np.int64).reshape(-1, width)
