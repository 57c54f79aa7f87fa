# SPDX-License-Identifier: Apache-2.0
"""Priors of call paths, models without coefficients, and what fits of them say."""

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

    basis: where the prior comes from. text: the prior as a formula. needed: columns of which one at least must have a
    part in the model, because the order of the effort is known; empty if there is no such demand. least: lower bounds
    of the coefficients; priors that have them keep every column that fits, the others only columns that explain more
    than their penalty.
    penalty: what is added to the score, because the prior is less trusted than others.
    counted: by column what was counted of it at the configurations, shape (C,). Coefficients are fitted to that, and
    the models say how it goes on: what these leave open, no time tells.
    beyond_one: parameters at whose value 1 the effort of the call path follows another formula.
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
        """Return the prior at some of the configurations."""
        if not self.counted:
            return self
        return replace(self, counted={column: values[where] for column, values in self.counted.items()})


@dataclass(frozen=True)
class PriorFit:
    """A prior and the model that its columns make with the coefficients that fit best.

    coefficients: how many of them are larger than they are at least.
    """

    prior: Prior
    model: Model
    coefficients: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients of one prior, errors in sample and left out, and the score (lower is better)."""

    coefficients: FloatArray
    residual: float
    left_out: float
    score: float


def columns_of(
    prior: Prior, parameters: tuple[str, ...], points: FloatArray, known: dict[int, FloatArray] | None = None
) -> FloatArray:
    """Return the columns of a prior at points, (K, C). known: those of models by identity, which grows."""
    known = {} if known is None else known
    for model in prior.columns:
        if id(model) not in known:
            known[id(model)] = replace(model, parameters=parameters).evaluate(points)
    return np.stack([known[id(model)] for model in prior.columns])
