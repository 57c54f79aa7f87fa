# SPDX-License-Identifier: Apache-2.0
"""Compare two models: by the exponents of their leading terms, and by their values at a point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ...errors import ModelingError
from ...experiment import FloatArray
from .model import Model


@dataclass(frozen=True)
class Comparison:
    """The difference of a model from another one.

    The leading term of a model dominates as one parameter x grows; it has the order x^i·log2(x)^j. exponents: for each
    parameter, the difference of i (this model minus the other). logarithms: the difference of j. exponent_distance:
    the largest absolute difference of i over the parameters. relative_error: |this - other|/|other| at the point;
    0 if both are 0, infinite if only the other one is 0.
    """

    exponents: dict[str, float]
    logarithms: dict[str, int]
    exponent_distance: float
    relative_error: float

    @property
    def same_order(self) -> bool:
        """Return whether all leading exponents and logarithms are equal."""
        return not any(self.exponents.values()) and not any(self.logarithms.values())


def compare(model: Model, other: Model, point: Sequence[float] | FloatArray) -> Comparison:
    """Compare `model` with `other` (the truth, or the model of an earlier version of the program) at `point`.

    point: values in the order of the parameters of `model`. Raises ModelingError if the models have different
    parameters, or if one of them has no finite value at the point.
    """
    if set(model.parameters) != set(other.parameters):
        mine, theirs = (", ".join(m.parameters) or "none" for m in (model, other))
        raise ModelingError(f"models of different parameters cannot be compared: {mine} and {theirs}")
    place = dict(zip(model.parameters, map(float, point), strict=True))
    value, reference = model.at(**place), other.at(**place)
    exponents = {name: float(model.lead(name)[0] - other.lead(name)[0]) for name in model.parameters}
    logarithms = {name: model.lead(name)[1] - other.lead(name)[1] for name in model.parameters}
    difference = abs(value - reference)
    error = difference / abs(reference) if reference else (inf if difference else 0.0)
    return Comparison(exponents, logarithms, max(map(abs, exponents.values()), default=0.0), error)
