# SPDX-License-Identifier: Apache-2.0
"""Criterion for counts that no function reproduces, at points that form no lines: the same as for noisy values."""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import SCATTERED
from ..hypotheses.pool import Fitted
from .criterion import ALL, Rows
from .deviating import Deviating
from .evidence import Evidence


class ScatteredCounts(Evidence):
    """Criterion for the call paths of `deviating`, whose hypotheses must also be plausible there."""

    def __init__(self, deviating: Deviating) -> None:
        unknown = np.zeros(len(deviating.values))
        known = deviating.values, unknown, unknown, True, SCATTERED
        super().__init__(deviating.tables, *known, weights=deviating.weights)
        self.deviating = deviating

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H); inf for implausible hypotheses."""
        refused = ~np.isfinite(fitted.residual) | self.deviating.incredible(fitted, rows)
        return np.where(refused, np.inf, super().scores(fitted, rows))
