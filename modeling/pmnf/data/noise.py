# SPDX-License-Identifier: Apache-2.0
"""Combine repetitions: a central value per configuration, and the scatter of the repetitions.

Shapes: N call paths, C configurations, R repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelingError
from ...experiment import FloatArray
from ..calibration import BATCH_NUMBERS, FEW_REPETITIONS, OUTLIER, SCATTER_SLOPE, WHOLE_UP_TO

Aggregation = Literal["robust", "median", "mean", "minimum"]
_Flags = NDArray[np.bool_]
_Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Combined repetitions of N call paths at C configurations.

    centre: (N, C) central value of the repetitions (`combine`); NaN if the configuration was not measured.
    scatter: (N,) relative standard deviation of one repetition, pooled over the configurations; 0 if each
    configuration has one repetition.
    freedom: (N,) degrees of freedom of `scatter`.
    count: (N,) mean number of repetitions of the measured configurations.
    counts: (N, C) number of repetitions of each configuration.
    differ: (N,) whether any two repetitions of one configuration differ.
    falls: (N,) power f, from 0 to 1, with which the relative standard deviation falls with the value:
    deviation ∝ value^-f. f is 0 if unknown, 1/2 for counts of many random events, 1 if the random part does not grow.
    unit: (N,) greatest common divisor of the differences of counts, if all counts are whole numbers; else 0.
    """

    centre: FloatArray
    scatter: FloatArray
    freedom: FloatArray
    count: FloatArray
    counts: FloatArray
    differ: _Flags
    falls: FloatArray
    unit: FloatArray

    @property
    def uncertainty(self) -> FloatArray:
        """Return the relative standard deviation (N,) of central values, 0 without repetitions."""
        result: FloatArray = self.scatter / np.sqrt(np.maximum(self.count, 1.0))
        return result

    @property
    def known_noise(self) -> FloatArray:
        """Return the relative standard deviation (N,) of central values, NaN without repetitions."""
        return np.where(self.freedom > 0, self.uncertainty, np.nan)


def combine(values: FloatArray, how: Aggregation = "robust", of_counts: bool = False) -> Repetitions:
    """Combine repetitions. values: (N, C, R), NaN for missing repetitions. Raises ModelingError for other shapes.

    how: the central value, the "median", "mean" or "minimum" of the repetitions. "robust" is the mean without
    outliers, which is more precise than the median and as robust. of_counts: the values are counts. Counts have no
    outliers, so "robust" is the mean; `falls` and `unit` are computed only for counts.

    An outlier is further from the median of its configuration than OUTLIER times the scale. The scale comes from all
    configurations of a call path together, because the few repetitions of one configuration do not determine it. The
    test uses log(1 + relative distance): with noise as large as the values, the median of few repetitions may be a
    tenth of the mean, and larger values are valid, too. If all repetitions of a configuration are outliers, as both of
    two very different ones are, none is left out.
    """
    if values.ndim != 3:
        raise ModelingError(f"values must have shape (call paths, configurations, repetitions), not {values.shape}")
    values = np.ascontiguousarray(values.transpose(2, 0, 1))  # (R, N, C), because sums over the first axis are fastest
    known = ~np.isnan(values)
    complete = bool(known.all())
    count = known.sum(axis=0)
    measured = count > 0
    median = np.where(measured, _medians(values, known, count), 0.0)
    size = np.where(np.abs(median) > 0, np.abs(median), 1.0)
    with np.errstate(over="ignore"):
        distance = np.minimum(np.abs((values if complete else np.where(known, values, median)) - median) / size, 1e300)
    kept = known
    if how == "robust" and not of_counts:
        kept = known & (np.log1p(distance) <= OUTLIER * _scale(distance, known, count)[:, None])
        kept |= known & ~kept.any(axis=0)  # all are outliers, half of them on either side: keep all
    number = kept.sum(axis=0)
    with np.errstate(over="ignore"):
        clean = np.clip(np.where(kept, values / size, 0.0), -1e150, 1e150)
    relative_mean = clean.sum(axis=0) / np.maximum(number, 1)
    mean = relative_mean * size
    if how == "minimum":
        centre = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    else:
        centre = median if how == "median" else mean
    each = np.where(kept, (clean - relative_mean) ** 2, 0.0).sum(axis=0)
    squares = each.sum(axis=1) / np.maximum(_mean_square(relative_mean, measured), 1e-300)
    freedom = np.where(measured, number - 1, 0).clip(0).sum(axis=1).astype(np.float64)
    scatter = np.minimum(np.sqrt(squares / np.maximum(freedom, 1.0)), 1e6)
    configurations = np.maximum(measured.sum(axis=1), 1)
    differ = (distance.max(axis=0, initial=0.0) > 0).any(axis=1)
    falls, unit = np.zeros(len(mean)), np.zeros(len(mean))
    if of_counts and len(values) > 1:
        falls = _falls(np.abs(mean), each, number - 1)
        unit[differ] = _units(values[:, differ], known[:, differ])
    mean_count = count.sum(axis=1) / configurations
    counts = count.astype(np.float64)
    return Repetitions(np.where(measured, centre, np.nan), scatter, freedom, mean_count, counts, differ, falls, unit)


