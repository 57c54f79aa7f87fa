# SPDX-License-Identifier: Apache-2.0
"""Exponents of recursions that halve a size: Karatsuba's n^log2(3), Strassen's n^log2(7).

A function that calls itself `calls` times on half of n does n^log2(calls) work. These exponents are irrational. They
are represented by fractions with large denominators, up to 10^8, which are precise enough to recover `calls`.
"""

from __future__ import annotations

import math
from fractions import Fraction

_PARTS_OF_ONE, _FRACTIONS = 10**8, 1 << 16
# Largest relative error of 2^exponent compared with the number of calls, due to the rounding of exponents.
_ROUNDED = 1e-9
# A recursion may be multiplied by a whole power of n. Its exponent is then log2(calls) plus a number up to this one.
_MOST_BESIDE = 3


def recursion(calls: int) -> Fraction:
    """Return the exponent log2(calls) as a fraction."""
    return Fraction(math.log2(calls)).limit_denominator(_PARTS_OF_ONE)


def recursion_of(exponent: Fraction) -> int | None:
    """Return `calls` of an exponent log2(calls); None if the exponent is a simple fraction or no such logarithm."""
    if exponent.denominator <= _FRACTIONS or not 0 < exponent < _FRACTIONS.bit_length():
        return None
    size = 2.0 ** float(exponent)
    calls = round(size)
    return calls if abs(size - calls) <= _ROUNDED * size else None


def recursion_text(exponent: Fraction) -> str | None:
    """Return an exponent as text such as "log2(7)" or "log2(7)-1"; None if it has no such form.

    log2(14) is also log2(7)+1; the text with the smallest added number is returned.
    """
    if exponent.denominator <= _FRACTIONS:
        return None
    for beside in sorted(range(-_MOST_BESIDE, _MOST_BESIDE + 1), key=abs):
        if calls := recursion_of(exponent - beside):
            return f"log2({calls})" + (f"{beside:+d}" if beside else "")
    return None
