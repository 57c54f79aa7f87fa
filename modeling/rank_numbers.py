# SPDX-License-Identifier: Apache-2.0
"""Continue the declared numbers of ranks up to the number of ranks of a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_LARGEST_ROOT = 3


def rank_counts(declared: Sequence[float], target: float) -> list[int]:
    """Return numbers of ranks above the declared ones, ascending, with the target as the last; [] if none is above.

    The first rule that applies gives the numbers:

    - The declared numbers have a constant whole ratio, such as 2: the result continues with this ratio.
    - The declared numbers and the target are all squares, or all cubes: the result doubles their roots.
    - Otherwise, the result contains powers of two.
    """
    known, last = sorted({round(value) for value in declared if value >= 1}), math.floor(target)
    if not known or last <= known[-1]:
        return []
    factors = {b / a for a, b in pairwise(known)}
    root = _common_root([*known, last])
    result: list[int] = []
    value = known[-1]
    factor = factors.pop() if len(factors) == 1 else 0.0
    while True:
        if factor >= 2 and factor.is_integer():
            value = round(value * factor)
        elif root > 1 and len(known) > 1:
            value = (2 * round(value ** (1 / root))) ** root
        else:
            value = 2 ** math.floor(math.log2(value) + 1)
        if value >= last:
            return [*result, last]
        result.append(value)


def _common_root(values: Sequence[int]) -> int:
    """Return 2 if all numbers are squares of whole numbers, 3 if cubes, otherwise 1."""
    for root in range(2, _LARGEST_ROOT + 1):
        if all(round(value ** (1 / root)) ** root == value for value in values):
            return root
    return 1
