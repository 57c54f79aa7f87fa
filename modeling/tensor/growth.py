# SPDX-License-Identifier: Apache-2.0
"""Compute how the error of a tensor model decreases with the number of rows.

Models are fitted to parts of the rows and tested on held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from ..progress import steps
from .columns import ColumnModel
from .folds import held_out_folds
from .model import TensorModel

FIRST_ROWS, MOST_ROWS = 16, 32_768
"""Number of rows of the first model, which doubles from model to model, and largest number of rows that are used."""


@dataclass(frozen=True)
class ErrorAt:
    """The error of models that were fitted to a number of rows: MLogQ on held-out rows, mean over folds."""

    rows: int
    error: float


def error_by_rows(
    model: ColumnModel, x: FloatArray, times: FloatArray, time_budget: float = 0.3, seed: int = 0
) -> list[ErrorAt]:
    """Return the error by the number of rows, up to the number of training rows; [] if no rows can be held out.

    The models have the categories and the loss of `model`, and are selected again on training rows only.
    x (N, d), times (N,): result of `ColumnModel.measured`. time_budget: limit for each model, as in `TensorModel`.
    """
    order = np.random.default_rng(seed).permutation(len(x))[:MOST_ROWS]
    x, logs = x[order], np.log(times[order])
    loss = "log" if model.model.positive_ is None else "mlogq2"
    categorical = [model.parameters.index(name) for name in model.categorical]
    parts = [(train, test) for train, test in held_out_folds(x, categorical) if len(train) and len(test)]
    if not parts:
        return []
    least = min(len(train) for train, _ in parts)
    sizes = [*(FIRST_ROWS << at for at in range(20) if FIRST_ROWS << at < least / 1.4), least]
    result = []
    for size in steps("models by number of rows", sizes):
        residuals = []
        for train, test in parts:
            rows = train[:size]
            fitted = TensorModel(categorical=categorical, loss=loss, time_budget=time_budget, random_state=seed).fit(
                x[rows], np.exp(logs[rows])
            )
            residuals.append(np.abs(np.log(fitted.predict(x[test])) - logs[test]))
        result.append(ErrorAt(size, float(np.concatenate(residuals).mean())))
    return result
