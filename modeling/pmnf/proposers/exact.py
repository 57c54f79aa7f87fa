# SPDX-License-Identifier: Apache-2.0
"""Propose models that reproduce exact counts: sums of products of functions that are found along each parameter.

The model is linear in the products of the functions of all parameters; products with coefficient 0 are removed.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_MOST_SETS, EXACT_MOST_TERMS, EXACT_NO_PART, EXACT_TIGHTNESS
from ..criterion.criterion import Candidates
from ..criterion.exactness import Exactness
from ..fit.fitter import with_constant
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification

_Flags = NDArray[np.bool_]
_Index = NDArray[np.int64]


class ExactSums:
    """Proposes hypotheses for the counts of `criterion`."""

    def __init__(self, criterion: Exactness) -> None:
        self.criterion, self.tables = criterion, criterion.tables

    def propose(self, products: Specification) -> list[Candidates]:
        """Return sums of some of the `products` (N, Q, m) of each call path that may reproduce the counts."""
        paths, number = products.shape[:2]
        if number + 1 > self.criterion.values.shape[1]:
            return self._subsets(np.arange(paths), products)
        fitted = self.criterion.fit(products[:, None])
        done = fitted.worst[:, 0] <= self.criterion.rounding
        open_paths = np.flatnonzero(~done)
        return [
            *self._pruned(np.flatnonzero(done), products[done], fitted.rows(done)),
            *self._subsets(open_paths, products[open_paths]),
        ]

    def _pruned(self, paths: _Index, products: Specification, fitted: Fitted) -> list[Candidates]:
        """Remove products without effect from the sums of call paths `paths`, (paths, Q, m).

        A product is removed if the rest reproduces the counts about as well.
        """
        weights = self.criterion.weights[paths]
        columns = with_constant(self.tables.design(products))
        parts = np.abs(fitted.coefficients[:, 0, :, None] * columns * weights[:, None, :]).max(axis=2)
        tight = np.maximum(EXACT_TIGHTNESS * fitted.worst[:, 0], EXACT_NO_PART[-1])
        tight = np.minimum(self.criterion.rounding[paths], tight)
        result: list[Candidates] = []
        open_rows = np.ones(len(paths), dtype=bool)
        for limit in (*EXACT_NO_PART[:-1], 0.0):
            keep, constant = parts[:, 1:] > limit, parts[:, 0] > limit
            counts = keep.sum(axis=1)
            for count in np.unique(counts[open_rows & (counts > 0)]).tolist():
                rows = np.flatnonzero(open_rows & (counts == count))
                order = np.argsort(~keep[rows], axis=1, kind="stable")[:, :count]
                chosen = np.take_along_axis(products[rows], order[:, :, None], axis=1)
                whole = self._within(chosen, paths[rows], tight[rows], True)
                bare = np.zeros(rows.size, dtype=bool)
                small = np.flatnonzero(~constant[rows])
                bare[small] = self._within(chosen[small], paths[rows[small]], tight[rows[small]], False)
                good = whole | bare | (limit == 0.0)
                for own, with_one in ((good & ~bare, True), (bare, False)):
                    result.append(Candidates(paths[rows[own]], chosen[own], with_one))
                open_rows[rows[good]] = False
        return result

    def _within(self, products: Specification, paths: _Index, limit: FloatArray, constant: bool) -> _Flags:
        """Return which sums reproduce the counts of `paths`, (M,). products: (M, K, m); limit: largest error, (M,)."""
        fitted = self.criterion.fit(products[:, None], paths, constant)
        return np.asarray(fitted.worst[:, 0] <= limit, dtype=bool)

    def _subsets(self, paths: _Index, products: Specification) -> list[Candidates]:
        """Return sums of few products of call paths `paths`, if there are too few points for all."""
        number, points = products.shape[1], self.criterion.values.shape[1]
        result = []
        for width in range(1, min(number, EXACT_MOST_TERMS, points - 2) + 1):
            subsets = np.array(list(combinations(range(number), width)))[:EXACT_MOST_SETS]
            specification = products[:, subsets].reshape(-1, width, products.shape[2])
            result.append(Candidates(np.repeat(paths, len(subsets)), specification, True))
        return result
