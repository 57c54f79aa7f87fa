# SPDX-License-Identifier: Apache-2.0
"""Functions of one parameter that rise in steps: how often a size is doubled until it is as large as the parameter.

Passes of merges over sorted runs of 7 elements are ⌈log2(n/7)⌉, levels of a tree ⌊log2(n)⌋, and a vector that doubles
its capacity has 2^⌈log2(n)⌉ places. They tend to no power of n, but grow like one. A parameter may be the number of
doublings itself: levels of a grid that is refined, the scale of a graph, the logarithm of the size of a transform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...experiment import FloatArray

# Powers of two, whose logarithms to base 2 are exact in floating point at all steps.
BASES = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Steps:
    """⌈log_base(x/unit)⌉, or ⌊log_base(x/unit)⌋ if `down`; 0 up to the unit. base: one of BASES. unit: from 1.

    If `itself` it is the parameter x, and base^x is the size that it stands for.
    """

    base: int
    unit: int = 1
    down: bool = False
    itself: bool = False

    @property
    def bits(self) -> int:
        """The logarithm of the base to base 2."""
        return self.base.bit_length() - 1

    def number(self, x: FloatArray) -> FloatArray:
        """Return how many steps there are up to the values `x` > 0; same shape."""
        if self.itself:
            return x
        ratio = np.log2(x / self.unit) / self.bits
        result: FloatArray = np.maximum(np.floor(ratio) if self.down else np.ceil(ratio), 0.0)
        return result

    def text(self, parameter: str) -> str:
        """Return the number of steps as a person writes it: ⌈log2(n/7)⌉, or n."""
        if self.itself:
            return parameter
        left, right = "⌊⌋" if self.down else "⌈⌉"
        return f"{left}log{self.base}({self.quotient(parameter)}){right}"

    def quotient(self, parameter: str) -> str:
        """Return the parameter in units."""
        return parameter if self.unit == 1 else f"{parameter}/{self.unit}"
