# SPDX-License-Identifier: Apache-2.0
"""The support of a model: measured combinations of two parameters, and the allowed deviation from an additive model.

A point can be inside of the range of each parameter without any measured row near it: hidden extrapolation (Montgomery,
Peck and Vining, "Introduction to linear regression analysis", 2012, section 3.8). A decomposition of many components is
not determined there. Its deviation from a log-additive model, to which all rows contribute, is therefore limited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .additive import additive_factors
from .als import Penalty
from .modes import Mode

Flags = NDArray[np.bool_]
CELLS = 4
"""Number of cells of a numeric parameter in coarse models (model of the spread, log-additive model)."""
ROWS = 8192
"""Largest number of rows for the fit of the log-additive model."""
PENALTY = Penalty(1e-3, 1e-6)
MOST_CELLS = 16
CELL_ROWS = 20.0
"""Target for the mean number of rows per combination of cells of two parameters."""
SHARE = 0.9
EXPECTED = 10.0
"""An unmeasured combination counts as missing if independent parameters would give at least this number of rows; such a
gap has probability exp(-10) by chance."""


@dataclass(frozen=True)
class Support:
    """The support of a model by its rows.

    - columns: parameters that vary. edges: edges of the cells of each.
    - missing: for each pair in `pairs`, the combinations of cells without a measured row; first axis: first parameter.
    - modes, effects, center: the log-additive model of the logarithm.
    - lowest, highest, typical: deviations of the model from the log-additive model at its rows; the share `SHARE` of
      the deviations is below `typical`.
    """

    columns: tuple[int, ...] = ()
    edges: tuple[FloatArray, ...] = ()
    missing: tuple[Flags, ...] = ()
    modes: tuple[Mode, ...] = ()
    effects: tuple[FloatArray, ...] = ()
    center: float = 0.0
    lowest: float = -np.inf
    highest: float = np.inf
    typical: float = 0.0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of parameters in order, with the smaller index first."""
        return [(one, other) for at, one in enumerate(self.columns) for other in self.columns[at + 1 :]]

    def additive(self, x: FloatArray) -> FloatArray:
        """Return the logarithm predicted by the log-additive model, shape (N,)."""
        result = np.full(len(x), self.center)
        for mode, effect in zip(self.modes, self.effects, strict=True):
            first, weights = mode.basis(x)
            result += weights[:, 0] * effect[first] + weights[:, 1] * effect[np.minimum(first + 1, mode.size - 1)]
        return result

    def bounded(self, x: FloatArray, logs: FloatArray) -> FloatArray:
        """Return the logarithms of a model, shape (N,).

        The deviation from the log-additive model is limited to the largest deviation at the measured rows.
        """
        if not self.modes:
            return logs
        additive = self.additive(x)
        return np.asarray(np.clip(logs, additive + self.lowest, additive + self.highest))

    def doubt(self, x: FloatArray, logs: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the distances to the lower and upper end of the interval of the logarithm, shape (N,) each.

        They are `half` if the row is supported. Otherwise the interval contains the prediction of the log-additive
        model, and extends on each side by the error of this model at the rows.
        """
        below, above = half.copy(), half.copy()
        hidden = self.hidden(x).any(axis=1)
        if self.modes and hidden.any():
            step = self.additive(x[hidden]) - logs[hidden]
            width = np.maximum(half[hidden], self.typical)
            below[hidden], above[hidden] = width + np.maximum(-step, 0.0), width + np.maximum(step, 0.0)
        return below, above

    def hidden(self, x: FloatArray) -> Flags:
        """Return for each row which pairs of parameters have a missing combination, shape (N, pairs)."""
        cells = {
            column: np.searchsorted(edges, x[:, column], side="right")
            for column, edges in zip(self.columns, self.edges, strict=True)
        }
        result = np.zeros((len(x), len(self.missing)), dtype=bool)
        for at, ((one, other), missing) in enumerate(zip(self.pairs, self.missing, strict=True)):
            if missing.any():
                result[:, at] = missing[cells[one], cells[other]]
        return result


def support_of(
    modes: Sequence[Mode], x: FloatArray, logs: FloatArray, predicted: Callable[[FloatArray], FloatArray] | None
) -> Support:
    """Return the support of a model by its rows x (N, d) and their logarithms of time (N,).

    predicted: predictions of the model inside of its ranges; None for a log-additive model.
    """
    kinds = {mode.parameters[0]: mode.kind for mode in modes if len(mode.parameters) == 1}
    columns = tuple(sorted(kinds))
    most = int(np.clip(np.sqrt(len(x) / CELL_ROWS), 2, MOST_CELLS))
    edges = tuple(_edges(x[:, column], most, kinds[column] == "categorical") for column in columns)
    cells = [np.searchsorted(edge, x[:, column], side="right") for column, edge in zip(columns, edges, strict=True)]
    missing = []
    for at, one in enumerate(cells):
        for later, other in enumerate(cells[at + 1 :], at + 1):
            counts = np.zeros((len(edges[at]) + 1, len(edges[later]) + 1))
            np.add.at(counts, (one, other), 1.0)
            expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(x)
            missing.append((counts == 0.0) & (expected >= EXPECTED))
    result = Support(columns, edges, tuple(missing))
    if predicted is None or not modes:
        return result
    coarse = tuple(coarsened(mode) for mode in modes)
    center = float(logs.mean())
    factors = additive_factors(coarse, x[:ROWS], logs[:ROWS] - center, PENALTY)
    effects = tuple(factor[:, number] for number, factor in enumerate(factors))
    result = replace(result, modes=coarse, effects=effects, center=center)
    deviations = predicted(x) - result.additive(x)
    lowest, highest = float(deviations.min()), float(deviations.max())
    return replace(result, lowest=lowest, highest=highest, typical=float(np.quantile(np.abs(deviations), SHARE)))


def coarsened(mode: Mode) -> Mode:
    """Return the mode with fewer cells."""
    if mode.kind == "categorical" or mode.size <= CELLS + 1:
        return mode
    return replace(mode, knots=np.linspace(mode.knots[0], mode.knots[-1], CELLS + 1), indexed=False)


def _edges(column: FloatArray, cells: int, categorical: bool) -> FloatArray:
    """Return the edges of the cells of a parameter: its values if they are few or unordered, otherwise quantiles."""
    values = np.unique(column)
    if categorical or len(values) <= cells:
        return np.asarray(values[1:])
    return np.unique(np.quantile(column, np.arange(1, cells) / cells))
