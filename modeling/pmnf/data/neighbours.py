# SPDX-License-Identifier: Apache-2.0
"""Estimate the noise of configurations with a single run, from deviations of neighbours from a common curve.

Functions have little curvature between neighbours, whereas noise of neighbours is independent (difference sequences;
Hall, Kay and Titterington, Biometrika 77, 1990).
"""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import NEIGHBOURS_LEAST
from .lines import lines
from .noise import Repetitions

# Four neighbours have one degree of freedom beyond a parabola.
_WINDOW = 4
# A normal distribution has half of its values within this multiple of its standard deviation.
_QUARTILE = 0.6745


def noise_of(repetitions: Repetitions, points: FloatArray) -> FloatArray:
    """Return the relative standard deviation (N,) of central values at points (C, m); NaN if it is not determined.

    It comes from repetitions, or without repetitions from neighbours.
    """
    known: FloatArray = repetitions.known_noise
    alone = np.flatnonzero(np.isnan(known))
    if alone.size and len(points) >= _WINDOW:
        known = known.copy()
        known[alone] = neighbours_noise(points, repetitions.centre[alone])
    return known


def neighbours_noise(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return the relative standard deviation (N,) of values (N, C) at points (C, m) around curves through neighbours.

    On lines of one parameter, each four neighbours (in logarithms) have a deviation from a parabola of the size of the
    noise. The result uses the median of these deviations, so that single steps and changes do not count as noise. With
    few deviations the median may be too small by chance, so it is enlarged. NaN with fewer than NEIGHBOURS_LEAST.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values > 0.0, np.log(values), np.nan)
    left = [np.empty((len(values), 0))]
    for parameter in range(points.shape[1]):
        for everything in lines(points, parameter, most=len(points)):
            places, first = np.unique(points[everything, parameter], return_index=True)
            line = everything[first]
            places = np.log(places) if places[0] > 0.0 else places
            for start in range(len(line) - _WINDOW + 1):
                window = slice(start, start + _WINDOW)
                left.append((logs[:, line[window]] @ _beside_parabolas(places[window]))[:, None])
    sizes = np.abs(np.concatenate(left, axis=1))
    number = (~np.isnan(sizes)).sum(axis=1)
    enough = number >= NEIGHBOURS_LEAST
    result = np.full(len(values), np.nan)
    if enough.any():
        result[enough] = np.nanmedian(sizes[enough], axis=1) / _QUARTILE * (1.0 + 2.0 / number[enough])
    return result


def _beside_parabolas(places: FloatArray) -> FloatArray:
    """Return the combination (4,), of length one, of values at `places` that is 0 for each parabola.

    NaN if places are too close to each other for floating point.
    """
    spans = (places[:, None] - places) / np.ptp(places)
    np.fill_diagonal(spans, 1.0)
    with np.errstate(all="ignore"):
        divided = 1.0 / spans.prod(axis=1)
        result: FloatArray = divided / np.sqrt((divided**2).sum())
    return result
