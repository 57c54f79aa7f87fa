# SPDX-License-Identifier: Apache-2.0
"""How far a point is from the measurements that a prediction rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

# Beyond so many times the measured range no benchmark checks predictions and their intervals
# (benchmarks/modeling_layouts.py predicts at 2 and at 16 times).
FAR = 16.0
# Whose upper end is so many times the lower one, an interval says that the measurements leave the value open.
OPEN = 1000.0


def times_beyond(point: Mapping[str, float], ranges: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return how many times a point lies beyond measured ranges, by parameter; those in which it does not are left out.

    128 is 8 times beyond 1 to 16, and 0.5 is twice.
    """
    result = {}
    for (name, x), (low, high) in zip(point.items(), ranges, strict=True):
        if x > high:
            result[name] = x / high if high > 0 else math.inf
        elif x < low:
            result[name] = low / x if x > 0 else math.inf
    return result


def is_far(beyond: Mapping[str, float]) -> bool:
    """Whether a point is farther beyond the measured range than any benchmark checks predictions."""
    return any(x > FAR for x in beyond.values())
