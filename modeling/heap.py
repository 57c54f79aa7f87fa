# SPDX-License-Identifier: Apache-2.0
"""Predict the largest heap of a rank."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .analysis import Analysis
from .evaluation import Evaluation, evaluate
from .experiment import HELD, PEAK
from .pmnf.model import Prediction


def largest_heap(analysis: Analysis, point: Mapping[str, float]) -> Prediction | None:
    """Return the largest heap of a rank at a point in bytes, including the start and the end of MPI.

    Returns None without a model.

    - The value is the sum of the models of `heap_held` over the call paths. The part of a call path has a simple
      formula, but the largest heap has none.
    - `heap_held` describes the moment at which the heap was largest in the runs. If the heap is predicted to be larger
      at another moment (`heap_moments`), the difference is added.
    - The interval contains the intervals of this sum and of the models of `heap_peak`. The interval of the sum alone
      would be too narrow, because allocations of an MPI library differ between runs.
    """
    known = [metric for metric in (HELD, PEAK) if metric in analysis.metrics]
    found = [_program(evaluate(analysis, point, metric)) for metric in known]
    if not found:
        return None
    finite = [one for one in found if math.isfinite(one.upper) and math.isfinite(one.lower)] or found
    lower, upper = min(one.lower for one in finite), max(one.upper for one in finite)
    later = _later(analysis, point) if HELD in analysis.metrics else 0.0
    value = found[0].value + later
    return Prediction(value, lower, max(upper, value), found[0].extrapolates)


def _later(analysis: Analysis, point: Mapping[str, float]) -> float:
    """Return the predicted bytes by which the heap at another moment exceeds the heap at the moment of `heap_held`."""
    place = tuple(float(point[name]) for name in analysis.parameters)
    below = [model.predict(place).value for model in analysis.heap_moments]
    return max(0.0, -min(below, default=0.0)) if np.isfinite(below).all() else 0.0


def _program(evaluation: Evaluation) -> Prediction:
    """Return the sum of the program and the start and end of MPI; their maximum for a metric that is not additive."""
    parts = (evaluation.total, evaluation.start_and_end)
    if evaluation.metric.over_locations == "max":
        return max(parts, key=lambda one: one.value)
    value = sum(part.value for part in parts)
    below = sum((part.value - part.lower) ** 2 for part in parts) ** 0.5
    above = sum((part.upper - part.value) ** 2 for part in parts) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, evaluation.extrapolates)
