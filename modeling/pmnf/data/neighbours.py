# SPDX-License-Identifier: Apache-2.0
"""Estimate the noise of configurations with a single run from the deviations of neighbours from a common curve.

Neighbours are points with adjacent values of one parameter. A smooth function is nearly a parabola over four
neighbours, whereas their noise is independent. The deviation from the parabola therefore shows the noise (Hall, Kay
and Titterington, Asymptotically optimal difference-based estimation of variance, Biometrika 77, 1990).

Shapes: N call paths, C configurations, m parameters.
"""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import NEIGHBOURS_LEAST
from .lines import lines
from .noise import Repetitions

# Four neighbours have one degree of freedom beyond a parabola.
_WINDOW = 4
# Half of the values of a normal distribution are within this multiple of its standard deviation.
_QUARTILE = 0.6745


def noise_of(repetitions: Repetitions, points: FloatArray) -> FloatArray:
    """Return the relative standard deviation (N,) of the central values at points (C, m).

    The noise of a call path comes from its repetitions. Without repetitions it comes from neighbours
    (`neighbours_noise`). NaN if neither determines it.
    """
    known: FloatArray = repetitions.known_noise
    alone = np.flatnonzero(np.isnan(known))
    if alone.size and len(points) >= _WINDOW:
        known = known.copy()
        known[alone] = neighbours_noise(points, repetitions.centre[alone])
    return known


def neighbours_noise(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return the relative standard deviation (N,) of values (N, C) at points (C, m) around curves through neighbours.

    Any four neighbours on a line of one parameter give one deviation of the logarithm of the values from a parabola.
    Its standard deviation is that of the noise. The result uses the median of the absolute deviations, so that single
    steps of the function do not count as noise. The median of few deviations may be too small by chance, so it is
    enlarged. NaN with fewer than NEIGHBOURS_LEAST deviations (values that are not positive give none).
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
    """Return coefficients (4,) of length one with which the sum of the values of each parabola at `places` is 0.

    Their product with values at `places` is therefore the deviation of these values from a parabola. NaN or infinite
    if places are too close to each other for floating point.
    """
    spans = (places[:, None] - places) / np.ptp(places)
    np.fill_diagonal(spans, 1.0)
    with np.errstate(all="ignore"):
        divided = 1.0 / spans.prod(axis=1)
        result: FloatArray = divided / np.sqrt((divided**2).sum())
    return result
