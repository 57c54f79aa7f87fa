# SPDX-License-Identifier: Apache-2.0
"""Other criteria for comparison: the lowest cross-validated SMAPE, and the SMAPE at fitted points, as in Extra-P.

Neither uses noise or uncertainty: there is one hypothesis per call path, without alternatives.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from ...experiment import FloatArray
from ..fit.fitter import with_constant
from ..fit.weights import relative_weights
from ..hypotheses.pool import Fitted, Pool
from ..hypotheses.tables import Specification, Tables
from .criterion import ALL, Criterion, Rows


def smape(values: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the symmetric mean absolute percentage error over the last axis, in %."""
    size = np.abs(values) + np.abs(predicted)
    result: FloatArray = 200.0 * (np.abs(values - predicted) / np.where(size > 0, size, 1.0)).mean(axis=-1)
    return result


def left_out(columns: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the least-squares prediction at each point without this point, (M, C); NaN if it is not determined.

    columns: (M, K, C); values, weights: (M, C).
    """
    q, _ = np.linalg.qr((columns * weights[:, None]).transpose(0, 2, 1))
    target = (values * weights)[:, :, None]
    rest = (target - q @ (q.transpose(0, 2, 1) @ target))[:, :, 0]
    remaining = 1.0 - np.einsum("mck,mck->mc", q, q)
    known = remaining > 1e-9
    return np.where(known, values - rest / np.where(known, remaining, 1.0) / weights, np.nan)


class LeftOutSmape(Criterion):
    """Selects the lowest SMAPE at left-out points."""

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return the SMAPE (M, H), inf of hypotheses without a fit."""
        values, weights = self.values[rows], self.weights[rows]
        scores = np.full(fitted.residual.shape, np.inf)
        widths = (fitted.specification >= 0).any(axis=3).sum(axis=2)
        constant = (fitted.coefficients[:, :, 0] != 0.0) | (widths == 0)
        for width, whole in product(np.unique(widths).tolist(), (True, False)):
            path, number = np.nonzero((widths == width) & (constant == whole) & np.isfinite(fitted.residual))
            if path.size:
                columns = self.tables.design(fitted.specification[path, number, :width])
                columns = with_constant(columns) if whole else columns
                error = smape(values[path], left_out(columns, values[path], weights[path]))
                scores[path, number] = np.where(np.isnan(error), 1e300, error)
        return scores


class SampleSmape(Criterion):
    """Selects the lowest SMAPE at fitted points, by ordinary least squares."""

    def __init__(self, tables: Tables, values: FloatArray) -> None:
        super().__init__(tables, values, np.ones_like(values))

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return the SMAPE (M, H), inf of hypotheses without a fit."""
        predicted = self._predicted(fitted.specification, np.nan_to_num(fitted.coefficients))
        return np.where(np.isfinite(fitted.residual), smape(self.values[rows][:, None], predicted), np.inf)

    def relative(self, pool: Pool) -> Pool:
        """Return the pool with relative errors, as elsewhere."""
        errors = self.values[:, None] - self._predicted(pool.specification, pool.coefficients)
        residual = np.sqrt(((errors * relative_weights(self.values)[:, None]) ** 2).mean(axis=2))
        left = pool.left_out * residual / np.where(pool.residual > 0, pool.residual, 1.0)
        return replace(pool, residual=residual, left_out=left)

    def _predicted(self, specification: Specification, coefficients: FloatArray) -> FloatArray:
        products = np.einsum("nhkc,nhk->nhc", self.tables.design(specification), coefficients[:, :, 1:])
        result: FloatArray = coefficients[:, :, :1] + products
        return result
