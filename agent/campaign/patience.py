# SPDX-License-Identifier: Apache-2.0
"""Decide when a search ends: when its batches no longer improve the prediction at the target."""

from __future__ import annotations

import math
from collections.abc import Sequence

from quipu.modeling.design.state import Suggestion

PROGRESS = 0.05
"""A batch improves the prediction if it reduces the standard deviation of the prediction at least by this share."""


class Patience:
    """Counts consecutive batches without improvement of the prediction at the target.

    A batch counts if it did not reduce the standard deviation of the prediction by the share `PROGRESS`, and the next
    batch is not expected to do so either. An improvement resets the count to 0. The first call of `look` comes after
    the initial runs, which vary one parameter at a time: without these runs, models underestimate their uncertainty.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last = math.inf
        self.count = 0

    def look(self, uncertainty: float, suggestions: Sequence[Suggestion]) -> bool:
        """Return whether the number of batches without improvement has reached the limit.

        uncertainty: relative standard deviation of the prediction at the target; not finite if unknown. suggestions:
        the next batch. The gain of a suggestion is the expected reduction of the variance, as a share.
        """
        left = max(1.0 - sum(one.gain for one in suggestions), 0.0)
        if uncertainty <= (1.0 - PROGRESS) * self._last and uncertainty < self._last:
            self.count = 0
        elif math.sqrt(left) > 1.0 - PROGRESS:
            self.count += 1
        self._last = uncertainty if math.isfinite(uncertainty) else math.inf
        return self.count >= self._most