def _units(values: FloatArray, known: _Flags) -> FloatArray:
    """Return the greatest common divisor (N,) of all differences of the values (R, N, C) of each call path.

    0 if a difference is no whole number or too large to be exact. known: (R, N, C), the existing values.
    """
    least = np.where(known, values, np.inf).min(axis=(0, 2))[:, None]
    beyond = np.where(known, values - least, 0.0)
    whole = (np.abs(beyond) < WHOLE_UP_TO) & (beyond == np.round(beyond))
    found = np.gcd.reduce(np.where(whole, beyond, 0.0).astype(np.int64), axis=(0, 2))
    result: FloatArray = np.where(whole.all(axis=(0, 2)), found, 0).astype(np.float64)
    return result


def _falls(sizes: FloatArray, squares: FloatArray, freedom: _Counts) -> FloatArray:
    """Return the power f (N,), from 0 to 1, of deviation ∝ size^-f for the relative standard deviation.

    sizes: (N, C) central values. squares: (N, C) sum of the squares of the relative deviations of the repetitions,
    with `freedom` (N, C) degrees of freedom. The slope of log(variance) in log(size) is -2·f. It is fitted by least
    squares; the variance of log(variance) is 2/freedom. The prior of the slope is 0 with the standard deviation
    SCATTER_SLOPE.
    """
    used = (freedom > 0) & (squares > 0) & (sizes > 0)
    weights = np.where(used, 0.5 * np.maximum(freedom, 0), 0.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    logs = np.log(np.where(used, sizes, 1.0))
    variance = np.log(np.where(used, squares / np.maximum(freedom, 1), 1.0))
    logs = logs - (weights * logs).sum(axis=1, keepdims=True) / total
    known = (weights * logs**2).sum(axis=1)
    slope = (weights * logs * variance).sum(axis=1) / (known + 1.0 / SCATTER_SLOPE**2)
    result: FloatArray = np.clip(-0.5 * slope, 0.0, 1.0)
    return result


def _mean_square(values: FloatArray, measured: _Flags) -> FloatArray:
    number = np.maximum(measured.sum(axis=1), 1)
    result: FloatArray = np.where(measured, values, 0.0).__pow__(2).sum(axis=1) / number
    return np.where(result > 0, result, 1.0)


def _medians(values: FloatArray, known: _Flags, count: _Counts) -> FloatArray:
    """Return the medians (N, C) of values (R, N, C), of which `known` (R, N, C) exist, `count` (N, C) of them.

    0 where count is 0.
    """
    last = len(values) - 1
    if bool((count == len(values)).all()):
        ordered = _sorted(values)
        both: FloatArray = 0.5 * ordered[last // 2] + 0.5 * ordered[(last + 1) // 2]
        return both
    ordered = _sorted(np.where(known, values, np.inf))
    places = np.clip(np.stack([(count - 1) // 2, count // 2]), 0, last)
    low, high = np.where(count > 0, np.take_along_axis(ordered, places, axis=0), 0.0)
    result: FloatArray = 0.5 * low + 0.5 * high
    return result


def _sorted(values: FloatArray) -> FloatArray:
    """Sort values (R, N, C), which contain no NaN, along the first axis.

    A few repetitions are sorted for many configurations at once by exchanges of neighbours (odd-even transposition
    sort; Knuth, The Art of Computer Programming 3, 1998, section 5.3.4). This is faster than one sort for each.
    """
    if len(values) > FEW_REPETITIONS:
        return np.sort(values, axis=0)
    ordered = values.copy()
    rows = ordered.reshape(len(values), -1)
    step = BATCH_NUMBERS // len(values)
    for start in range(0, rows.shape[1], step):
        part = rows[:, start : start + step]
        for turn in range(len(part)):
            for low, high in zip(part[turn % 2 :: 2], part[turn % 2 + 1 :: 2], strict=False):
                least = np.minimum(low, high)
                np.maximum(low, high, out=high)
                low[:] = least
    return ordered


def _scale(distance: FloatArray, known: _Flags, count: _Counts) -> FloatArray:
    """Return the robust relative standard deviation (N,) of the repetitions of each call path.

    distance: (R, N, C) relative distances from the median of the configuration. The result is 1.4826 (for a normal
    distribution) times the median distance over all configurations with three or more repetitions; inf if there are
    none. The median of few repetitions is close to one of them, so distances are too small; the factor 1 + 1/R
    corrects most of this.
    """
    useful = known & (count >= 3)
    number = useful.sum(axis=(0, 2))
    each = distance.transpose(1, 0, 2) if bool(useful.all()) else np.where(useful, distance, np.inf).transpose(1, 0, 2)
    each = each.reshape(len(number), -1)
    index = np.clip(number // 2, 0, each.shape[1] - 1)
    if (index == index[0]).all():
        middle = np.partition(each, index[0], axis=1)[:, index[0]]
    else:
        middle = np.take_along_axis(np.sort(each, axis=1), index[:, None], axis=1)[:, 0]
    repetitions = np.maximum(count.mean(axis=1), 1.0)
    result: FloatArray = np.where(number > 0, 1.4826 * middle * (1.0 + 1.0 / repetitions), np.inf)
    return result
