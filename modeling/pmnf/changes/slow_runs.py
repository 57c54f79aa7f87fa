# SPDX-License-Identifier: Apache-2.0
"""Find costs of configurations with a single run that was disturbed (the first of all runs, another job, the disk).

A sum of powers with positive coefficients is convex in the logarithms of a parameter and of the values: no value is
above the chord of its neighbours. A value far above the chord, at a configuration with a single run, is attributed to
the run if the others follow a function and this value does not. Otherwise it would have the same weight as all others,
and often only a constant would fit all values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray, IntArray, Metric
from ..calibration import LOUD_NOISE, NOISY
from ..criterion.divided import RangeFit, divided_score
from ..data.lines import lines
from ..data.noise import combine
from ..model import Model
from ..modeler import fit_models
from ..options import NoModel, Options
from .calibration import (
    CHANGE_LEAST_FREEDOM,
    SLOW_RUN_CANDIDATES,
    SLOW_RUN_DEVIATIONS,
    SLOW_RUN_DOUBT,
    SLOW_RUN_FACTOR,
    SLOW_RUN_LEAST_EVIDENCE,
    SLOW_RUN_LEAST_POINTS,
)

_Flags = NDArray[np.bool_]


def but_for_slow_runs(
    models: Sequence[Model | NoModel],
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options,
    executed: _Flags | None,
) -> dict[int, tuple[int, Model]]:
    """Return the slow run of each call path whose other costs follow a function, and the model without this run.

    models: of all values (N, C, R), by `modeler.fit_models`, at points (C, m), all different.
    """
    known = values if executed is None else np.where(executed[:, :, None], values, np.nan)
    repetitions = combine(np.where(np.isinf(known), np.nan, known), options.aggregation)
    once = np.asarray((repetitions.counts == 1) & (np.nan_to_num(repetitions.centre) > 0.0), dtype=bool)
    open_paths = [path for path, model in enumerate(models) if _may_have_one(model) and once[path].any()]
    if not open_paths or len(np.unique(points, axis=0)) < len(points):
        return {}
    heights = _above_neighbours(points, repetitions.centre[open_paths])
    heights = np.where(once[open_paths] & (heights >= log(SLOW_RUN_FACTOR)), heights, -np.inf)
    order = np.argsort(-heights, axis=1)[:, :SLOW_RUN_CANDIDATES]
    rows, places = np.nonzero(np.isfinite(np.take_along_axis(heights, order, axis=1)))
    if not rows.size:
        return {}
    paths, left_out = np.array(open_paths)[rows], order[rows, places]
    tried = values[paths]
    tried[np.arange(len(tried)), left_out] = np.nan
    flags = None if executed is None else executed[paths]
    best: dict[int, tuple[int, Model]] = {}
    gains: dict[int, float] = {}
    found = fit_models(points, tried, metric, parameters, options, flags)
    for path, place, model in zip(paths.tolist(), left_out.tolist(), found, strict=True):
        before, slow = models[path], float(repetitions.centre[path, place])
        if not isinstance(model, Model) or not isinstance(before, Model) or not _explains(model, points[place], slow):
            continue
        noise = float(min(repetitions.freedom[path], len(points))), float(repetitions.uncertainty[path])
        gain = divided_score([_fit(before)], *noise) - divided_score([_fit(model)], *noise)
        gain -= NOISY.coefficient + 2.0 * log(len(points))
        if gain >= max(SLOW_RUN_LEAST_EVIDENCE, gains.get(path, 0.0)):
            gains[path] = gain
            best[path] = place, _with_note(model, before, points[place], slow)
    return best


def _may_have_one(model: Model | NoModel) -> bool:
    """Return whether a model misses values, and there are enough values to identify a slow run."""
    if not isinstance(model, Model) or model.quality is None:
        return False
    return model.quality.points > SLOW_RUN_LEAST_POINTS and model.quality.rms_relative > LOUD_NOISE


def _above_neighbours(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return by how much the logarithms of values (N, C) exceed the chords of their neighbours, (N, C).

    The result is the minimum over the parameters in which a point lies between two others; the last but one is also
    compared with the growth before it. If there is no such parameter, the result is the difference from the value at
    the next larger parameter. It is -inf if it is not determined.
    """
    logs = np.log(np.where(values > 0.0, values, np.nan))
    inner, first = np.full(values.shape, np.inf), np.full(values.shape, np.inf)
    for parameter in range(points.shape[1]):
        for line in lines(points, parameter, most=len(points)):
            places = points[line, parameter]
            _of_line(np.log(places) if places[0] > 0.0 else places, line, logs, inner, first)
    result: FloatArray = np.where(np.isfinite(inner), inner, np.where(np.isfinite(first), first, -np.inf))
    return result


def _of_line(places: FloatArray, line: IntArray, logs: FloatArray, inner: FloatArray, first: FloatArray) -> None:
    """Lower `inner` and `first` (N, C) by the points of a line, in rising order."""
    for row, own in enumerate(logs[:, line]):
        known = np.flatnonzero(~np.isnan(own))
        if known.size < 3:
            continue
        at, height, where = places[known], own[known], line[known]
        share = (at[1:-1] - at[:-2]) / (at[2:] - at[:-2])
        above = height[1:-1] - (1.0 - share) * height[:-2] - share * height[2:]
        above[-1] = min(above[-1], _above_growth(at, height))
        inner[row, where[1:-1]] = np.minimum(inner[row, where[1:-1]], above)
        first[row, where[0]] = min(first[row, where[0]], height[0] - height[1])


def _above_growth(places: FloatArray, heights: FloatArray) -> float:
    """Return how much smaller the last increase is than earlier ones; after a step, growth continues."""
    before = (heights[-3] - heights[-4]) / (places[-3] - places[-4]) if len(heights) > 3 else 0.0
    return float(heights[-2] - heights[-1] + before * (places[-1] - places[-2]))


def _explains(model: Model, point: FloatArray, slow: float) -> bool:
    """Return whether the model of the other values has degrees of freedom, and `slow` is far above it."""
    quality = model.quality
    width = len(model.terms) + (model.constant != 0.0)
    if quality is None or quality.points < max(SLOW_RUN_LEAST_POINTS, CHANGE_LEAST_FREEDOM + width):
        return False
    expected = float(model.evaluate(point[None])[0])
    error = max(quality.rms_relative, quality.cross_validated if quality.cross_validated > 0.0 else 0.0)
    return slow > expected * max(SLOW_RUN_FACTOR, 1.0 + SLOW_RUN_DEVIATIONS * error) > 0.0


def _fit(model: Model) -> RangeFit:
    quality = model.quality
    assert quality is not None
    width = len(model.terms) + (model.constant != 0.0)
    return RangeFit(quality.rms_relative, quality.cross_validated, quality.points, width)


def _with_note(model: Model, before: Model, point: FloatArray, slow: float) -> Model:
    """Return a model with a note on the omitted run, and the former model as an alternative."""
    at = ", ".join(f"{name}={value:g}" for name, value in zip(model.parameters, point.tolist(), strict=True))
    expected = float(model.evaluate(point[None])[0])
    note = f"without {at}, where a single run had {slow:.4g} and this is {expected:.4g}: it seems to have been held up"
    found = model.doubted(SLOW_RUN_DOUBT, before.constant, before.terms)
    return replace(found, ranges=before.ranges, notes=(*model.notes, note))
