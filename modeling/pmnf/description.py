# SPDX-License-Identifier: Apache-2.0
"""Compute the length of descriptions of coefficients of loops: small whole numbers and small fractions are short."""

from __future__ import annotations

import math

from .calibration import LOOP_DENOMINATOR
from .grids.calibration import GRID_BITS, GRID_FRACTION, GRID_FUNCTION, GRID_NEGATIVE

# Smaller relative differences are rounding.
_WHOLE = 1e-7


def length_of(coefficient: float) -> float:
    """Return the length of the description of a coefficient; inf if it is no fraction of loops.

    The length is the number of bits of the odd part, plus lengths for a fraction and a sign (Rissanen, Modeling by
    shortest data description, Automatica 14, 1978), as for functions of a process grid.
    """
    part = round(LOOP_DENOMINATOR * coefficient)
    if not part or abs(part - LOOP_DENOMINATOR * coefficient) > _WHOLE * abs(part):
        return math.inf
    size = abs(part)
    odd = size // (size & -size)
    fraction = GRID_FRACTION * (size % int(LOOP_DENOMINATOR) != 0)
    return GRID_FUNCTION + fraction + GRID_BITS * math.ceil(math.log2(odd + 1.0)) + GRID_NEGATIVE * (part < 0)
