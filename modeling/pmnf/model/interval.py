# SPDX-License-Identifier: Apache-2.0
"""Intervals of predictions: quantiles of mixtures of hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, log, sqrt

from ..calibration import LARGEST_LOGARITHM, MOST_DEVIATION

SQRT_2 = sqrt(2.0)
LEVELS = (0.05, 0.95)


def interval(values: Sequence[float], weights: Sequence[float], error: float) -> tuple[float, float]:
    """Return (lower, upper), the 90 % interval of a mixture of hypotheses, which contains the first value.

    values: the prediction of each hypothesis; weights: their posterior probabilities, up to a common factor; error: the
    standard error of the first value. All hypotheses have the same relative standard error, at most MOST_DEVIATION. If
    all values are positive, their errors are log-normal, because a deviation of an exponent changes a prediction by a
    factor; otherwise they are normal.
    """
    first, size = values[0], max(map(abs, values)) or 1.0
    relative = min(error / abs(first), MOST_DEVIATION) if first else 0.0
    if len(values) == 1 and not error:
        return first, first
    if relative and min(values) > 0.0:
        centres = [log(value) for value in values]
        low, high = mixture_quantiles(centres, [relative] * len(values), weights, LEVELS)
        lower, upper = exp(low), exp(min(high, LARGEST_LOGARITHM))
    else:  # values are divided by the largest one, so that large numbers do not overflow
        deviations = [max(abs(value) * relative, error if value == first else 0.0) / size for value in values]
        low, high = mixture_quantiles([value / size for value in values], deviations, weights, LEVELS)
        lower, upper = low * size, high * size
        if min(values) >= 0.0:
            lower = max(lower, 0.0)
    return min(lower, first), max(upper, first)


def mixture_quantiles(
    means: Sequence[float], deviations: Sequence[float], weights: Sequence[float], levels: Sequence[float]
) -> list[float]:
    """Return the quantiles of a mixture of normal distributions at `levels` (probabilities), by bisection.

    deviations: standard deviations; 0 is a distribution with a single value.
    """
    total = sum(weights)
    lowest = min(m - 8.0 * d for m, d in zip(means, deviations, strict=True))
    highest = max(m + 8.0 * d for m, d in zip(means, deviations, strict=True))

    def below(x: float) -> float:
        parts = zip(means, deviations, weights, strict=True)
        return sum(w * (0.5 * erfc((m - x) / (d * SQRT_2)) if d > 0 else float(m <= x)) for m, d, w in parts) / total

    quantiles = []
    for level in levels:
        low, high = lowest, highest
        if below(low) >= level:
            high = low
        for _ in range(60):
            if high - low <= 1e-9 * max(abs(low), abs(high), highest - lowest):
                break
            middle = 0.5 * (low + high)
            low, high = (low, middle) if below(middle) >= level else (middle, high)
        quantiles.append(high)
    return quantiles
