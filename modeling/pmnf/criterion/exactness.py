"""Criterion for counts that a model reproduces to rounding: what does so is better than all that does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_RESIDUAL, EXACT_RESIDUAL_OF_SIZE
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Tables
from .criterion import ALL, Criterion, Rows

# Below all scores of models that are not exact.
EXACTLY = -1e9


class Exactness(Criterion):
    """For counts (N, C); rounding: (N,) the largest weighted residual that counts as rounding."""

    def __init__(self, tables: Tables, values: FloatArray) -> None:
        super().__init__(tables, values, exact_weights(values))
        self.rounding = rounding_of(values, self.weights)

    def part(self, rows: NDArray[np.bool_]) -> Exactness:
        """Return the same of some call paths."""
        return Exactness(self.tables, self.values[rows])

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H): all the same where hypotheses reproduce call paths `rows`, inf where they do not."""
        return np.where(fitted.worst <= self.rounding[rows][:, None], EXACTLY, np.inf)


def rounding_of(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the largest residual (N,) of values (N, C) with `weights` that counts as rounding."""
    variation = (np.abs(values - values.mean(axis=1, keepdims=True)) * weights).max(axis=1)
    size = (np.abs(values) * weights).max(axis=1)
    result: FloatArray = EXACT_RESIDUAL * np.minimum(variation, 1.0) + EXACT_RESIDUAL_OF_SIZE * size
    return result


def exact_weights(values: FloatArray, part: float = 1e-4) -> FloatArray:
    """Return weights of relative errors (N, C); values below this part of the largest one count as that."""
    top = np.abs(values).max(axis=1, keepdims=True)
    weights: FloatArray = 1.0 / np.maximum(np.abs(values), np.where(top > 1e-240, part * top, 1.0))
    return weights
