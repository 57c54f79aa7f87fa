# SPDX-License-Identifier: Apache-2.0
"""Log-additive models, for data with few rows: the logarithm of time is a sum of one function per parameter.

As a decomposition, component j has the function of mode j as its factor in mode j, and ones in all other modes. Its
rank is therefore the number of modes. The fit solves linear systems and needs no starting values. With a large
smoothness penalty the model is a power law.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..experiment import FloatArray
from .als import Penalty, huber_roots, huber_scale
from .modes import IntArray, Mode

PENALTIES = tuple(Penalty(ridge, smoothness) for smoothness in (1e-6, 1e-4, 1e-2, 1.0) for ridge in (1e-4, 1e-2))
STEPS = 2
"""Number of solutions, each with robust weights from the residuals of the previous one."""


def additive_factors(modes: Sequence[Mode], x: FloatArray, target: FloatArray, penalty: Penalty) -> list[FloatArray]:
    """Return the factors, one (knots, modes) per mode, of the log-additive model of rows x (N, d), by a robust fit.

    target: (N,), centred logarithms of the times.
    """
    count = len(x)
    sizes = [mode.size for mode in modes]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    design = np.zeros((count, starts[-1] + 1))
    design[:, -1] = 1.0
    penalties = np.zeros((starts[-1] + 1, starts[-1] + 1))
    rows = np.arange(count)
    for mode, start in zip(modes, starts, strict=False):
        first, weights = mode.basis(x)
        np.add.at(design, (rows, start + first), weights[:, 0])
        np.add.at(design, (rows, start + np.minimum(first + 1, mode.size - 1)), weights[:, 1])
        places = start + np.arange(mode.size)
        penalties[places, places] += penalty.ridge * count / mode.size + 1e-9
        for lag, band in enumerate(mode.roughness()):
            entries = penalty.smoothness * count * band[: mode.size - lag]
            penalties[places[lag:], places[: mode.size - lag]] += entries
            if lag:
                penalties[places[: mode.size - lag], places[lag:]] += entries
    found = np.zeros(starts[-1] + 1)
    roots = np.ones(count)
    for _ in range(STEPS):
        weighted = design * roots[:, None]
        found = np.linalg.solve(weighted.T @ weighted + penalties, weighted.T @ (target * roots))
        residual = np.abs(target - design @ found)
        roots = huber_roots(residual, huber_scale(residual))
    factors = [np.ones((size, len(modes))) for size in sizes]
    for number, start in enumerate(starts[:-1]):
        factors[number][:, number] = found[start : start + sizes[number]] + (found[-1] if number == 0 else 0.0)
    return factors


def choose_additive(
    modes: Sequence[Mode],
    x: FloatArray,
    target: FloatArray,
    folds: Sequence[tuple[IntArray, IntArray]],
    penalties: Sequence[Penalty] = PENALTIES,
) -> tuple[Penalty, FloatArray]:
    """Return the penalty whose log-additive models predict the held-out rows best, and the residuals of these rows.

    folds: pairs of the indices of training rows and of held-out rows. The residuals are in the order of the folds.
    """
    best, least = penalties[0], np.empty(0)
    for penalty in penalties:
        residuals = []
        for train, test in folds:
            factors = additive_factors(modes, x[train], target[train], penalty)
            predicted = np.zeros(len(test))
            for number, mode in enumerate(modes):
                first, weights = mode.basis(x[test])
                values = factors[number][:, number]
                predicted += weights[:, 0] * values[first]
                predicted += weights[:, 1] * values[np.minimum(first + 1, mode.size - 1)]
            residuals.append(target[test] - predicted)
        joined = np.concatenate(residuals)
        if not len(least) or np.abs(joined).mean() < np.abs(least).mean():
            best, least = penalty, joined
    return best, least
