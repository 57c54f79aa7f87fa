# SPDX-License-Identifier: Apache-2.0
"""Predict one count of a program with one call path, through the public interface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf import Prediction
from quipu.modeling.process_grid import ProcessGrid

BLOCKS = Metric("blocks", "1", "effort")


def predicted(
    points: FloatArray,
    counts: FloatArray,
    names: tuple[str, ...],
    at: Sequence[float],
    grids: tuple[ProcessGrid, ...] = (),
) -> Prediction:
    """Return the prediction at a point from counts (C,) or (C, R) at points (C, m)."""
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    values = {"blocks": counts.reshape(1, len(points), -1)}
    experiment = Experiment("one count", names, points, tree, {"blocks": BLOCKS}, values, grids=grids)
    return evaluate(analyze(experiment), dict(zip(names, at, strict=True)), "blocks").exclusive[0]
