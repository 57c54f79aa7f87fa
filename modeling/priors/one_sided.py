# SPDX-License-Identifier: Apache-2.0
"""Trust in measurements whose noise makes them longer, hardly ever shorter.

Other programs, the operating system and a busy network delay a run; nothing makes it faster than the work takes. So
values far above a fit say less than values below it. Weights are those of an M-estimator (Huber, Robust Statistics,
1981, section 7) with a loss that is quadratic below and up to one deviation above, and logarithmic beyond, where the
deviation is that of the values below the fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray

# A deviation is at least this part of the value: clocks and caches scatter so much.
_LEAST = 0.01
# The median distance of a normal distribution from its mean in standard deviations, inverted.
NORMAL = 1.4826

# What values above the fit count in the first rounds, which look for the lower edge of the values.
_ABOVE = 0.3
FIRST_ROUNDS = 5


# What all repetitions of a configuration share is noise only if it is so many deviations above the fit: noise that hits
# half of the values hits all of five in a thirtieth of the configurations (all of three in an eighth: too many).
_SHARED = 3.0
# Repetitions of which half are disturbed have others left, from this number on. The two least of three that noise
# leaves alone are, in the middle, this many standard deviations apart.
LEAST_REPETITIONS, _APART = 5, 0.69


@dataclass(frozen=True, eq=False)
class Undisturbed:
    """What the least repetitions of N call paths say of times without noise.

    least: of each value (N, C), the least repetition of its configuration. deviation: the relative standard deviation
    of values that noise leaves alone (N,). What lies between the lower half and the upper one is noise itself.
    """

    least: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Undisturbed:
        """Return that of values (N, C, R) with R repetitions of each configuration, two or more."""
        first, second = np.moveaxis(np.partition(values, 1, axis=2)[:, :, :2], 2, 0)
        apart = second / np.where(first > 0, first, np.inf) - np.where(first > 0, 1.0, 0.0)
        least = np.repeat(first, values.shape[2], axis=1)
        return cls(least, np.median(apart, axis=1) / _APART)

    def take(self, paths: NDArray[np.int64]) -> Undisturbed:
        """Return that of some call paths."""
        return Undisturbed(self.least[paths], self.deviation[paths])


def trust(
    values: FloatArray, fitted: FloatArray, first: bool = False, undisturbed: Undisturbed | None = None
) -> FloatArray:
    """Return factors (N, C) in (0, 1] for the weights of values (N, C), given a fit to them.

    first: the factors of an expectile below the mean (Newey and Powell, Econometrica 55, 1987), from which the rounds
    start: if half of the values are too long by the same part, those and the others look alike from the middle.
    undisturbed: what the least repetitions say, where there are enough of them. What they share above the fit is no
    noise but something that the fit does not have, unless few configurations are like that; and how far values below
    the fit are from it says less of what noise leaves alone than repetitions do: the fit may be above these.
    """
    if undisturbed is None:
        return _trusted(values, fitted, first)
    lowest = undisturbed.least
    above = lowest / np.where(fitted > 0, fitted, np.inf) - np.where(fitted > 0, 1.0, 0.0)
    usual = _SHARED * np.maximum(NORMAL * np.median(np.abs(above), axis=1), _LEAST)[:, None]
    shared = np.where(above > usual, usual / np.maximum(above, usual), 1.0)
    deviation = np.maximum(undisturbed.deviation, 2.0 * _LEAST)  # from the least value, not from the middle
    return shared * _trusted(values, np.maximum(fitted, lowest), first, deviation)


def _trusted(values: FloatArray, fitted: FloatArray, first: bool, deviation: FloatArray | None = None) -> FloatArray:
    """Return the factors of values (N, C); deviation: of those that noise leaves alone (N,), else of those below."""
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
