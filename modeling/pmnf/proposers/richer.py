"""Richer models of noisy values that one function per parameter does not explain: sums of two functions of a parameter.

Work that is shared plus communication that grows (a/p + b·p), a part that saturates (a - b/p), a valley: where the
residuals of the best hypothesis are larger than what repetitions say of the noise, all sums of two functions are tried
for one parameter, and for several all products that differ from those of the best hypothesis in one parameter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    NOISY_POOL,
    NOISY_ROUNDING,
    RICHER_BEYOND,
    RICHER_COMPLEXITY,
    RICHER_EVIDENCE,
    RICHER_FINALISTS,
    RICHER_GROWTH,
    RICHER_ORDER,
    RICHER_TERMS,
    SIGNIFICANT_MISFIT,
)
from ..criterion.criterion import ALL, Candidates, Rows, choose
from ..criterion.evidence import Evidence
from ..fit.fitter import fit_hypotheses, with_constant
from ..fit.shortlist import lowest
from ..fit.subsets import all_subsets, gram, solve_both
from ..hypotheses.pool import Fitted, Pool, merge
from ..hypotheses.tables import Specification, Tables


def misfit(pool: Pool, criterion: Evidence) -> NDArray[np.bool_]:
    """Return where (N,) the best hypothesis leaves more than repetitions explain, or nothing is known of the noise."""
    points = criterion.tables.points
    squares = pool.residual[:, 0] ** 2
    # of residuals that are noise alone, squares over its variance are χ² with about so many degrees of freedom
    freedom = max(points - 2.0, 1.0)
    most = (freedom + SIGNIFICANT_MISFIT * np.sqrt(2.0 * freedom)) / points
    known = np.where(criterion.freedom > 0, most * criterion.noise**2, 0.0)
    return np.asarray(squares > np.maximum(known, NOISY_ROUNDING), dtype=bool)


class Signed(Evidence):
    """As Evidence, but parts may be negative where the whole is not: neither measured, nor further out.

    Nothing but logarithms may grow then: differences of powers fit a bend, and are far off soon after it.
    beyond: the tables at the points and further out.
    """

    beyond: Tables

    @staticmethod
    def of(criterion: Evidence, beyond: Tables) -> Signed:
        """Return the same for hypotheses whose parts may be negative."""
        own = criterion.values, criterion.noise, criterion.freedom, criterion.nonnegative
        result = Signed(criterion.tables, *own, criterion.penalties, criterion.growth_penalty, criterion.weights)
        result.beyond = beyond
        return result

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H): richer hypotheses need more evidence, as there are many more of them."""
        return super().scores(fitted, rows) + RICHER_EVIDENCE

    def fit(self, specification: Specification, rows: Rows = ALL, constant: bool = True) -> Fitted:
        """Return hypotheses fitted without bounds; those that are negative somewhere, or in the end, are refused."""
        values, weights = self.values[rows], self.weights[rows]
        found = fit_hypotheses(self.tables, specification, values, weights, False, constant, self.precise)
        if self.nonnegative:
            scale = self.beyond.divisor(specification) / self.tables.divisor(specification)
            coefficients = np.nan_to_num(found.coefficients)
            whole = np.einsum("nhk,nhkc->nhc", coefficients[:, :, 1:] * scale, self.beyond.design(specification))
            whole += coefficients[:, :, :1]
            order = np.pad(self.tables.order(specification), ((0, 0), (0, 0), (1, 0)))
            order[coefficients == 0] = -np.inf
            lead = np.take_along_axis(coefficients, order.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
            falls = (coefficients < 0).any(axis=2) & (order.max(axis=2) > RICHER_ORDER)
            refused = (whole.min(axis=2) <= 0) | (lead < 0) | falls
            for array in (found.residual, found.left_out, found.worst):
                array[refused] = np.inf
        return found


class RicherSums:
    """Hypotheses with one product more than those of `pool`, of the call paths of `criterion` at `points` (C, m)."""

    def __init__(self, points: FloatArray, criterion: Evidence, beyond: Tables, pool: Pool) -> None:
        self.points, self.pool, self.criterion = points, pool, Signed.of(criterion, beyond)
        self.tables = criterion.tables

    def run(self) -> Pool:
        """Return the pool with richer hypotheses that are better.

        What none of them explains, as a change of behaviour, says little about growth: steep terms have a penalty then.
        """
        pool = self.pool
        if self.points.shape[1] == 1:
            pool = merge([pool, choose(self._pairs(), self.criterion, NOISY_POOL)], NOISY_POOL)
        else:
            for _ in range(RICHER_TERMS):
                pool = merge([pool, choose(self._added(pool), self.criterion, NOISY_POOL)], NOISY_POOL)
        if not pool.specification.shape[2]:
            return pool
        order = np.maximum(self.tables.order(pool.specification).max(axis=2), 0.0)
        missed = misfit(pool, self.criterion)[:, None]
        return merge([replace(pool, score=pool.score + np.where(missed, RICHER_GROWTH * order, 0.0))], NOISY_POOL)

    @cached_property
    def _cost(self) -> FloatArray:
        return self.criterion.penalties.complexity * self.tables.cost[0][:-1]

    def _score(self, squares: FloatArray, penalty: FloatArray) -> FloatArray:
        """Return rough scores (N, S) from weighted squares and penalties."""
        criterion = self.criterion
        number = criterion.tables.points + criterion.freedom[:, None]
        known = (criterion.freedom * criterion.noise**2)[:, None]
        result: FloatArray = number * np.log((np.maximum(squares, 1e-24) + known) / number) + penalty
        return result

    def _pairs(self) -> list[Candidates]:
        """Return the likeliest sums of two functions of the only parameter, with a constant and without."""
        columns, points = self.tables.columns[0][:-1], self.tables.points
        if points < 4:
            return []
        values, weights = self.criterion.values, self.criterion.weights
        simple = np.flatnonzero(self.tables.cost[0][:-1] <= RICHER_COMPLEXITY)
        pairs = simple[all_subsets(len(simple), 2) - 1] + 1
        table = np.broadcast_to(with_constant(columns), (len(values), len(columns) + 1, points))
        matrix, right, total = gram(table, values, weights)
        order = np.concatenate([[0.0], self.tables.order_of(0)])
        result = []
        for constant, (coefficients, explained) in zip(
            (True, False), solve_both(matrix, right, pairs[None]), strict=True
        ):
            width = len(coefficients)
            if width >= points:
                continue
            own = np.concatenate([np.zeros((len(pairs), 1), dtype=np.int64), pairs], axis=1) if constant else pairs
            lead = order[own].argmax(axis=1)
            stacked = np.stack(coefficients, axis=2)
            negative = stacked < 0
            penalty = self._cost[pairs - 1].sum(axis=1) + self.criterion.penalties.coefficient * width
            penalty = penalty + self.criterion.penalties.negative * negative.sum(axis=2)
            rough = self._score(total[:, None] - explained, penalty)
            rough[negative[:, np.arange(len(pairs)), lead]] = np.inf
            rough[negative.any(axis=2) & (order[own].max(axis=1) > RICHER_ORDER)] = np.inf
            best = lowest(rough, RICHER_FINALISTS)
            path, place = np.nonzero(np.isfinite(np.take_along_axis(rough, best, axis=1)))
            result.append(Candidates(path, (pairs[best[path, place]] - 1).astype(np.int16)[:, :, None], constant))
        return result

    def _added(self, pool: Pool) -> list[Candidates]:
        """Return the best hypotheses with one product more, one of theirs with the function of a parameter changed."""
        best = pool.specification[:, 0]
        widths = (best >= 0).any(axis=2).sum(axis=1)
        result = []
        for width in np.unique(widths).tolist():
            rows = np.flatnonzero(widths == width)
            base = best[rows, :width]
            if width + 3 > self.tables.points:
                continue
            trial = self._changed(base)
            columns = self.tables.design(trial)
            weights, values = self.criterion.weights[rows], self.criterion.values[rows]
            fixed = with_constant(self.tables.design(base)) * weights[:, None]
            orthogonal, _ = np.linalg.qr(fixed.transpose(0, 2, 1))
            target = (values * weights)[:, :, None]
            rest = (target - orthogonal @ (orthogonal.transpose(0, 2, 1) @ target))[:, :, 0]
            new = columns * weights[:, None]
            length = np.sqrt((new**2).sum(axis=2))
            new = new - (new @ orthogonal) @ orthogonal.transpose(0, 2, 1)
            size = np.sqrt((new**2).sum(axis=2))
            along = np.einsum("nqc,nc->nq", new, rest) / np.maximum(size, 1e-300)
            gain = np.where(size > 1e-6 * length, along**2, 0.0)
            penalty = self.criterion.penalties.complexity * self.tables.complexity(trial[:, :, None])
            left = (rest**2).sum(axis=1, keepdims=True) - gain
            number = self.tables.points + self.criterion.freedom[rows, None]
            known = (self.criterion.freedom * self.criterion.noise**2)[rows, None]
            rough = number * np.log((np.maximum(left, 1e-24) + known) / number) + penalty
            chosen = lowest(rough, RICHER_FINALISTS)
            path, place = np.nonzero(np.isfinite(np.take_along_axis(rough, chosen, axis=1)))
            more = trial[path, chosen[path, place]][:, None]
            result.append(Candidates(rows[path], np.concatenate([base[path], more], axis=1), True))
        return result

    def _changed(self, base: Specification) -> Specification:
        """Return the products (N, Q, m) that differ in one parameter from those of `base` (N, K, m) and from none."""
        products = np.concatenate([base, np.full((len(base), 1, base.shape[2]), -1, dtype=np.int16)], axis=1)
        found = []
        for parameter, terms in enumerate(self.tables.terms):
            own = np.repeat(products[:, :, None], len(terms), axis=2)
            own[..., parameter] = np.arange(len(terms))
            found.append(own.reshape(len(base), -1, base.shape[2]))
        return np.concatenate(found, axis=1)


def further(points: FloatArray) -> FloatArray:
    """Return the points (C, m) and such further out in each parameter, alone and together."""
    top, low = points.max(axis=0), points.min(axis=0)
    found = [points]
    for factor in RICHER_BEYOND:
        found.append((factor * top)[None])
        for own in range(points.shape[1]):
            for rest in (low, top):
                found.append(np.where(np.arange(points.shape[1]) == own, factor * top, rest)[None])
    return np.concatenate(found)
