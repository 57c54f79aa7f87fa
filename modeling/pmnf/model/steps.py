# SPDX-License-Identifier: Apache-2.0
"""Functions of one parameter that grow in steps: a logarithm that is rounded up or down.

Examples: merging sorted runs of 7 elements takes ⌈log2(n/7)⌉ passes, a tree has ⌊log2(n)⌋ levels, and a vector that
doubles its capacity has 2^⌈log2(n)⌉ places. The last one stays between n and 2·n without a limit of the ratio. A
parameter may also be the number of doublings itself: the levels of a refined grid, the scale of a graph, the logarithm
of the size of a transform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...experiment import FloatArray

# Powers of two, because their logarithms to base 2 are exact in floating point.
BASES = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Steps:
    """The number of steps up to a parameter x: ⌈log_base(x/unit)⌉, or ⌊log_base(x/unit)⌋ if `down`; 0 for x <= unit.

    base: one of BASES. unit: at least 1. itself: the number of steps is x; a size of base^x has x steps.
    """

    base: int
    unit: int = 1
    down: bool = False
    itself: bool = False

    @property
    def bits(self) -> int:
        """Return the logarithm of the base to base 2."""
        return self.base.bit_length() - 1

    def number(self, x: FloatArray) -> FloatArray:
        """Return the number of steps up to each value of `x` > 0; same shape."""
        if self.itself:
            return x
        ratio = np.log2(x / self.unit) / self.bits
        result: FloatArray = np.maximum(np.floor(ratio) if self.down else np.ceil(ratio), 0.0)
        return result

    def text(self, parameter: str) -> str:
        """Return the number of steps as text: ⌈log2(n/7)⌉, or n."""
        if self.itself:
            return parameter
        left, right = "⌊⌋" if self.down else "⌈⌉"
        return f"{left}log{self.base}({self.quotient(parameter)}){right}"

    def quotient(self, parameter: str) -> str:
        """Return the parameter divided by the unit as text: n/7, or n if the unit is 1."""
        return parameter if self.unit == 1 else f"{parameter}/{self.unit}"
