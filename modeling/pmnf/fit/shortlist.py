# SPDX-License-Identifier: Apache-2.0
"""Short lists of hypotheses for noisy values, ranked by closed-form errors before any precise fit.

Sums over points are matrix products over all call paths at once; each hypothesis only needs a small Cholesky
factorization. The order is reliable if relative errors are well above the rounding of normal equations (1e-6). Errors
due to noise are.

Shapes: N call paths, C points, A terms of one parameter, m parameters; L lines of c points each.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import RIDGE
from ..hypotheses.library import forms
from .subsets import Solution, Subsets, cholesky_both, of_size_one
from .weights import relative_weights


def sweep_errors(
    fixed: FloatArray, present: NDArray[np.bool_], terms: FloatArray, values: FloatArray, weights: FloatArray
) -> tuple[Solution, Solution]:
    """Solve A hypotheses of K products that differ in the term of one parameter only.

    fixed: (N, K, C), the products without the factor of the parameter; present: (K,) which products contain this
    factor; terms: (A, C), the choices of the factor; values, weights: (N, C). Returns the solutions with a constant
    (first coefficient) and without it: coefficients, K + 1 or K arrays (N, A), and explained squares (N, A).
    """
    values, weights = of_size_one(values, weights)
    squares = weights**2
    powers = (None, terms.T, (terms**2).T)

    def total(vector: FloatArray, power: int) -> FloatArray:
        table = powers[power]
        result: FloatArray = vector.sum(axis=1, keepdims=True) if table is None else vector @ table
        return result

    width = fixed.shape[1]
    degree = [*present.astype(int).tolist(), 0]
    columns = [*(squares * fixed[:, k] for k in range(width)), squares]
    plain = [fixed[:, k] for k in range(width)]
    diagonal = [*(total(columns[i] * plain[i], 2 * degree[i]) for i in range(width)), total(squares, 0)]
    cross = [[total(columns[i] * plain[j], degree[i] + degree[j]) for j in range(i)] for i in range(width + 1)]
    right = [total(columns[i] * values, degree[i]) for i in range(width + 1)]
    return cholesky_both(diagonal, cross, right)


def line_squares(terms: FloatArray, values: FloatArray, nonnegative: bool) -> tuple[FloatArray, FloatArray]:
    """Return the relative squared errors (N, A) of c0 + c1·term, and of c1·term, summed over L lines.

    terms: (A, c); values: (N, L, c). All lines have points at the same c values of the parameter, and each line has
    separate coefficients. The lines of a call path share the weights, which come from their mean profile, so the
    matrix (c, c) of products of values is sufficient. nonnegative: if c0 or c1 would be negative in a fit to the sum of
    the lines, the error is that of the other coefficient alone.
    """
    size = np.abs(values).mean(axis=2, keepdims=True)
    values = values / np.where(size > 0, size, 1.0)
    weights = relative_weights(np.abs(values).mean(axis=1))
    values = values * weights[:, None]
    constant = weights / np.sqrt((weights**2).sum(axis=1, keepdims=True))
    height = values @ constant[:, :, None]
    everything, level = values.sum(axis=1), height[:, :, 0].sum(axis=1, keepdims=True)
    # The explained square of a term is a sum over the products of its values at two points.
    products = (terms[:, :, None] * terms[:, None]).reshape(len(terms), -1).T

    def along(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        scatter = values.transpose(0, 2, 1) @ values * weights[:, :, None] * weights[:, None]
        return np.einsum("nlc,nlc->n", values, values)[:, None], scatter.reshape(len(values), -1) @ products

    whole = np.maximum((weights**2) @ (terms**2).T, 1e-300)
    share = (weights * constant) @ terms.T
    length = np.maximum(whole - share * share, RIDGE * whole)
    total, explained = along(values)
    pure = np.maximum(total - explained / whole, 1e-24 * total)
    flat, explained = along(values - height * constant[:, None])
    found = np.maximum(flat - explained / length, 1e-24 * total)
    if nonnegative:
        up = (weights * everything) @ terms.T - share * level
        # fit of the sum of all lines: c0 < 0 if level·length < up·share, c1 < 0 if up < 0
        found = np.where(level * length < up * share, pure, found)
        found = np.where(up < 0, np.maximum(flat, 1e-24 * total), found)
    return found, pure


def set_squares(
    terms: FloatArray, paired: NDArray[np.int64], values: FloatArray, weights: FloatArray
) -> list[tuple[FloatArray, NDArray[np.bool_]]]:
    """Return weighted squared errors over lines: (N, A) of c0 + c1·term, and (N, pairs) of c0 + c1·a + c2·b.

    terms: (A, c); values, weights: (N, L, c); paired: the terms that are combined, in all pairs a, b. As in
    line_squares, each line has separate coefficients, and the lines of a call path share a profile of weights; here a
    factor per line adapts the profile to the weights of the line. With each array of errors comes a mask: where c1 or
    c2 is negative in a fit to the sum of all lines.
    """
    common, values = _profile(values, weights)
    constant = common / np.sqrt((common**2).sum(axis=1, keepdims=True))

    def without_constant(rows: FloatArray) -> FloatArray:
        result: FloatArray = rows - (rows @ constant[:, :, None]) * constant[:, None]
        return result

    values = without_constant(values)
    columns = without_constant(terms * common[:, None])
    length = np.sqrt(np.einsum("nac,nac->na", columns, columns))
    columns /= np.maximum(length, 1e-300)[:, :, None]
    projected = columns @ values.transpose(0, 2, 1)
    total = (values**2).sum(axis=(1, 2))[:, None]
    sums = projected.sum(axis=2)
    single = np.einsum("nal,nal->na", projected, projected)
    first, second = np.triu_indices(paired.size, 1)
    flat = first * paired.size + second
    columns, projected = columns[:, paired], projected[:, paired]
    both = (columns @ columns.transpose(0, 2, 1)).reshape(len(values), -1).take(flat, axis=1)
    mixed = (projected @ projected.transpose(0, 2, 1)).reshape(len(values), -1).take(flat, axis=1)
    explained = single.take(paired[first], axis=1) + single.take(paired[second], axis=1) - 2.0 * both * mixed
    explained /= np.maximum(1.0 - both * both, RIDGE)
    one, other = sums.take(paired[first], axis=1), sums.take(paired[second], axis=1)
    return [
        (np.maximum(total - single, 0.0), sums < 0),
        (np.maximum(total - explained, 0.0), (one < other * both) | (other < one * both)),
    ]


def pure_squares(terms: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted squared errors (N, A) of c·term without a constant; arguments as in set_squares."""
    common, values = _profile(values, weights)
    columns = terms * common[:, None]
    columns /= np.maximum(np.sqrt(np.einsum("nac,nac->na", columns, columns)), 1e-300)[:, :, None]
    projected = columns @ values.transpose(0, 2, 1)
    total = (values**2).sum(axis=(1, 2))[:, None]
    squares: FloatArray = total - np.einsum("nal,nal->na", projected, projected)
    return np.maximum(squares, 0.0)


