"""Trust in measurements whose noise makes them longer, hardly ever shorter.

Other programs, the operating system and a busy network delay a run; nothing makes it faster than the work takes. So
values far above a fit say less than values below it. Weights are those of an M-estimator (Huber, Robust Statistics,
1981, section 7) with a loss that is quadratic below and up to one deviation above, and logarithmic beyond, where the
deviation is that of the values below the fit.
"""

from __future__ import annotations

import numpy as np

from ..experiment import FloatArray

# A deviation is at least this part of the value: clocks and caches scatter so much.
_LEAST = 0.01
# The median distance of a normal distribution from its mean in standard deviations, inverted.
_NORMAL = 1.4826


# What values above the fit count in the first rounds, which look for the lower edge of the values.
_ABOVE = 0.3
FIRST_ROUNDS = 5


def trust(values: FloatArray, fitted: FloatArray, first: bool = False) -> FloatArray:
    """Return factors (N, C) in (0, 1] for the weights of values (N, C), given a fit to them.

    first: the factors of an expectile below the mean (Newey and Powell, Econometrica 55, 1987), from which the rounds
    start: if half of the values are too long by the same part, those and the others look alike from the middle.
    """
    relative = values / np.where(fitted > 0, fitted, np.inf) - np.where(fitted > 0, 1.0, 0.0)
    if first:
        return np.where(relative > 0, _ABOVE, 1.0)
    below = np.sort(np.where(relative <= 0, -relative, np.inf), axis=1)
    known = np.isfinite(below).sum(axis=1)
    middle = np.stack([(known - 1) // 2, known // 2], axis=1).clip(0)
    deviation = np.where(known > 0, _NORMAL * np.take_along_axis(below, middle, axis=1).mean(axis=1), 0.0)
    deviation = np.maximum(deviation, _LEAST)[:, None]
    factors: FloatArray = np.where(relative > deviation, deviation / np.maximum(relative, deviation), 1.0)
    return factors
