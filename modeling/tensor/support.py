# SPDX-License-Identifier: Apache-2.0
"""The support of a model: the combinations of two parameters that were measured.

A point can be inside of the range of each parameter without any measured row near it: hidden extrapolation (Montgomery,
Peck and Vining, "Introduction to linear regression analysis", 2012, section 3.8). A decomposition with many components
is not determined at such points. Its deviation from a log-additive model, which all rows determine, is therefore
limited, and intervals are wider.
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
"""Number of cells of a numeric parameter in simple models: the model of the spread, and the log-additive model here."""
ROWS = 8192
"""Largest number of rows for the fit of the log-additive model."""
PENALTY = Penalty(1e-3, 1e-6)
MOST_CELLS = 16
CELL_ROWS = 20.0
"""Mean number of rows per combination of cells of two parameters, from which the number of cells is computed."""
SHARE = 0.9
"""Share of the deviations from the log-additive model that are below `Support.typical`."""
EXPECTED = 10.0
"""A combination without rows counts as missing if at least this number of rows would be expected for independent
parameters. Chance alone leaves such a combination empty with the probability exp(-10)."""


@dataclass(frozen=True)
class Support:
    """The support of a model by its rows.

    - columns: the parameters that vary. edges: for each of them, the inner edges of its cells.
    - missing: for each pair in `pairs`, a mask of the combinations of cells that were not measured; the first axis
      belongs to the first parameter.
    - modes, effects, center: the log-additive model of ln(time): center plus one function per mode. Without modes, the
      model itself is log-additive and has no limits.
    - lowest, highest: range of the deviations of the model from the log-additive model at the measured rows. typical:
      the share `SHARE` of the absolute deviations is below this number.
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
        """Return all pairs of `columns`, in order, with the smaller index first."""
        return [(one, other) for at, one in enumerate(self.columns) for other in self.columns[at + 1 :]]

    def additive(self, x: FloatArray) -> FloatArray:
        """Return ln(time) by the log-additive model at rows x (N, d), shape (N,)."""
        result = np.full(len(x), self.center)
        for mode, effect in zip(self.modes, self.effects, strict=True):
            first, weights = mode.basis(x)
            result += weights[:, 0] * effect[first] + weights[:, 1] * effect[np.minimum(first + 1, mode.size - 1)]
        return result

    def bounded(self, x: FloatArray, logs: FloatArray) -> FloatArray:
        """Return the logarithms `logs` (N,) of the model at rows x (N, d), with a limited deviation.

        The deviation from the log-additive model is limited to the range of the deviations at the measured rows.
        """
        if not self.modes:
            return logs
        additive = self.additive(x)
        return np.asarray(np.clip(logs, additive + self.lowest, additive + self.highest))

    def doubt(self, x: FloatArray, logs: FloatArray, half: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the distances from ln(time) to the lower and upper end of its interval, (N,) each, at rows x (N, d).

        logs: (N,), the predictions; half: (N,), the half widths. If all combinations in a row were measured, both
        distances are `half`. Otherwise the interval also contains the prediction of the log-additive model, and extends
        beyond both predictions by `half`, at least by `typical`.
        """
        below, above = half.copy(), half.copy()
        hidden = self.hidden(x).any(axis=1)
        if self.modes and hidden.any():
            step = self.additive(x[hidden]) - logs[hidden]
            width = np.maximum(half[hidden], self.typical)
            below[hidden], above[hidden] = width + np.maximum(-step, 0.0), width + np.maximum(step, 0.0)
        return below, above

    def hidden(self, x: FloatArray) -> Flags:
        """Return for rows x (N, d) which pairs of parameters have a missing combination, shape (N, pairs)."""
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
    """Return the support of a model with these modes, from its rows x (N, d) and their ln(time), logs (N,).

    predicted: returns ln(time) by the model for rows inside of its ranges; None for a log-additive model.
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
    """Return the mode with at most CELLS cells, if it is numeric."""
    if mode.kind == "categorical" or mode.size <= CELLS + 1:
        return mode
    return replace(mode, knots=np.linspace(mode.knots[0], mode.knots[-1], CELLS + 1), indexed=False)


def _edges(column: FloatArray, cells: int, categorical: bool) -> FloatArray:
    """Return the inner edges of the cells of a parameter with these values (N,), for at most about `cells` cells.

    Each value is a cell if the values are few or have no order; otherwise the edges are quantiles.
    """
    values = np.unique(column)
    if categorical or len(values) <= cells:
        return np.asarray(values[1:])
    return np.unique(np.quantile(column, np.arange(1, cells) / cells))
