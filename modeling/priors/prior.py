# SPDX-License-Identifier: Apache-2.0
"""Define priors (models without coefficients) and the results of their fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from ..pmnf.model import Model

_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Prior:
    """A model without coefficients: time = Σ c_k · columns[k] with c_k >= 0.

    - basis: source of the prior. text: the prior as a formula.
    - needed: the model must contain at least one of these columns, because the order of the effort is known; empty: no
      condition.
    - least: lower bounds of the coefficients. A prior with bounds keeps every column that fits; a prior without bounds
      only keeps columns that explain more than their penalty.
    - penalty: added to the score, because the prior is less plausible than others.
    - counted: measured values of a column, shape (C,). Coefficients are fitted to these values, and the model of the
      column is used for predictions: times do not show the uncertainty of a count.
    - beyond_one: parameters whose value 1 is excluded, because the effort follows another formula there.
    """

    columns: tuple[Model, ...]
    basis: str
    text: str
    needed: tuple[int, ...] = ()
    least: tuple[float, ...] = ()
    penalty: float = 0.0
    counted: Mapping[int, FloatArray] = field(default_factory=dict, compare=False)
    beyond_one: tuple[str, ...] = ()

    def at(self, where: _Flags) -> Prior:
        """Return the prior at a part of the configurations."""
        if not self.counted:
            return self
        return replace(self, counted={column: values[where] for column, values in self.counted.items()})


@dataclass(frozen=True)
class PriorFit:
    """A prior and the model that its columns make with the coefficients that fit best.

    coefficients: number of coefficients above their lower bound.
    """

    prior: Prior
    model: Model
    coefficients: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fit of one prior: coefficients, errors at fitted and left-out points, and score (lower is better)."""

    coefficients: FloatArray
    residual: float
    left_out: float
    score: float


def columns_of(
    prior: Prior, parameters: tuple[str, ...], points: FloatArray, known: dict[int, FloatArray] | None = None
) -> FloatArray:
    """Return the columns of a prior at points, (K, C). known: cache of columns by the identity of their model."""
    known = {} if known is None else known
    for model in prior.columns:
        if id(model) not in known:
            known[id(model)] = replace(model, parameters=parameters).evaluate(points)
    return np.stack([known[id(model)] for model in prior.columns])
