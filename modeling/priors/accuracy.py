"""How good models are: exponent deviation and relative error, as de Morais et al. define them (equations 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ..pmnf.model import Exponents, Model


def exponent_deviation(first: Exponents, second: Exponents) -> Fraction:
    """Return ED = |n1 - n2| of the leading powers of one parameter; logarithms and constants have the power 0."""
    return abs(first[0] - second[0])


def exponent_deviations(model: Model, truth: Mapping[str, Exponents]) -> dict[str, Fraction]:
    """Return ED of a model in each parameter, given the true leading exponents by parameter."""
    return {name: exponent_deviation(model.lead(name), exponents) for name, exponents in truth.items()}


def relative_error(predicted: float, measured: float) -> float:
    """Return RE = |y - f|/y as a share (0.1 is 10 %) of the measured value y, which must be above 0."""
    return abs(measured - predicted) / measured
