# SPDX-License-Identifier: Apache-2.0
"""Model counts as `quipu model` does for archives without loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, NoModel, Options
from quipu.modeling.process_grid import ProcessGrid


def counts_of(
    points: FloatArray, values: FloatArray, names: Sequence[str], grids: tuple[ProcessGrid, ...] = ()
) -> Experiment:
    """Return an experiment with one call path for each of N counts of blocks, means over the ranks.

    points: (C, m); values: (N, C, R).
    """
    regions = tuple(Region(f"loops{number}", f"loops{number}") for number in range(len(values)))
    tree = CallTree(regions, np.arange(len(values)), np.full(len(values), -1))
    blocks = {"blocks": np.asarray(values, dtype=float)}
    metrics = {"blocks": METRICS["blocks"]}
    return Experiment("counts", tuple(names), np.asarray(points, dtype=float), tree, metrics, blocks, grids=grids)


def fit_counts(
    points: FloatArray, values: FloatArray, names: Sequence[str], options: Options = Options()
) -> list[Model | NoModel]:
    """Return the models of N counts. points: (C, m); values: (N, C, R)."""
    return fit_metrics(counts_of(points, values, names, options.grids), ["blocks"], options)["blocks"]