def _profile(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weights (N, c) that the lines of a call path share, and the values (N, L, c) times these weights.

    The values of each line are divided by its mean 1/weight, so that all lines have the same size.
    """
    scale = (1.0 / weights).mean(axis=2, keepdims=True)
    common = 1.0 / (1.0 / weights / scale).mean(axis=1)
    return common, values / scale * common[:, None]


def pair_squares(
    terms: FloatArray, values: FloatArray, weights: FloatArray, pairs: NDArray[np.int64], constant: bool
) -> tuple[FloatArray, list[NDArray[np.bool_]]]:
    """Return the weighted squared errors (N, P) of sums of two terms, with a constant if `constant`.

    terms: (N, A, C) and values: (N, C), both already multiplied by the weights (N, C); pairs: (2, P), numbers of the
    terms. Also returns one mask (N, P) per coefficient, that of the constant first: where it is not negative.
    """
    flat = weights / np.sqrt((weights**2).sum(axis=1, keepdims=True))
    height, along = (values * flat).sum(axis=1, keepdims=True), (terms @ flat[:, :, None])[:, :, 0]
    before = np.sqrt(np.einsum("nac,nac->na", terms, terms))
    if constant:
        terms = terms - along[:, :, None] * flat[:, None]
        values = values - height * flat
    size = np.maximum(np.sqrt(np.einsum("nac,nac->na", terms, terms)), 1e-8 * before)
    terms = terms / size[:, :, None]
    seen = (terms @ values[:, :, None])[:, :, 0]
    cosine = (
        (terms @ terms.transpose(0, 2, 1)).reshape(len(terms), -1).take(pairs[0] * len(terms[0]) + pairs[1], axis=1)
    )
    first, second = seen.take(pairs[0], axis=1), seen.take(pairs[1], axis=1)
    sine = np.maximum(1.0 - cosine * cosine, RIDGE)
    one, other = (first - cosine * second) / sine, (second - cosine * first) / sine
    positive = [one >= 0, other >= 0]
    if constant:
        along = along / size
        rest = height - one * along.take(pairs[0], axis=1) - other * along.take(pairs[1], axis=1)
        positive.insert(0, rest >= 0)
    total = (values**2).sum(axis=1, keepdims=True)
    return np.maximum(total - one * first - other * second, 0.0), positive


@lru_cache(maxsize=64)
def combinations_of(parameters: int, depth: int, width: int) -> Subsets:
    """Return all hypotheses (S, width) of `width` products, with one of `depth` terms for each parameter of a form.

    A form (library.forms) tells which parameters each product contains. Each product is given as its row in
    `product_grid`; row 0 is the constant.
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
    """Return all products (products, m) of at most one term per parameter.

    Each entry is the place of the term in a list of the `depth` best terms of the parameter; -1 means no term.
    """
    return np.array(list(product(range(-1, depth), repeat=parameters)), dtype=np.int64)


def lowest(scores: FloatArray, number: int) -> NDArray[np.int64]:
    """Return the columns of the `number` lowest scores of each row, in any order."""
    number = min(number, scores.shape[1])
    if number == scores.shape[1]:
        return np.broadcast_to(np.arange(number), scores.shape)
    best: NDArray[np.int64] = np.argpartition(scores, number - 1, axis=1)[:, :number]
    return best
