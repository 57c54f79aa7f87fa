# SPDX-License-Identifier: Apache-2.0
"""The largest heap of a rank, predicted."""

from __future__ import annotations

from collections.abc import Mapping

from .analysis import Analysis
from .evaluation import Evaluation, Prediction, evaluate

PEAK, HELD = "heap_peak", "heap_held"
"""Metrics: the largest heap of the rank at an allocation of a call path, and what each call path holds of it."""


def largest_heap(analysis: Analysis, point: Mapping[str, float]) -> Prediction | None:
    """Return the largest heap of a rank at a point (bytes), with the start and the end of MPI; None without a model.

    It is the sum of what call paths hold, because each of these parts has a simple law and the sum has not. Without
    models of the parts it is the largest prediction of `heap_peak`.
    """
    if HELD in analysis.metrics:
        return _sum(evaluate(analysis, point, HELD))
    if PEAK not in analysis.metrics:
        return None
    peak = evaluate(analysis, point, PEAK)
    return max((peak.total, peak.start_and_end), key=lambda one: one.value)


def _sum(held: Evaluation) -> Prediction:
    parts = (held.total, held.start_and_end)
    value = sum(part.value for part in parts)
    below = sum((part.value - part.lower) ** 2 for part in parts) ** 0.5
    above = sum((part.upper - part.value) ** 2 for part in parts) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, held.extrapolates)
