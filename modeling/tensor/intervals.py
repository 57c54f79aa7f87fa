# SPDX-License-Identifier: Apache-2.0
"""Conformal prediction intervals whose width depends on the position of a row.

A log-additive model predicts the size of the residuals of held-out rows from the parameters. A residual divided by this
size is a score. The interval at a row is a quantile of the scores times the size there (normalized split conformal
prediction: Papadopoulos et al., "Inductive confidence machines for regression", 2002; Lei et al., "Distribution-free
predictive inference for regression", 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from .modes import Mode
from .support import coarsened

LEAST_ROWS = 30
"""With fewer held-out rows, all rows have the same spread."""
RIDGE = 20.0
"""Ridge penalty of an entry of the model of the spread, in numbers of rows."""


@dataclass(frozen=True)
class Spread:
    """The model of the size of residuals of ln(time), and the scores of held-out rows.

    modes, coefficients, offset: ln(size) is offset plus, for each mode, the coefficients (knots,) interpolated at the
    row. scores: ascending.
    """

    modes: tuple[Mode, ...]
    coefficients: tuple[FloatArray, ...]
    offset: float
    scores: FloatArray

    def scale(self, x: FloatArray) -> FloatArray:
        """Return the typical size of the residual of each row x (N, d), shape (N,); infinite on overflow."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(_design(self.modes, x) @ np.concatenate([*self.coefficients, [self.offset]])))

    def half_width(self, x: FloatArray, confidence: float) -> FloatArray:
        """Return the half width of the interval of ln(time) at each row x (N, d), shape (N,); inf without scores."""
        count = len(self.scores)
        if count == 0:
            return np.full(len(x), np.inf)
        place = min(count - 1, int(np.ceil(confidence * (count + 1))) - 1)
        return np.asarray(self.scale(x) * self.scores[place])


def spread_of(modes: Sequence[Mode], x: FloatArray, residuals: FloatArray) -> Spread:
    """Return the spread from residuals (N,) of ln(time) at held-out rows x (N, d).

    The scores of each half of the rows use a model of the size that was fitted to the other half. The returned model is
    fitted to all rows.
    """
    coarse = tuple(coarsened(mode) for mode in modes)
    used = coarse if len(x) >= LEAST_ROWS else ()
    sizes = np.log(np.abs(residuals) + 1e-3 * max(float(np.median(np.abs(residuals))), 1e-12)) if len(x) else residuals
    halves = (np.arange(len(x)) % 2 == 0, np.arange(len(x)) % 2 == 1)
    scores = np.empty(len(x))
    for half, other in (halves, halves[::-1]):
        if half.any() and other.any():
            scores[half] = np.abs(residuals[half]) / np.exp(_design(used, x[half]) @ _fit(used, x[other], sizes[other]))
        else:
            scores[half] = np.abs(residuals[half])
    if len(x) < 2:
        return Spread((), (), 0.0, np.sort(scores))
    whole = _fit(used, x, sizes)
    places = np.cumsum([mode.size for mode in used])
    return Spread(used, tuple(np.split(whole[:-1], places[:-1])) if used else (), float(whole[-1]), np.sort(scores))


def _design(modes: Sequence[Mode], x: FloatArray) -> FloatArray:
    columns = [np.ones((len(x), 1))]
    for mode in reversed(modes):
        first, weights = mode.basis(x)
        part = np.zeros((len(x), mode.size + 1))
        part[np.arange(len(x)), first] += weights[:, 0]
        part[np.arange(len(x)), first + 1] += weights[:, 1]
        columns.insert(0, part[:, :-1])
    return np.hstack(columns)


def _fit(modes: Sequence[Mode], x: FloatArray, sizes: FloatArray) -> FloatArray:
    design = _design(modes, x)
    penalty = np.full(design.shape[1], RIDGE)
    penalty[-1] = 0.0
    mean = float(sizes.mean())
    result = np.linalg.solve(design.T @ design + np.diag(penalty + 1e-9), design.T @ (sizes - mean))
    result[-1] += mean
    return np.asarray(result)
