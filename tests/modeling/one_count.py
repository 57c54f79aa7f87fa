# SPDX-License-Identifier: Apache-2.0
"""Predict one count of a program with one call path, through the public interface."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Prediction
from quipu.modeling.process_grid import ProcessGrid

from .counted import counts_of

BLOCKS = Metric("blocks", "1", "effort")


def predicted(
    points: FloatArray,
    counts: FloatArray,
    names: tuple[str, ...],
    at: Sequence[float],
    grids: tuple[ProcessGrid, ...] = (),
) -> Prediction:
    """Return the prediction at a point from counts (C,) or (C, R) at points (C, m)."""
    experiment = counts_of(points, counts.reshape(1, len(points), -1), names, grids)
    return evaluate(analyze(experiment), dict(zip(names, at, strict=True)), "blocks").exclusive[0]
