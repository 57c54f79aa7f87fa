# SPDX-License-Identifier: Apache-2.0
"""The rate of one call path: seconds per unit of work, and how it changes with the work and with the ranks.

    ln time = ln work + level + growth(ln work) + sharing(ranks) + noise

Level, growth and sharing are Gaussian, so that their posterior has a closed form (Rasmussen and Williams, Gaussian
Processes for Machine Learning, 2006, chapter 2.7: explicit basis functions). Growth is what caches do: it has a mean
that depends on the bandwidth of the call path, a slope of its own, and a random walk. The scales are those of twelve
public programs (`make bench-program_times`).
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
INSTRUCTION = 2e-10
"""Seconds that a unit of work usually takes."""
_LACK_OF_FIT = 0.03  # of a configuration, relative: what its repetitions share
_TICK = 2e-5  # seconds by which any measurement may be off
_GROWTH = 0.004  # of the rate where work doubles, of all call paths
_BY_BANDWIDTH = 0.014  # the same for each doubling of the bandwidth beyond _BANDWIDTH
_WALK_BY_BANDWIDTH = 0.019  # standard deviation of the random walk, likewise
_BANDWIDTH = 5e9  # bytes loaded and stored per second that memory gives one core
# Standard deviations per doubling of work: random walk and slope of rates that are steady, and of those that change.
_STEADY_WALK = 0.017
_STEADY_SLOPE = 0.021
_CHANGING_WALK = 0.21
_CHANGING_SLOPE = 0.06
_BITS_OF_CHANGE = 1.0
_SHARING = 0.16  # growth of the rate from one rank to very many that share a memory
_SHARING_DEVIATES = 0.05  # its standard deviation
_RATES_DIFFER = 1.5  # standard deviation of ln rate between call paths


@dataclass(frozen=True, eq=False)
class Work:
    """An amount of work of a call path. measured: (configurations,); name: of its unit."""

    name: str
    measured: Floats


@dataclass(frozen=True, eq=False)
class Rate:
    """A posterior of the rate for one kind of work. ln_weight: not normalized.

    seconds: per unit at the largest measured work, before growth. The rest is what `at` needs.
    """

    work: Work
    ln_weight: float
    seconds: float
    _place: Floats  # doublings of work from the largest measured one, and sharing; (configurations, 2)
    _solved: Floats  # inverse covariance times what is measured beyond the mean
    _inverse: Floats
    _scales: tuple[float, float]
    _bandwidth: float

    def at(self, work: float, ranks: float) -> tuple[float, float]:
        """Return the mean and the standard deviation of ln time for an amount of work above 0."""
        there = np.array([[math.log2(work) - self._largest, 1.0 - 1.0 / ranks]])
        across = _covariance(there, self._place, self._scales)[0]
        mean = _mean(there, self._bandwidth)[0] + across @ self._solved + math.log(work)
        variance = _covariance(there, there, self._scales)[0, 0] - across @ self._inverse @ across
        return float(mean), math.sqrt(max(float(variance), 0.0) + _LACK_OF_FIT**2)

    @property
    def _largest(self) -> float:
        return math.log2(float(self.work.measured.max()))


def rates(times: Floats, works: Sequence[Work], ranks: Floats, bandwidth: float, noise: float) -> list[Rate]:
    """Return the posteriors of the rate of a call path, one for each kind of work and of growth; none without times.

    times: seconds (configurations, repetitions), NaN where not measured; ranks: (configurations,); bandwidth: bytes
    loaded and stored per second; noise: relative error of one measurement.
    """
    known = np.isfinite(times) & (times > 0)
    there = known.any(axis=1)
    if not there.any():
        return []
    middle = np.array([np.median(row[flags]) for row, flags in zip(times[there], known[there], strict=True)])
    # the median of so many values has pi / 2 times the variance of their mean
    repeated = known[there].sum(axis=1)
    variance = (noise**2 + (_TICK / middle) ** 2) * np.where(repeated > 2, math.pi / 2, 1.0) / repeated
    found = []
    for work in works:
        usable = work.measured[there] > 0
        if not usable.all():
            continue
        own = work.measured[there]
        place = np.stack([np.log2(own) - np.log2(work.measured.max()), 1.0 - 1.0 / ranks[there]], axis=1)
        beyond = np.log(middle / own) - _mean(place, bandwidth)
        for bits, scales in ((0.0, _steady(bandwidth)), (_BITS_OF_CHANGE, (_CHANGING_WALK, _CHANGING_SLOPE))):
            covariance = _covariance(place, place, scales) + np.diag(variance + _LACK_OF_FIT**2)
            inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
            solved = inverse @ beyond
            weight = -0.5 * beyond @ solved - 0.5 * np.linalg.slogdet(covariance)[1] - bits * math.log(2)
            level = _mean(np.zeros((1, 2)), bandwidth) + _covariance(np.zeros((1, 2)), place, scales) @ solved
            found.append(Rate(work, float(weight), math.exp(level[0]), place, solved, inverse, scales, bandwidth))
    return found


def _steady(bandwidth: float) -> tuple[float, float]:
    return _STEADY_WALK + _WALK_BY_BANDWIDTH * _beyond_memory(bandwidth), _STEADY_SLOPE


def _beyond_memory(bandwidth: float) -> float:
    """Return how many times a bandwidth is twice what memory gives; 0 if it is less."""
    return max(math.log2(max(bandwidth, 1.0) / _BANDWIDTH), 0.0)


def _mean(place: Floats, bandwidth: float) -> Floats:
    """Return the mean of ln rate at places (places, 2): growth ends where memory gives the bandwidth that is left."""
    doublings, sharing = place.T
    left = _beyond_memory(bandwidth) * math.log(2) * (1.0 - np.exp(-_BY_BANDWIDTH / math.log(2) * doublings))
    return np.asarray(math.log(INSTRUCTION) + _GROWTH * doublings + left + _SHARING * sharing)


def _covariance(one: Floats, other: Floats, scales: tuple[float, float]) -> Floats:
    """Return the covariance of ln rate between places (places, 2) and others: level, slope, random walk, sharing."""
    walk, slope = scales
    first, second = one[:, None, 0], other[None, :, 0]
    same_side = np.minimum(np.abs(first), np.abs(second)) * (first * second > 0)
    shared = one[:, None, 1] * other[None, :, 1]
    level = _RATES_DIFFER**2 + walk**2 * same_side + slope**2 * first * second
    return np.asarray(level + _SHARING_DEVIATES**2 * shared)
