# SPDX-License-Identifier: Apache-2.0
"""Criterion for richer models of noisy values, whose parts may be negative although the sum is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import NOISY_ROUNDING, RICHER_EVIDENCE, RICHER_GROWTH, RICHER_ORDER, SIGNIFICANT_MISFIT
from ..fit.together import fit_together
from ..hypotheses.pool import Fitted, Pool, best_first
from ..hypotheses.tables import Specification, Tables
from .criterion import ALL, Rows
from .evidence import Evidence, minus_log_likelihood


def misfit(pool: Pool, criterion: Evidence) -> NDArray[np.bool_]:
    """Return which call paths (N,) no hypothesis explains, according to repetitions, or have unknown noise."""
    points = criterion.tables.points
    squares = pool.residual.min(axis=1) ** 2
    # of residuals that are noise alone, squares over its variance follow F distributions with about these degrees of
    # freedom; their quantiles: Paulson, Annals of Mathematical Statistics 13, 1942
    freedom, limit = max(points - 2.0, 1.0), SIGNIFICANT_MISFIT**2
    left, repeated = 2.0 / (9.0 * freedom), 2.0 / (9.0 * np.maximum(criterion.repeated, 1.0))
    square = np.maximum((1.0 - repeated) ** 2 - limit * repeated, 1e-2)
    middle = (1.0 - left) * (1.0 - repeated)
    root = (middle + np.sqrt(np.maximum(middle**2 - square * ((1.0 - left) ** 2 - limit * left), 0.0))) / square
    known = np.where(criterion.repeated > 0, root**3 * freedom / points * criterion.noise**2, 0.0)
    return np.asarray(squares > np.maximum(known, NOISY_ROUNDING), dtype=bool)


def order_of(tables: Tables, specification: Specification, coefficients: FloatArray) -> FloatArray:
    """Return how fast the constant and the products (M, K, m) grow, (M, 1 + K); -inf if `coefficients` are 0."""
    order = np.pad(tables.order(specification), ((0, 0), (1, 0)))
    result: FloatArray = np.where(coefficients == 0, -np.inf, order)
    return result


def negative(
    tables: Tables, beyond: Tables, specification: Specification, coefficients: FloatArray
) -> NDArray[np.bool_]:
    """Return which hypotheses (M, K, m) are not positive at the points or beyond, (M,).

    coefficients: (M, 1 + K), of columns scaled as in `tables`. beyond: the tables at the points and further out.
    """
    scale = beyond.divisor(specification) / tables.divisor(specification)
    whole = np.einsum("mk,mkc->mc", coefficients[:, 1:] * scale, beyond.design(specification))
    whole += coefficients[:, :1]
    fastest = order_of(tables, specification, coefficients).argmax(axis=1)[:, None]
    lead = np.take_along_axis(coefficients, fastest, axis=1)[:, 0]
    return np.asarray((whole.min(axis=1) <= 0) | (lead < 0), dtype=bool)


class Signed(Evidence):
    """The criterion Evidence with parts that may be negative, if the sum is positive at the points and further out.

    Such sums may only contain growing logarithms: differences of powers fit a bend, but are far off soon after it.
    beyond: the tables at the points and further out.
    """

    beyond: Tables

    @staticmethod
    def of(criterion: Evidence, beyond: Tables) -> Signed:
        """Return the criterion for hypotheses whose parts may be negative."""
        data = criterion.values, criterion.noise, criterion.repeated, criterion.nonnegative
        result = Signed(criterion.tables, *data, criterion.penalties, criterion.growth_penalty, criterion.weights)
        result.beyond = beyond
        return result

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H); richer hypotheses have a penalty, because there are many more of them."""
        return super().scores(fitted, rows) + RICHER_EVIDENCE

    def fit_together(
        self, specification: Specification, path: NDArray[np.int64], constant: NDArray[np.bool_]
    ) -> Fitted:
        """Return hypotheses fitted without bounds; those that are negative at a point or beyond are rejected."""
        found = fit_together(self.tables, specification, self.values[path], self.weights[path], constant, False)
        if self.nonnegative:
            coefficients = np.nan_to_num(found.coefficients[:, 0])
            order = order_of(self.tables, specification, coefficients)
            falls = (coefficients < 0).any(axis=1) & (order.max(axis=1) > RICHER_ORDER)
            refused = falls | negative(self.tables, self.beyond, specification, coefficients)
            for array in (found.residual, found.left_out, found.worst):
                array[refused] = np.inf
        return found

    def of_squares(self, squares: FloatArray, penalty: FloatArray, rows: Rows = ALL) -> FloatArray:
        """Return rough scores (M, H) of the call paths `rows` from weighted squares and penalties."""
        noise, freedom = self.noise[rows, None], self.freedom[rows, None]
        return minus_log_likelihood(squares, self.tables.points, noise, freedom) + penalty

    def ordered(self, pool: Pool) -> Pool:
        """Return the pool with the best hypothesis first.

        If no hypothesis explains the values, for example at a change of behaviour, the values do not determine the
        growth, and steep terms have a penalty.
        """
        if not pool.specification.shape[2]:
            return pool
        order = np.maximum(self.tables.order(pool.specification).max(axis=2), 0.0)
        missed = misfit(pool, self)[:, None]
        penalty = np.where(missed, RICHER_GROWTH * order, 0.0)
        return best_first(replace(pool, score=pool.score + penalty), pool.score.shape[1])
