"""Proposer of models that reproduce exact counts: sums of products of the functions that lines show.

The model is linear in the products of the functions of all parameters, and those with no part in it disappear.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import COUNT_POOL, EXACT
from ..criterion.exactness import EXACTLY, Exactness
from ..fit.fitter import fit, with_constant
from ..hypotheses.pool import Fitted, Pool, merge, nothing, spread, to_pool
from ..hypotheses.tables import Specification

_Flags = NDArray[np.bool_]


class ExactSums:
    """Models of the counts of `criterion`."""

    def __init__(self, criterion: Exactness) -> None:
        self.tables, self.criterion = criterion.tables, criterion
        self.values, self.weights, self.rounding = criterion.values, criterion.weights, criterion.rounding

    def _part(self, rows: _Flags) -> ExactSums:
        return ExactSums(self.criterion.part(rows))

    def constant(self) -> Pool:
        """Return the constants."""
        empty = np.empty((1, 0, len(self.tables.terms)), dtype=np.int16)
        fitted = self.criterion.fit(empty)
        return to_pool(fitted, self.criterion.scores(fitted), 1)

    def propose(self, products: Specification) -> tuple[Pool, NDArray[np.int64]]:
        """Return models over `products` (N, Q, m) that reproduce the values, and the rows where there is one."""
        if products.shape[1] + 1 > self.values.shape[1]:
            return self._subsets(products)
        fitted = self.criterion.fit(products[:, None])
        done = fitted.worst[:, 0] <= self.rounding
        pools = []
        if done.any():
            pools.append(spread(self._part(done)._pruned(products[done], fitted.rows(done)), done))
        if not done.all():
            pool, more = self._part(~done)._subsets(products[~done])
            pools.append(spread(pool, ~done))
            done[np.flatnonzero(~done)[more]] = True
        return merge(pools, COUNT_POOL), np.flatnonzero(done)

    def _pruned(self, products: Specification, fitted: Fitted) -> Pool:
        """Leave out products that add nothing anywhere, and fit the rest again."""
        columns = with_constant(self.tables.design(products))
        parts = np.abs(fitted.coefficients[:, 0, :, None] * columns * self.weights[:, None, :]).max(axis=2)
        pools: list[Pool] = []
        best = np.zeros(products.shape[0], dtype=bool)
        tight = np.minimum(self.rounding, np.maximum(10.0 * fitted.worst[:, 0], 1e-12))
        for limit in (1e-5, 1e-7, 1e-9, 0.0):
            keep = parts[:, 1:] > limit
            constant = parts[:, 0] > limit
            for count in np.unique(keep.sum(axis=1)[~best]).tolist():
                rows = ~best & (keep.sum(axis=1) == count)
                if not rows.any() or not count:
                    continue
                order = np.argsort(~keep[rows], axis=1, kind="stable")[:, :count]
                chosen = np.take_along_axis(products[rows], order[:, :, None], axis=1)
                pool, good = self._part(rows)._refit(chosen, constant[rows], tight[rows])
                good |= limit == 0.0
                rows[rows] = good
                if rows.any():
                    pools.append(spread(pool.rows(good), rows))
                    best |= rows
        return merge(pools, 1)

    def _refit(self, products: Specification, constant: _Flags, tight: FloatArray) -> tuple[Pool, _Flags]:
        """Fit `products` (N, K, m) with a constant where `constant` says so; return also which are exact to `tight`."""
        fitted = self.criterion.fit(products[:, None])
        good = fitted.worst[:, 0] <= tight
        if not constant.all():
            rows = np.flatnonzero(~constant)
            bare = fit(self.tables.design(products[rows])[:, None], self.values[rows], self.weights[rows])
            better = bare.worst[:, 0] <= tight[rows]
            fitted.coefficients[rows[better], 0, 0] = 0.0
            fitted.coefficients[rows[better], 0, 1:] = bare.coefficients[better, 0]
            fitted.left_out[rows[better]] = bare.left_out[better]
            good[rows] |= better
        return to_pool(fitted, np.full((products.shape[0], 1), EXACTLY), 1), good

    def _subsets(self, products: Specification) -> tuple[Pool, NDArray[np.int64]]:
        """Too few points for all products: the simplest subset that reproduces the values, positive terms first."""
        pools = []
        number = products.shape[1]
        for width in range(1, min(number, 4, self.values.shape[1] - 2) + 1):
            subsets = np.array(list(combinations(range(number), width)))[:1000]
            fitted = self.criterion.fit(products[:, subsets])
            constant = fitted.coefficients[:, :, 0]
            constant[np.abs(constant) * self.weights.max(axis=1)[:, None] <= self.rounding[:, None]] = 0.0
            negative = (fitted.coefficients < 0).sum(axis=2)
            scores = EXACTLY + EXACT.coefficient * width + EXACT.negative * negative
            scores = scores + EXACT.complexity * self.tables.complexity(fitted.specification)
            scores = np.where(fitted.worst <= self.rounding[:, None], scores, np.inf)
            pools.append(to_pool(fitted, scores, 1))
        if not pools:
            return nothing(products.shape[0], len(self.tables.terms)), np.empty(0, dtype=np.int64)
        best = merge(pools, 1)
        return best, np.flatnonzero(np.isfinite(best.score[:, 0]))
