# SPDX-License-Identifier: Apache-2.0
"""Decide when a search ends: its batches no longer improve the prediction at the target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from quipu.modeling.design.state import Suggestion

PROGRESS = 0.05
"""Least relative reduction of the uncertainty of the prediction by a batch that counts as an improvement."""


class Patience:
    """Counts consecutive batches without improvement of the prediction at the target.

    A batch counts if it did not reduce the standard deviation of the prediction by the share `PROGRESS`, and the next
    batch is not expected to do so. An improvement resets the count to 0. Batches before the first call of `look`, such
    as the initial lines of the parameters, do not count, because models without them underestimate their uncertainty.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last = math.inf
        self.count = 0

    def look(self, uncertainty: float, suggestions: Sequence[Suggestion]) -> bool:
        """Return whether the number of batches without improvement has reached the limit.

        uncertainty: relative standard deviation of the prediction at the target; NaN if unknown. suggestions: the next
        batch, with expected gains.
        """
        left = max(1.0 - sum(one.gain for one in suggestions), 0.0)
        if uncertainty <= (1.0 - PROGRESS) * self._last and uncertainty < self._last:
            self.count = 0
        elif math.sqrt(left) > 1.0 - PROGRESS:
            self.count += 1
        self._last = uncertainty if math.isfinite(uncertainty) else math.inf
        return self.count >= self._most
