"""Criterion for counts that a model reproduces to rounding: what does so is better than all that does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_RESIDUAL, EXACT_RESIDUAL_OF_SIZE
from ..hypotheses.pool import Fitted

# Below all scores of models that are not exact.
EXACTLY = -1e9


class Exactness:
    """For counts (N, C); weights: (N, C); rounding: (N,) the largest weighted residual that counts as rounding."""

    def __init__(self, values: FloatArray) -> None:
        self.values, self.weights = values, exact_weights(values)
        variation = (np.abs(values - values.mean(axis=1, keepdims=True)) * self.weights).max(axis=1)
        size = (np.abs(values) * self.weights).max(axis=1)
        self.rounding: FloatArray = EXACT_RESIDUAL * np.minimum(variation, 1.0) + EXACT_RESIDUAL_OF_SIZE * size

    def part(self, rows: NDArray[np.bool_]) -> Exactness:
        """Return the same of some call paths."""
        return Exactness(self.values[rows])

    def scores(self, fitted: Fitted, rows: NDArray[np.int64] | slice = slice(None)) -> FloatArray:
        """Return scores (M, H): all the same where hypotheses reproduce call paths `rows`, inf where they do not."""
        return np.where(fitted.worst <= self.rounding[rows, None], EXACTLY, np.inf)


def exact_weights(values: FloatArray, part: float = 1e-4) -> FloatArray:
    """Return weights of relative errors (N, C); values below this part of the largest one count as that."""
    top = np.abs(values).max(axis=1, keepdims=True)
    weights: FloatArray = 1.0 / np.maximum(np.abs(values), np.where(top > 1e-240, part * top, 1.0))
    return weights
