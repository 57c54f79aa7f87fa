"""Criterion for counts that a model reproduces to rounding: what does so is better than all that does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..hypotheses.pool import Fitted

# Below all scores of models that are not exact.
EXACTLY = -1e9


@dataclass(frozen=True, eq=False)
class Exactness:
    """For counts (N, C); rounding: (N,) the largest weighted residual that counts as rounding."""

    values: FloatArray
    weights: FloatArray
    rounding: FloatArray

    def scores(self, fitted: Fitted, rows: NDArray[np.int64]) -> FloatArray:
        """Return scores (M, H): all the same where hypotheses reproduce call paths `rows`, inf where they do not."""
        return np.where(fitted.worst <= self.rounding[rows, None], EXACTLY, np.inf)
