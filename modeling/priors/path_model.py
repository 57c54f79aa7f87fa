# SPDX-License-Identifier: Apache-2.0
"""Define the model of one call path, with the facts from which it was fitted."""

from __future__ import annotations

from dataclasses import dataclass

from ..pmnf.model import Model
from ..pmnf.options import NoModel

TIME_ONLY = "time only"
WAITING = "waiting"


@dataclass(frozen=True)
class PathModel:
    """The model of one call path and metric, with the facts from which it was fitted.

    - basis of a model of time: "effort" (from the block model), "table I: MPI_Bcast" (from a communication model), or
      "time only". "+ waiting" or "× growth in n" follows if time grows beyond its effort.
    - basis of other models: "measured" (from the values of the metric alone), or "sum" (inclusive, from the call paths
      below).
    - basis of waiting: "waiting" (the part of the model of time), or "part of time" (a share of each term of the time).
    - prior: the prior as a formula; empty without a prior.
    - oversubscribed: whether the model uses runs with more ranks than processors, because too few others exist.
    - lower: the model from effort alone, if time grows beyond effort.
    """

    model: Model | NoModel
    basis: str
    prior: str = ""
    oversubscribed: bool = False
    lower: Model | None = None

    @property
    def is_from_time_alone(self) -> bool:
        """Return whether the model only uses measured times, without effort."""
        return self.basis == TIME_ONLY

    @property
    def has_waiting(self) -> bool:
        """Return whether the model is, or contains, a model of waiting in MPI."""
        return self.basis.endswith(WAITING)

    @property
    def from_effort(self) -> Model | NoModel:
        """Return the model without growth beyond effort."""
        return self.model if self.lower is None else self.lower


def unit(model: Model) -> Model:
    """Return a model as a column of a prior: without covariance, alternatives, quality and notes."""
    return Model(model.parameters, model.constant, model.terms)


def shapes(model: Model) -> set[object]:
    """Return the terms of a model without their coefficients."""
    return {term.shape for term in model.terms}
