# SPDX-License-Identifier: Apache-2.0
"""When a search has done enough: its batches make the prediction at the target no better, and promise no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from quipu.modeling.design.state import Suggestion

PROGRESS = 0.05
"""Share by which a batch makes the uncertainty of the prediction at the target smaller, if it makes it better."""


class Patience:
    """Counts batches that made the prediction at the target no better.

    A batch counts if it did not make the standard deviation of the prediction smaller by `PROGRESS`, and the next one
    is not expected to either; one that did makes the count 0. Batches before the first `look`, such as those of the
    lines of the parameters, do not count: the models that there are without them know too little to doubt themselves.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last = math.inf
        self.count = 0

    def look(self, uncertainty: float, suggestions: Sequence[Suggestion]) -> bool:
        """Return whether so many batches made it no better.

        uncertainty: standard deviation of the prediction at the target, as a share of it; NaN if not known.
        suggestions: the next batch, with gains.
        """
        left = max(1.0 - sum(one.gain for one in suggestions), 0.0)
        if uncertainty <= (1.0 - PROGRESS) * self._last and uncertainty < self._last:
            self.count = 0
        elif math.sqrt(left) > 1.0 - PROGRESS:
            self.count += 1
        self._last = uncertainty if math.isfinite(uncertainty) else math.inf
        return self.count >= self._most
