# SPDX-License-Identifier: Apache-2.0
"""Which numbers of ranks continue those that were measured, up to that of a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_LARGEST_ROOT = 3


def rank_counts(declared: Sequence[float], target: float) -> list[int]:
    """Return the numbers of ranks beyond the declared ones, up to the target, ascending, with the target as the last.

    They continue the declared ones: by their factor if they have one; where these are squares or cubes of whole numbers
    and the target is one, too, the roots are doubled; else the numbers are doubled.
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
    """Return 2 if all are squares of whole numbers, 3 if cubes, else 1."""
    for root in range(2, _LARGEST_ROOT + 1):
        if all(round(value ** (1 / root)) ** root == value for value in values):
            return root
    return 1
