# SPDX-License-Identifier: Apache-2.0
"""Criterion for counts that a model reproduces within rounding: such a model is better than all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT, EXACT_LEAST_WEIGHED, EXACT_RESIDUAL, EXACT_RESIDUAL_OF_SIZE
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification, Tables
from .criterion import ALL, Criterion, Rows

# Lower than all scores of models that are not exact.
EXACTLY = -1e9


class Exactness(Criterion):
    """Criterion for counts (N, C); rounding: (N,) the largest weighted residual that counts as rounding."""

    def __init__(self, tables: Tables, values: FloatArray) -> None:
        super().__init__(tables, values, exact_weights(values))
        self.rounding = rounding_of(values, self.weights)

    def part(self, rows: NDArray[np.bool_]) -> Exactness:
        """Return the criterion of some call paths."""
        return Exactness(self.tables, self.values[rows])

    def fit(self, specification: Specification, rows: Rows = ALL, constant: bool = True) -> Fitted:
        """Return hypotheses fitted to the call paths `rows`; a constant within rounding becomes 0."""
        fitted = super().fit(specification, rows, constant)
        constants = fitted.coefficients[:, :, 0]
        constants[np.abs(constants) * self.weights[rows].max(axis=1)[:, None] <= self.rounding[rows][:, None]] = 0.0
        return fitted

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H): the simplest exact hypotheses of the call paths `rows` first, inf for others."""
        width = (fitted.specification >= 0).any(axis=-1).sum(axis=-1)
        scores = EXACTLY + EXACT.coefficient * width + EXACT.negative * (fitted.coefficients < 0).sum(axis=2)
        scores = scores + EXACT.complexity * self.tables.complexity(fitted.specification)
        return np.where(fitted.worst <= self.rounding[rows][:, None], scores, np.inf)


def rounding_of(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the largest residual (N,) of values (N, C) with `weights` that counts as rounding."""
    variation = (np.abs(values - values.mean(axis=1, keepdims=True)) * weights).max(axis=1)
    size = (np.abs(values) * weights).max(axis=1)
    result: FloatArray = EXACT_RESIDUAL * np.minimum(variation, 1.0) + EXACT_RESIDUAL_OF_SIZE * size
    return result


def exact_weights(values: FloatArray, part: float = EXACT_LEAST_WEIGHED) -> FloatArray:
    """Return weights of relative errors (N, C); values below this part of the largest value count as this part."""
    top = np.abs(values).max(axis=1, keepdims=True)
    weights: FloatArray = 1.0 / np.maximum(np.abs(values), np.where(top > 1e-240, part * top, 1.0))
    return weights
