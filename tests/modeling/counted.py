# SPDX-License-Identifier: Apache-2.0
"""Model counts as `quipu model` does for archives without loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, NoModel, Options


def fit_counts(
    points: FloatArray,
    values: FloatArray,
    names: Sequence[str],
    options: Options = Options(),
    executed: NDArray[np.bool_] | None = None,
) -> list[Model | NoModel]:
    """Return the models of N counts, means over the ranks. points: (C, m); values: (N, C, R); executed: (N, C)."""
    points, values = np.asarray(points, dtype=float), np.asarray(values, dtype=float)
    regions = tuple(Region(f"loops{number}", f"loops{number}") for number in range(len(values)))
    tree = CallTree(regions, np.arange(len(values)), np.full(len(values), -1))
    counts = {"blocks": values}
    if executed is not None:
        counts["visits"] = np.repeat(executed[:, :, None].astype(float), values.shape[2], axis=2)
    metrics = {name: METRICS[name] for name in counts}
    experiment = Experiment("counts", tuple(names), points, tree, metrics, counts, grids=options.grids)
    return fit_metrics(experiment, ["blocks"], options)["blocks"]
