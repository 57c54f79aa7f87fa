# SPDX-License-Identifier: Apache-2.0
"""Exponents of recursions that halve a size: Karatsuba's n^log2(3), Strassen's n^log2(7).

What calls itself `calls` times on half of n is n^log2(calls). These are no fractions: exponents are the nearest ones of
so many parts, whose powers have all digits of a floating point number.
"""

from __future__ import annotations

import math
from fractions import Fraction

_PARTS_OF_ONE, _FRACTIONS = 10**8, 1 << 16
# Parts of a number of calls that rounding of exponents makes.
_ROUNDED = 1e-9
# The work of a call may have other powers, so that its product with the calls is a recursion and a few whole powers.
_MOST_BESIDE = 3


def recursion(calls: int) -> Fraction:
    """Return the exponent log2(calls)."""
    return Fraction(math.log2(calls)).limit_denominator(_PARTS_OF_ONE)


def recursion_of(exponent: Fraction) -> int | None:
    """Return the number of calls that an exponent is the logarithm of, None if it is a simple fraction or no such."""
    if exponent.denominator <= _FRACTIONS or not 0 < exponent < _FRACTIONS.bit_length():
        return None
    size = 2.0 ** float(exponent)
    calls = round(size)
    return calls if abs(size - calls) <= _ROUNDED * size else None


def recursion_text(exponent: Fraction) -> str | None:
    """Return an exponent of a recursion, with whole powers beside it, as "log2(7)" or "log2(7)-1"; None if it is none.

    Of several with the same value the one of the fewest powers beside it.
    """
    if exponent.denominator <= _FRACTIONS:
        return None
    for beside in sorted(range(-_MOST_BESIDE, _MOST_BESIDE + 1), key=abs):
        if calls := recursion_of(exponent - beside):
            return f"log2({calls})" + (f"{beside:+d}" if beside else "")
    return None
