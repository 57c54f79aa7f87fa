# SPDX-License-Identifier: Apache-2.0
"""Hypotheses that differ from a model in the function of one parameter, with their posterior weights.

A model keeps only a few of many similarly probable hypotheses: if four functions of each of four parameters explain the
measurements equally well, there are 256. This module varies one parameter at a time: each function of the library
replaces the function of this parameter, while the functions of the other parameters do not change (a mean-field
approximation of the posterior).

Shapes: N points of the search space, n measured points, A functions, K terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray, IntArray
from ..pmnf.calibration import NOISY, RIDGE
from ..pmnf.criterion.evidence import posterior_weights
from ..pmnf.hypotheses.library import Library, term_columns
from ..pmnf.model.term import Factor, Term

LEAST_WEIGHT = 0.02
"""Functions of a parameter with a smaller posterior weight are left out."""
_LIBRARY = Library()


class Columns:
    """Computes terms at points (N, m). A factor that several hypotheses contain is evaluated once."""

    def __init__(self, parameters: Sequence[str], points: FloatArray) -> None:
        self.points = points
        self._values: Mapping[str, FloatArray] = dict(zip(parameters, points.T.copy(), strict=True))
        self._known: dict[Factor, FloatArray] = {}

    def basis(self, terms: Sequence[Term], without: str | None = None) -> FloatArray:
        """Return 1 and the products of the K terms, shape (1 + K, N), without coefficients.

        without: the name of a parameter whose factors are left out.
        """
        result = np.ones((1 + len(terms), len(self.points)))
        for row, term in enumerate(terms, 1):
            for factor in term.factors:
                if without in factor.parameters:
                    continue
                if factor not in self._known:
                    self._known[factor] = factor.at(self._values, (len(self.points),))
                result[row] *= self._known[factor]
        return result

    def of(self, parameter: str) -> FloatArray:
        """Return the values of a parameter, (N,)."""
        return self._values[parameter]


@dataclass(frozen=True, eq=False)
class Observations:
    """Measured means of one call path.

    rows: (n,), the numbers of the points. means: (n,). weights: (n,), 1/standard deviation of each mean. freedom:
    degrees of freedom of the residuals.
    """

    rows: IntArray
    means: FloatArray
    weights: FloatArray
    freedom: float


def exchanges(
    parameters: Sequence[str], terms: Sequence[Term], columns: Columns, known: Observations
) -> list[tuple[FloatArray, FloatArray]]:
    """Return for each parameter the posterior weights (A,) of its functions, and the predictions (A, N) with each.

    terms: of the model. Left out are parameters whose function is not a power and a logarithm, or differs between
    terms, and parameters with values that are not positive.
    """
    found = []
    for name in parameters:
        factors = [[factor for factor in term.factors if name in factor.parameters] for term in terms]
        used = {factor for own in factors for factor in own}
        values = columns.of(name)
        if len(used) == 1 and all(f.is_plain for f in used) and values.min() > 0.0:
            has = np.array([False, *(bool(own) for own in factors)])
            found.append(_exchange(values, columns.basis(terms, name), has, known))
    return found


def _exchange(
    values: FloatArray, plain: FloatArray, has: NDArray[np.bool_], known: Observations
) -> tuple[FloatArray, FloatArray]:
    """Return the weights and predictions of all likely functions of one parameter.

    values: (N,), of the parameter; plain: (1 + K, N), constant and terms without this parameter; has: (1 + K,), which
    of them contain a function of the parameter.
    """
    distinct, place = np.unique(values, return_inverse=True)
    terms = _LIBRARY.terms(distinct)
    table = term_columns(terms, distinct).T
    table /= _lengths(table, axis=1)
    design = np.where(has[:, None], table[:, None, place[known.rows]], 1.0) * plain[:, known.rows] * known.weights
    scale = _lengths(design, axis=2)
    design /= scale
    target = known.means * known.weights
    with_constant = _solved(design, target)
    coefficients = np.concatenate([np.zeros((len(terms), 1)), _solved(design[:, 1:], target)], axis=1)
    coefficients = np.where(with_constant[:, :1] >= 0.0, with_constant, coefficients)
    squares = ((target - (coefficients[:, None] @ design)[:, 0]) ** 2).sum(axis=1)
    complexity = NOISY.complexity * has.sum() * np.array([term.cost for term in terms])
    score = known.freedom * np.log1p((squares - squares.min()) / known.freedom) + complexity
    score[(coefficients < 0.0).any(axis=1)] = np.inf
    weights = posterior_weights(score[None])[0]
    kept = weights >= LEAST_WEIGHT
    coefficients = (coefficients / scale[:, :, 0])[kept]
    predictions = coefficients[:, ~has] @ plain[~has] + (coefficients[:, has] @ plain[has]) * table[kept][:, place]
    return weights[kept] / max(float(weights[kept].sum()), 1e-300), predictions


def _lengths(values: FloatArray, axis: int) -> FloatArray:
    """Return the largest magnitude along an axis, which remains with length 1; 1 if all values are 0."""
    largest = np.abs(values).max(axis=axis, keepdims=True)
    return np.where(largest > 0.0, largest, 1.0)


def _solved(design: FloatArray, target: FloatArray) -> FloatArray:
    """Return the least-squares coefficients (A, K) of columns (A, K, n); 0 for columns that are 0 at all n points."""
    normal = design @ design.transpose(0, 2, 1)
    squares = np.diagonal(normal, axis1=1, axis2=2)
    ridge = RIDGE * squares.sum(axis=1, keepdims=True) + (squares == 0.0)
    normal += ridge[:, :, None] * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(normal, (design @ target)[:, :, None])[:, :, 0], dtype=np.float64)
