# SPDX-License-Identifier: Apache-2.0
"""Measure how far a point is beyond the measured range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

# Benchmarks check predictions and intervals up to this many times the measured range (benchmarks/modeling_layouts.py
# predicts at 2 and at 16 times).
FAR = 16.0
# A prediction is called "not determined" if the upper end of its interval is at least this many times the lower end.
OPEN = 1000.0


def times_beyond(point: Mapping[str, float], ranges: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return the ratio of a point to the nearest end of the range of each parameter, for parameters outside of it.

    For the range 1 to 16, the ratio of 128 is 8, and the ratio of 0.5 is 2. The ratio is infinite if the point or the
    nearest end of the range is 0.

    point: values by parameter. ranges: pairs (lowest, highest), in the same order.
    """
    result = {}
    for (name, x), (low, high) in zip(point.items(), ranges, strict=True):
        if x > high:
            result[name] = x / high if high > 0 else math.inf
        elif x < low:
            result[name] = low / x if x > 0 else math.inf
    return result


def is_far(beyond: Mapping[str, float]) -> bool:
    """Return whether a ratio of `times_beyond` exceeds FAR, up to which benchmarks check predictions."""
    return any(x > FAR for x in beyond.values())
