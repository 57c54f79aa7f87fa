# SPDX-License-Identifier: Apache-2.0
"""Weight measurements whose noise only makes them longer.

Other programs, the operating system and a busy network delay a run; nothing makes a run faster than its work. A value
far above a fit is therefore weaker evidence than a value below it. The weights are the weights of an M-estimator
(Huber, Robust Statistics, 1981, section 7). Its loss is quadratic up to one deviation above the fit, and logarithmic
beyond. The deviation is estimated from the values below the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray

# Smallest relative deviation: scatter of clocks and caches.
_LEAST = 0.01
# Standard deviation divided by the median distance from the mean, for a normal distribution.
NORMAL = 1.4826

# Factor for values above the fit in the first rounds, which search the lower edge of the values.
_ABOVE = 0.3
FIRST_ROUNDS = 5


# A deviation that all repetitions of a configuration share is noise only if it is at least this number of deviations
# above the fit. If noise affects half of the values, it affects all five of five repetitions in 1/32 of the
# configurations (all three of three in 1/8, which is too often).
_SHARED = 3.0
# From this number of repetitions on, half of them may be disturbed. The two smallest of three undisturbed repetitions
# differ by this number of standard deviations (median).
LEAST_REPETITIONS, _APART = 5, 0.69


@dataclass(frozen=True, eq=False)
class Undisturbed:
    """Estimates of times without noise from the smallest repetitions of N call paths.

    least: the smallest repetition of the configuration of each value, (N, C). deviation: relative standard deviation of
    undisturbed values, (N,). Differences between the lower and the upper half of the repetitions are noise.
    """

    least: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Undisturbed:
        """Return the estimates from values (N, C, R) with R repetitions of each configuration, at least two."""
        first, second = np.moveaxis(np.partition(values, 1, axis=2)[:, :, :2], 2, 0)
        apart = second / np.where(first > 0, first, np.inf) - np.where(first > 0, 1.0, 0.0)
        least = np.repeat(first, values.shape[2], axis=1)
        return cls(least, np.median(apart, axis=1) / _APART)

    def take(self, paths: NDArray[np.int64]) -> Undisturbed:
        """Return the estimates of some call paths."""
        return Undisturbed(self.least[paths], self.deviation[paths])


def one_sided_weights(
    values: FloatArray, fitted: FloatArray, first: bool = False, undisturbed: Undisturbed | None = None
) -> FloatArray:
    """Return factors (N, C) in (0, 1] for the weights of values (N, C), relative to a fit.

    - first: factors of an expectile below the mean (Newey and Powell, Econometrica 55, 1987). The iteration starts with
      it: if half of the values are too long by the same factor, the median does not show which half is disturbed.
    - undisturbed: estimates from the smallest repetitions, if there are enough. A deviation above the fit that all
      repetitions share is a misfit and no noise, unless only few configurations have it. The deviation of undisturbed
      values is estimated from repetitions, because the fit may be above the values.
    """
    if undisturbed is None:
        return _weights(values, fitted, first)
    lowest = undisturbed.least
    above = lowest / np.where(fitted > 0, fitted, np.inf) - np.where(fitted > 0, 1.0, 0.0)
    usual = _SHARED * np.maximum(NORMAL * np.median(np.abs(above), axis=1), _LEAST)[:, None]
    shared = np.where(above > usual, usual / np.maximum(above, usual), 1.0)
    deviation = np.maximum(undisturbed.deviation, 2.0 * _LEAST)  # relative to the smallest value, not to the median
    return shared * _weights(values, np.maximum(fitted, lowest), first, deviation)


def _weights(values: FloatArray, fitted: FloatArray, first: bool, deviation: FloatArray | None = None) -> FloatArray:
    """Return the factors of values (N, C). deviation: of undisturbed values (N,); default: of values below the fit."""
    relative = values / np.where(fitted > 0, fitted, np.inf) - np.where(fitted > 0, 1.0, 0.0)
    if first:
        return np.where(relative > 0, _ABOVE, 1.0)
    if deviation is None:
        below = np.sort(np.where(relative <= 0, -relative, np.inf), axis=1)
        known = np.isfinite(below).sum(axis=1)
        middle = np.stack([(known - 1) // 2, known // 2], axis=1).clip(0)
        deviation = np.where(known > 0, NORMAL * np.take_along_axis(below, middle, axis=1).mean(axis=1), 0.0)
    deviation = np.maximum(deviation, _LEAST)[:, None]
    factors: FloatArray = np.where(relative > deviation, deviation / np.maximum(relative, deviation), 1.0)
    return factors
