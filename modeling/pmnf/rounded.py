"""Search for models of counts that are rounded: whole numbers within a few counts of a function.

Loops over shares, blocks and roots have sizes that are rounded to whole numbers, n/p or n^(1/3), so that no function
reproduces the counts exactly, and yet all of their digits but the last few are evidence. What follows a simple
function to within a few counts, over values that span many times that, follows it for a reason.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .hypotheses import Fitted, Pool
from .inexact import InexactSearch

# Deviations in counts: what is expected, and the largest one that is still rounding.
_EXPECTED, _MOST = 1.0, 8.0
# A term must be so many of the largest deviations somewhere.
_LEAST_TERM = 8.0
# What the values tell beyond the coefficients (logarithm of variation over rounding, for each further value) must
# exceed the logarithm of the number of functions that are tried.
_LEAST_EVIDENCE = 16.0

_Flags = NDArray[np.bool_]


class RoundedSearch(InexactSearch):
    """One batch of call paths of an effort metric, whose deviations are a matter of counts and not of size."""

    # The digits of the counts tell exponents apart, so that what is usual matters little.
    pair_cost = np.inf
    cost_price = 1.0

    def search(self) -> tuple[Pool, _Flags]:
        """Return the best models, and the call paths (N,) that follow theirs to within rounding."""
        pool = self.run()
        values = self.values
        width = (pool.coefficients[:, 0] != 0).sum(axis=1)
        design = self.tables.design(pool.specification[:, :1])[:, 0]
        fitted = pool.coefficients[:, 0, 0, None] + np.einsum("nk,nkc->nc", pool.coefficients[:, 0, 1:], design)
        worst = np.abs(fitted - values).max(axis=1)
        whole = np.asarray((values == np.round(values)).all(axis=1), dtype=bool)
        tells = np.log(np.maximum(np.ptp(values, axis=1), 1.0) / _MOST)
        believed = tells * (self.observations - width) >= _LEAST_EVIDENCE
        good = whole & (worst <= _MOST) & believed & np.isfinite(pool.score[:, 0])
        return pool, np.asarray(good, dtype=bool)

    def _weights(self) -> FloatArray:
        """All counts are rounded alike."""
        top = np.abs(self.values).max(axis=1, keepdims=True)
        return np.broadcast_to(1.0 / np.where(top > 0, top, 1.0), self.values.shape).copy()

    def _deviation(self) -> FloatArray:
        return _EXPECTED * self._weights()[:, 0]

    def _incredible(self, fitted: Fitted) -> _Flags:
        """Return hypotheses (N, H) with a term of a few counts, or with a negative one of the highest order."""
        part = np.abs(fitted.coefficients[:, :, 1:, None] * self.tables.design(fitted.specification)).max(axis=3)
        hidden = (part < _LEAST_TERM * _MOST) & (fitted.coefficients[:, :, 1:] != 0)
        order = np.where(fitted.coefficients[:, :, 1:] != 0, self.tables.order(fitted.specification), -np.inf)
        if not order.shape[2]:
            return np.zeros(order.shape[:2], dtype=bool)
        first = order.argmax(axis=2)[:, :, None]
        lead = np.take_along_axis(fitted.coefficients[:, :, 1:], first, axis=2)[:, :, 0]
        return np.asarray(hidden.any(axis=2) | (lead < 0), dtype=bool)
