# SPDX-License-Identifier: Apache-2.0
"""Fit the rate of one call path: seconds per unit of work, as a function of the work and of the number of ranks.

    ln(time - start) = ln work + level + growth(ln work) + sharing(ranks) + noise

- start: time that does not depend on the work (seconds).
- level: ln rate at the largest measured work on one rank.
- growth: change of ln rate with the work, caused by caches. Its mean depends on the bandwidth of the call path. Its
  slope is an Ornstein-Uhlenbeck process, so a rate that grew continues to grow for some doublings of the work.
- sharing: increase of ln rate with the number of ranks that share a memory.

Level, growth and sharing have Gaussian priors, so their posterior has a closed form (Rasmussen and Williams, Gaussian
Processes for Machine Learning, 2006, chapter 2.7: explicit basis functions). The constants were measured with public
programs (`make bench-program_times`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOISES = (0.015, 0.03, 0.06, 0.12, 0.25, 0.5)
"""Noise levels that are tried for a call path: relative errors of one measurement."""
KINDS = (0.5, 0.25, 0.25)
"""Expected shares of the three kinds of call paths: a steady rate, a changing rate, a steady rate and a start > 0."""
INSTRUCTION = 2e-10
"""Prior median of the rate: seconds per unit of work (instruction or byte)."""
_LACK_OF_FIT = 0.03  # relative error that all repetitions of a configuration share
_TICK = 2e-5  # absolute error of a measurement (seconds)
# Mean relative growth of the rate if the work doubles, for each doubling of the bandwidth above _BANDWIDTH.
_BY_BANDWIDTH = 0.011
_BANDWIDTH = 5e9  # bytes loaded and stored per second that memory gives one core
# Standard deviations of the slope of ln rate per doubling of work: _CHANGING for changing rates, _STEADY for steady
# rates, plus _STEADY_BY_BANDWIDTH for each doubling of the bandwidth above _BANDWIDTH. _SETTLES: correlation length of
# the slope (doublings of work).
_STEADY = 0.012
_STEADY_BY_BANDWIDTH = 0.012
_CHANGING = 0.15
_SETTLES = 2.0
_START = 0.6  # start of the third kind in KINDS, as a share of the smallest measured time
_SHARING = 0.16  # mean increase of ln rate from one rank to very many ranks that share a memory
_SHARING_DEVIATES = 0.1  # standard deviation of this increase
_RATES_DIFFER = 1.0  # standard deviation of ln rate between call paths


@dataclass(frozen=True, eq=False)
class Work:
    """The work of a call path. name: unit of the work. measured: amounts of work, shape (configurations,)."""

    name: str
    measured: Floats


@dataclass(frozen=True, eq=False)
class Rate:
    """The posterior of the rate for one kind of work.

    - kind: index in KINDS.
    - ln_weight: natural logarithm of the evidence, without normalization.
    - seconds: seconds per unit of work at the largest measured work on one rank.
    - start: seconds that do not depend on the work.

    `at` uses the private attributes.
    """

    work: Work
    kind: int
    ln_weight: float
    seconds: float
    start: float
    _place: Floats  # log2(work / largest measured work), and 1 - 1 / ranks; shape (configurations, 2)
    _solved: Floats  # _inverse @ (measured ln rate - its prior mean)
    _inverse: Floats  # inverse covariance of the measured ln rates
    _scale: float
    _bandwidth: float

    def at(self, work: float, ranks: float) -> tuple[float, float]:
        """Return the mean and the standard deviation of ln(time - start) for an amount of work above 0."""
        there = np.array([[math.log2(work) - self._largest, 1.0 - 1.0 / ranks]])
        across = _covariance(there, self._place, self._scale)[0]
        mean = _mean(there, self._bandwidth)[0] + across @ self._solved + math.log(work)
        variance = _covariance(there, there, self._scale)[0, 0] - across @ self._inverse @ across
        return float(mean), math.sqrt(max(float(variance), 0.0) + _LACK_OF_FIT**2)

    @property
    def _largest(self) -> float:
        return math.log2(float(self.work.measured.max()))


def rates(times: Floats, works: Sequence[Work], ranks: Floats, bandwidth: float, noise: float) -> list[Rate]:
    """Return the posteriors of the rate of a call path, one for each work and each kind in KINDS.

    The result is empty without times. A work that is 0 at a configuration with a time has no rate.

    - times: seconds, shape (configurations, repetitions); NaN where not measured.
    - ranks: number of ranks, shape (configurations,).
    - bandwidth: bytes loaded and stored per second.
    - noise: relative error of one measurement.
    """
    there, middle, repeated = medians(times)
    if not there.any():
        return []
    variance = _LACK_OF_FIT**2 + (noise**2 + (_TICK / middle) ** 2) * repeated
    steady = _STEADY + _STEADY_BY_BANDWIDTH * _beyond_memory(bandwidth)
    kinds = ((steady, 0.0), (_CHANGING, 0.0), (steady, _START * float(middle.min())))
    found = []
    for work in works:
        own = work.measured[there]
        if not (own > 0).all():
            continue
        place = np.stack([np.log2(own) - np.log2(work.measured.max()), 1.0 - 1.0 / ranks[there]], axis=1)
        mean = _mean(place, bandwidth)
        for kind, (scale, start) in enumerate(kinds):
            left = middle - start
            covariance = _covariance(place, place, scale) + np.diag(variance * (middle / left) ** 2)
            inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
            beyond = np.log(left / own) - mean
            solved = inverse @ beyond
            weight = -0.5 * beyond @ solved - 0.5 * np.linalg.slogdet(covariance)[1]
            level = _mean(np.zeros((1, 2)), bandwidth) + _covariance(np.zeros((1, 2)), place, scale) @ solved
            seconds = math.exp(level[0])
            found.append(Rate(work, kind, float(weight), seconds, start, place, solved, inverse, scale, bandwidth))
    return found


def medians(times: Floats) -> tuple[Flags, Floats, Floats]:
    """Return a mask of the configurations with times, and the medians of the times there with their variances.

    times: seconds, shape (configurations, repetitions); NaN and 0 mean: not measured. A variance of 1 is the variance
    of one measurement.
    """
    known = np.asarray(np.isfinite(times) & (times > 0), dtype=bool)
    there = np.asarray(known.any(axis=1), dtype=bool)
    middle = np.array([np.median(row[flags]) for row, flags in zip(times[there], known[there], strict=True)])
    repeated = known[there].sum(axis=1)
    # The variance of the median of many values is pi / 2 times the variance of their mean.
    return there, middle, np.where(repeated > 2, math.pi / 2, 1.0) / np.maximum(repeated, 1)


def _beyond_memory(bandwidth: float) -> float:
    """Return log2(bandwidth / _BANDWIDTH); 0 if the bandwidth is below _BANDWIDTH."""
    return max(math.log2(max(bandwidth, 1.0) / _BANDWIDTH), 0.0)


def _mean(place: Floats, bandwidth: float) -> Floats:
    """Return the prior mean of ln rate at places, shape (places,).

    place: shape (places, 2), as `Rate._place`. The rate grows until the bandwidth of the call path is _BANDWIDTH.
    """
    doublings, sharing = place.T
    left = _beyond_memory(bandwidth) * math.log(2) * (1.0 - np.exp(-_BY_BANDWIDTH / math.log(2) * doublings))
    return np.asarray(math.log(INSTRUCTION) + left + _SHARING * sharing)


def _covariance(one: Floats, other: Floats, scale: float) -> Floats:
    """Return the prior covariance of ln rate between each of the places `one` and each of the places `other`.

    one, other: shape (places, 2), as `Rate._place`. scale: standard deviation of the slope of the growth.
    """
    first, second = one[:, None, 0], other[None, :, 0]
    growth = 0.5 * scale**2 * (_moved(first) + _moved(second) - _moved(first - second))
    return np.asarray(_RATES_DIFFER**2 + growth + _SHARING_DEVIATES**2 * one[:, None, 1] * other[None, :, 1])


def _moved(doublings: Floats) -> Floats:
    """Return the variance of the change of ln rate over some doublings of work, for a slope of variance 1."""
    length = np.abs(doublings) / _SETTLES
    return np.asarray(2.0 * _SETTLES**2 * (length - 1.0 + np.exp(-length)))
