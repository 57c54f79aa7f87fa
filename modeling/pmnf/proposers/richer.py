# SPDX-License-Identifier: Apache-2.0
"""Richer models of noisy values that one function per parameter does not explain: sums of two functions.

Examples are shared work plus growing communication (a/p + b·p), a part that saturates (a - b/p), and a valley. If the
residuals of the best hypothesis exceed the noise of repetitions, all sums of two functions are tried for one parameter.
For several parameters, all products that differ from a product of the best hypothesis in one parameter are tried.
"""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import NOISY_POOL, RICHER_BEYOND, RICHER_COMPLEXITY, RICHER_FINALISTS, RICHER_ORDER, RICHER_TERMS
from ..criterion.criterion import Candidates, choose
from ..criterion.evidence import Evidence
from ..criterion.signed import Signed
from ..fit.fitter import with_constant
from ..fit.shortlist import lowest, pair_squares
from ..hypotheses.pool import Pool, merge
from ..hypotheses.tables import Specification, Tables


class RicherSums:
    """Proposes hypotheses with one more product than in `pool`. criterion: of the same call paths; points: (C, m)."""

    def __init__(self, points: FloatArray, criterion: Evidence, beyond: Tables, pool: Pool) -> None:
        self.points, self.pool, self.criterion = points, pool, Signed.of(criterion, beyond)
        self.tables = criterion.tables

    def run(self) -> Pool:
        """Return the pool with richer hypotheses that are better."""
        pool = self.pool
        if self.points.shape[1] == 1:
            pool = merge([pool, choose(self._pairs(), self.criterion, NOISY_POOL)], NOISY_POOL)
        else:
            for _ in range(RICHER_TERMS):
                pool = merge([pool, choose(self._added(pool), self.criterion, NOISY_POOL)], NOISY_POOL)
        return self.criterion.ordered(pool)

    def _pairs(self) -> list[Candidates]:
        """Return the likeliest sums of two functions of the only parameter, with a constant and without."""
        criterion, points = self.criterion, self.tables.points
        cost, order = self.tables.cost[0][:-1], self.tables.order_of(0)
        simple = np.flatnonzero(cost <= RICHER_COMPLEXITY)
        pairs = np.stack(np.triu_indices(simple.size, 1))
        numbers = simple[pairs]
        orders = np.stack([np.zeros(numbers.shape[1]), *order[numbers]])
        grows = orders.max(axis=0) > RICHER_ORDER
        terms = self.tables.columns[0][simple] * criterion.weights[:, None]
        penalty = criterion.penalties.complexity * cost[numbers].sum(axis=0)
        result = []
        for constant in (True, False):
            width = 2 + constant
            if width >= points:
                continue
            squares, positive = pair_squares(
                terms, criterion.values * criterion.weights, criterion.weights, pairs, constant
            )
            lead = orders[1 - constant :].argmax(axis=0)
            negative = sum(~sign for sign in positive)
            rough = criterion.of_squares(squares, penalty + criterion.penalties.coefficient * width)
            rough += criterion.penalties.negative * negative
            refused = (negative > 0) & grows
            for number, sign in enumerate(positive):
                refused[:, lead == number] |= ~sign[:, lead == number]
            rough[refused] = np.inf
            best = lowest(rough, RICHER_FINALISTS)
            path, place = np.nonzero(np.isfinite(np.take_along_axis(rough, best, axis=1)))
            chosen = numbers[:, best[path, place]].T
            result.append(Candidates(path, chosen.astype(np.int16)[:, :, None], constant))
        return result

    def _added(self, pool: Pool) -> list[Candidates]:
        """Return the best hypotheses with one additional product, which differs from one of theirs in one parameter."""
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
            rough = self.criterion.of_squares(left, penalty, rows)
            chosen = lowest(rough, RICHER_FINALISTS)
            path, place = np.nonzero(np.isfinite(np.take_along_axis(rough, chosen, axis=1)))
            more = trial[path, chosen[path, place]][:, None]
            result.append(Candidates(rows[path], np.concatenate([base[path], more], axis=1), True))
        return result

    def _changed(self, base: Specification) -> Specification:
        """Return the products (N, Q, m) that differ from a product of `base` (N, K, m) in one parameter."""
        products = np.concatenate([base, np.full((len(base), 1, base.shape[2]), -1, dtype=np.int16)], axis=1)
        found = []
        for parameter, terms in enumerate(self.tables.terms):
            changed = np.repeat(products[:, :, None], len(terms), axis=2)
            changed[..., parameter] = np.arange(len(terms))
            found.append(changed.reshape(len(base), -1, base.shape[2]))
        return np.concatenate(found, axis=1)


def further(points: FloatArray) -> FloatArray:
    """Return the points (C, m) and points further out in each parameter, alone and together."""
    top, low = points.max(axis=0), points.min(axis=0)
    found = [points]
    for factor in RICHER_BEYOND:
        found.append((factor * top)[None])
        for parameter in range(points.shape[1]):
            for rest in (low, top):
                found.append(np.where(np.arange(points.shape[1]) == parameter, factor * top, rest)[None])
    return np.concatenate(found)
