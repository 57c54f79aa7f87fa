"""What repetitions say: a central value per configuration and how much they scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...errors import ModelingError
from ...experiment import FloatArray
from ..calibration import OUTLIER, SCATTER_SLOPE

Aggregation = Literal["robust", "median", "mean", "minimum"]


@dataclass(frozen=True, eq=False)
class Repetitions:
    """Repetitions of N call paths at C configurations, combined.

    centre: (N, C); NaN where nothing was measured.
    scatter: (N,) relative standard deviation of one repetition, pooled over configurations; 0 if there is just
             one repetition everywhere.
    freedom: (N,) degrees of freedom behind `scatter`.
    count: (N,) mean number of repetitions of the measured configurations.
    counts: (N, C) number of repetitions of each configuration.
    differ: (N,) whether any two repetitions of one configuration are different.
    falls: (N,) relative standard deviations go like the value to the power of minus this: 0 where nothing says so, 1/2
           for counts of many events that each depend on chance.
    """

    centre: FloatArray
    scatter: FloatArray
    freedom: FloatArray
    count: FloatArray
    counts: FloatArray
    differ: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    falls: FloatArray


def combine(values: FloatArray, how: Aggregation = "robust", of_counts: bool = False) -> Repetitions:
    """Combine repetitions: `values` has shape (N, C, R), NaN for repetitions that do not exist.

    robust: the mean of the repetitions that are no outliers; the mean uses clean repetitions better than the
    median does, and without the outliers it stands as much. The scale of outliers comes from all configurations
    of a call path together, because a few repetitions of one say little. Where all repetitions of a configuration are
    far from their median, as two that differ are, none is left out. of_counts: whether `falls` is wanted.
    """
    if values.ndim != 3:
        raise ModelingError(f"values must have shape (call paths, configurations, repetitions), not {values.shape}")
    known = ~np.isnan(values)
    count = known.sum(axis=2)
    filled = np.where(known, values, np.inf)
    ordered = np.sort(filled, axis=2)
    high = np.clip(count // 2, 0, None)
    low = np.clip((count - 1) // 2, 0, None)
    last = values.shape[2] - 1
    pick_high = np.take_along_axis(ordered, np.minimum(high, last)[:, :, None], axis=2)[:, :, 0]
    pick_low = np.take_along_axis(ordered, np.minimum(low, last)[:, :, None], axis=2)[:, :, 0]
    measured = count > 0
    median = np.where(measured, 0.5 * np.where(measured, pick_low, 0.0) + 0.5 * np.where(measured, pick_high, 0.0), 0.0)
    size = np.where(np.abs(median) > 0, np.abs(median), 1.0)
    with np.errstate(over="ignore"):
        distance = np.abs(np.where(known, values, 0.0) - median[:, :, None]) / size[:, :, None]
    distance = np.where(known, np.minimum(distance, 1e300), np.nan)
    if how == "robust":
        kept = known & (np.nan_to_num(distance) <= OUTLIER * _scale(distance, count)[:, None, None])
        kept |= known & ~kept.any(axis=2, keepdims=True)  # half of them far on either side: none is the outlier
    else:
        kept = known
    total = np.maximum(kept.sum(axis=2), 1)
    with np.errstate(over="ignore"):
        clean = np.clip(np.where(kept, values / size[:, :, None], 0.0), -1e150, 1e150)
    relative_mean = clean.sum(axis=2) / total
    mean = relative_mean * size
    centre = {"robust": mean, "mean": mean, "median": median, "minimum": np.where(measured, ordered[:, :, 0], 0.0)}[how]
    squares = np.where(kept, (clean - relative_mean[:, :, None]) ** 2, 0.0).sum(axis=(1, 2))
    squares = squares / np.maximum(_mean_square(relative_mean, measured), 1e-300)
    freedom = np.where(measured, kept.sum(axis=2) - 1, 0).clip(0).sum(axis=1).astype(np.float64)
    scatter = np.minimum(np.sqrt(squares / np.maximum(freedom, 1.0)), 1e6)
    configurations = np.maximum(measured.sum(axis=1), 1)
    differ = np.any(np.nan_to_num(distance) > 0, axis=(1, 2))
    falls = np.zeros(len(values))
    if of_counts and values.shape[2] > 1:
        each = np.where(kept, (clean - relative_mean[:, :, None]) ** 2, 0.0).sum(axis=2)
        falls = _falls(np.abs(mean), each, kept.sum(axis=2) - 1)
    mean_count = count.sum(axis=1) / configurations
    counts = count.astype(np.float64)
    return Repetitions(np.where(measured, centre, np.nan), scatter, freedom, mean_count, counts, differ, falls)


def _falls(
    sizes: FloatArray, squares: FloatArray, freedom: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> FloatArray:
    """Return by which power (N,) relative deviations fall with `sizes` (N, C), from 0 to 1/2.

    squares: (N, C) of relative deviations, with their degrees of freedom. It is the slope of the logarithm of their
    variance, whose own variance is 2/freedom, drawn towards 0, of which SCATTER_SLOPE is the deviation beforehand.
    """
    used = (freedom > 0) & (squares > 0) & (sizes > 0)
    weights = np.where(used, 0.5 * np.maximum(freedom, 0), 0.0)
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    logs = np.log(np.where(used, sizes, 1.0))
    variance = np.log(np.where(used, squares / np.maximum(freedom, 1), 1.0))
    logs = logs - (weights * logs).sum(axis=1, keepdims=True) / total
    known = (weights * logs**2).sum(axis=1)
    slope = (weights * logs * variance).sum(axis=1) / (known + 1.0 / SCATTER_SLOPE**2)
    result: FloatArray = np.clip(-0.5 * slope, 0.0, 0.5)
    return result


def _mean_square(values: FloatArray, measured: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> FloatArray:
    number = np.maximum(measured.sum(axis=1), 1)
    result: FloatArray = np.where(measured, values, 0.0).__pow__(2).sum(axis=1) / number
    return np.where(result > 0, result, 1.0)


def _scale(distance: FloatArray, count: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> FloatArray:
    """Robust relative deviation per call path: median distance from the median, over all repetitions.

    The median of few repetitions is one of them, or between two of them, which makes distances too small; the
    factor 1 + 1/R makes up for most of it.
    """
    paths = distance.shape[0]
    useful = np.where(np.isnan(distance) | (count < 3)[:, :, None], np.inf, distance).reshape(paths, -1)
    number = np.isfinite(useful).sum(axis=1)
    index = np.clip(number // 2, 0, useful.shape[1] - 1)
    if (index == index[0]).all():
        middle = np.partition(useful, index[0], axis=1)[:, index[0]]
    else:
        middle = np.take_along_axis(np.sort(useful, axis=1), index[:, None], axis=1)[:, 0]
    repetitions = np.maximum(count.mean(axis=1), 1.0)
    result: FloatArray = np.where(number > 0, 1.4826 * middle * (1.0 + 1.0 / repetitions), np.inf)
    return result
