# SPDX-License-Identifier: Apache-2.0
"""The model of one call path, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass

from ..pmnf.model import Model
from ..pmnf.options import NoModel

TIME_ONLY = "time only"
WAITING = "waiting"


@dataclass(frozen=True)
class PathModel:
    """The model of one call path and metric, and how it came about.

    basis: "effort" (time from the block model), "table I: MPI_Bcast" (from a communication model), "time only" or
    "measured" (from the values of the metric alone) or "sum" (inclusive, from the call paths below); with
    "+ waiting" or "× growth in n" behind it where time grows beyond its effort. Of waiting: "waiting", what the model
    of time has of it, or "part of time", a part of each of its terms.
    prior: the prior as a formula, empty without one.
    oversubscribed: it is a model of time that rests on runs with more ranks than processors, because too few others
    were measured.
    lower: where time grows beyond effort, the model from effort alone.
    """

    model: Model | NoModel
    basis: str
    prior: str = ""
    oversubscribed: bool = False
    lower: Model | None = None

    @property
    def is_from_time_alone(self) -> bool:
        """Whether the model rests on values of time, without effort."""
        return self.basis == TIME_ONLY

    @property
    def has_waiting(self) -> bool:
        """Whether the model has a part for waiting in MPI, or is that part."""
        return self.basis.endswith(WAITING)

    @property
    def from_effort(self) -> Model | NoModel:
        """The model without what time has beyond effort."""
        return self.model if self.lower is None else self.lower


def unit(model: Model) -> Model:
    """Return the form of a model as a column of a prior: without what is known of its own uncertainty."""
    return Model(model.parameters, model.constant, model.terms)


def shapes(model: Model) -> set[object]:
    """Return the terms of a model without their coefficients."""
    return {term.shape for term in model.terms}
