# SPDX-License-Identifier: Apache-2.0
"""Exponents of recursions that halve a size: Karatsuba's n^log2(3), Strassen's n^log2(7).

A function that calls itself `calls` times on half of n does n^log2(calls) work. These exponents are no fractions. They
are represented by fractions with a fixed denominator whose powers are exact to double precision.
"""

from __future__ import annotations

import math
from fractions import Fraction

_PARTS_OF_ONE, _FRACTIONS = 10**8, 1 << 16
# Relative error of the number of calls by rounding of exponents.
_ROUNDED = 1e-9
# The work of a call may contain whole powers, so the exponent is that of a recursion plus a few whole numbers.
_MOST_BESIDE = 3


def recursion(calls: int) -> Fraction:
    """Return the exponent log2(calls)."""
    return Fraction(math.log2(calls)).limit_denominator(_PARTS_OF_ONE)


def recursion_of(exponent: Fraction) -> int | None:
    """Return the number of calls whose logarithm is an exponent; None if it is a simple fraction or no logarithm."""
    if exponent.denominator <= _FRACTIONS or not 0 < exponent < _FRACTIONS.bit_length():
        return None
    size = 2.0 ** float(exponent)
    calls = round(size)
    return calls if abs(size - calls) <= _ROUNDED * size else None


def recursion_text(exponent: Fraction) -> str | None:
    """Return an exponent of a recursion with whole powers as "log2(7)" or "log2(7)-1"; None if it is none.

    If several have the same value, the one with the fewest powers is returned.
    """
    if exponent.denominator <= _FRACTIONS:
        return None
    for beside in sorted(range(-_MOST_BESIDE, _MOST_BESIDE + 1), key=abs):
        if calls := recursion_of(exponent - beside):
            return f"log2({calls})" + (f"{beside:+d}" if beside else "")
    return None
