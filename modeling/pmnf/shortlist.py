"""Short lists of hypotheses for noisy values, ranked by their errors in closed form before any precise fit.

Sums over points become matrix products over all call paths at once; what stays is a small Cholesky factorization per
hypothesis. Ranks are good while errors are well above the rounding of normal equations (1e-6), as noise is.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .library import forms
from .subsets import Solution, Subsets, cholesky, of_size_one


def sweep_errors(
    fixed: FloatArray, present: NDArray[np.bool_], atoms: FloatArray, values: FloatArray, weights: FloatArray
) -> tuple[Solution, Solution]:
    """Solve all hypotheses that differ in the atom of one parameter, with and without a constant.

    fixed: (N, K, C) products without the factor of the parameter; present: (K,) which of them have that factor;
    atoms: (A, C). Returns coefficients (N, A, K or K + 1) and explained squares (N, A) of both.
    """
    values, weights = of_size_one(values, weights)
    squares = weights**2
    powers = (None, atoms.T, (atoms**2).T)

    def total(vector: FloatArray, power: int) -> FloatArray:
        table = powers[power]
        result: FloatArray = vector.sum(axis=1, keepdims=True) if table is None else vector @ table
        return result

    width = fixed.shape[1]
    degree = [0, *present.astype(int).tolist()]
    columns = [squares, *(squares * fixed[:, k] for k in range(width))]
    plain = [np.ones_like(squares), *(fixed[:, k] for k in range(width))]
    diagonal = [total(columns[i] * plain[i], 2 * degree[i]) for i in range(width + 1)]
    cross = [[total(columns[i] * plain[j], degree[i] + degree[j]) for j in range(i)] for i in range(width + 1)]
    right = [total(columns[i] * values, degree[i]) for i in range(width + 1)]
    bare = [row[1:] for row in cross[1:]]
    return cholesky(diagonal, cross, right), cholesky(diagonal[1:], bare, right[1:])


@lru_cache(maxsize=64)
def combinations_of(parameters: int, depth: int, width: int) -> Subsets:
    """Return all forms with `width` products, each with all choices of `depth` atoms per parameter, (S, width).

    Numbers are those of `product_grid`, 0 is the constant.
    """
    base = depth + 1
    place = [base ** (parameters - 1 - parameter) for parameter in range(parameters)]
    found = []
    for form in forms(parameters):
        if len(form) != width:
            continue
        used = {parameter for block in form for parameter in block}
        choices = [range(1, base) if parameter in used else range(1) for parameter in range(parameters)]
        for ranks in product(*choices):
            found.append([sum(ranks[parameter] * place[parameter] for parameter in block) for block in form])
    return np.array(found, dtype=np.int64).reshape(-1, width)


@lru_cache(maxsize=64)
def product_grid(parameters: int, depth: int) -> NDArray[np.int64]:
    """Return the rank of the atom of each parameter in each product, -1 for none, (products, m); the first is empty."""
    return np.array(list(product(range(-1, depth), repeat=parameters)), dtype=np.int64)


def lowest(scores: FloatArray, number: int) -> NDArray[np.int64]:
    """Return the columns of the lowest scores of each row, in no order."""
    number = min(number, scores.shape[1])
    if number == scores.shape[1]:
        return np.broadcast_to(np.arange(number), scores.shape)
    best: NDArray[np.int64] = np.argpartition(scores, number - 1, axis=1)[:, :number]
    return best
