# SPDX-License-Identifier: Apache-2.0
"""The rate of one call path: seconds per unit of work, and how it changes with the work and with the ranks.

    ln(time - start) = ln work + level + growth(ln work) + sharing(ranks) + noise

Level, growth and sharing are Gaussian, so that their posterior has a closed form (Rasmussen and Williams, Gaussian
Processes for Machine Learning, 2006, chapter 2.7: explicit basis functions). Growth is the effect of caches. Its mean
depends on the bandwidth of the call path. Its slope changes slowly (an Ornstein-Uhlenbeck process): a rate that grew
continues to grow for some doublings of the work. The scales were measured with public programs
(`make bench-program_times`).
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
"""Relative errors of one measurement that a call path may have."""
KINDS = (0.5, 0.25, 0.25)
"""Expected shares of call paths with a steady rate, a changing rate, and a steady rate with a start; the sum is 1."""
INSTRUCTION = 2e-10
"""Seconds that a unit of work usually takes."""
_LACK_OF_FIT = 0.03  # relative error that all repetitions of a configuration share
_TICK = 2e-5  # absolute error of a measurement (seconds)
_BY_BANDWIDTH = 0.011  # growth of the rate where work doubles, for each doubling of the bandwidth beyond _BANDWIDTH
_BANDWIDTH = 5e9  # bytes loaded and stored per second that memory gives one core
# Standard deviations of the slope of ln rate per doubling of work: _STEADY for steady rates, _STEADY_BY_BANDWIDTH
# more for each doubling of the bandwidth, _CHANGING for changing rates. The slope changes within _SETTLES doublings.
_STEADY = 0.012
_STEADY_BY_BANDWIDTH = 0.012
_CHANGING = 0.15
_SETTLES = 2.0
_START = 0.6  # time that does not depend on the work, as a share of the smallest time
_SHARING = 0.16  # growth of the rate from one rank to very many that share a memory
_SHARING_DEVIATES = 0.1  # its standard deviation
_RATES_DIFFER = 1.0  # standard deviation of ln rate between call paths


@dataclass(frozen=True, eq=False)
class Work:
    """An amount of work of a call path. name: unit of the work; measured: amounts, (configurations,)."""

    name: str
    measured: Floats


@dataclass(frozen=True, eq=False)
class Rate:
    """The posterior of the rate for one kind of work.

    - kind: index in KINDS.
    - ln_weight: logarithm of the evidence, not normalized.
    - seconds: seconds per unit at the largest measured work, before growth.
    - start: seconds that do not depend on the work.

    `at` uses the other attributes.
    """

    work: Work
    kind: int
    ln_weight: float
    seconds: float
    start: float
    _place: Floats  # doublings of work from the largest measured one, and sharing; (configurations, 2)
    _solved: Floats  # inverse covariance times the difference between measured ln rate and mean
    _inverse: Floats
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
    """Return the posteriors of the rate of a call path for each work and kind; empty without times.

    times: seconds (configurations, repetitions), NaN where not measured; ranks: (configurations,); bandwidth: bytes
    loaded and stored per second; noise: relative error of one measurement.
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
    """Return where times (configurations, repetitions) were measured, and the medians there with their variances.

    Variances are relative to the variance of one measurement. NaN and 0 mean: not measured.
    """
    known = np.asarray(np.isfinite(times) & (times > 0), dtype=bool)
    there = np.asarray(known.any(axis=1), dtype=bool)
    middle = np.array([np.median(row[flags]) for row, flags in zip(times[there], known[there], strict=True)])
    repeated = known[there].sum(axis=1)
    # the variance of the median of many values is pi / 2 times the variance of their mean
    return there, middle, np.where(repeated > 2, math.pi / 2, 1.0) / np.maximum(repeated, 1)


def _beyond_memory(bandwidth: float) -> float:
    """Return log2 of a bandwidth divided by the bandwidth of memory; 0 if it is less."""
    return max(math.log2(max(bandwidth, 1.0) / _BANDWIDTH), 0.0)


def _mean(place: Floats, bandwidth: float) -> Floats:
    """Return the mean of ln rate at places (places, 2). Growth ends at the bandwidth of memory."""
    doublings, sharing = place.T
    left = _beyond_memory(bandwidth) * math.log(2) * (1.0 - np.exp(-_BY_BANDWIDTH / math.log(2) * doublings))
    return np.asarray(math.log(INSTRUCTION) + left + _SHARING * sharing)


def _covariance(one: Floats, other: Floats, scale: float) -> Floats:
    """Return the covariance of ln rate between places (places, 2) and others: level, growth, sharing.

    scale: standard deviation of the slope.
    """
    first, second = one[:, None, 0], other[None, :, 0]
    growth = 0.5 * scale**2 * (_moved(first) + _moved(second) - _moved(first - second))
    return np.asarray(_RATES_DIFFER**2 + growth + _SHARING_DEVIATES**2 * one[:, None, 1] * other[None, :, 1])


def _moved(doublings: Floats) -> Floats:
    """Return the variance of the integral of a slope with variance 1 over some doublings of work."""
    length = np.abs(doublings) / _SETTLES
    return np.asarray(2.0 * _SETTLES**2 * (length - 1.0 + np.exp(-length)))
