# SPDX-License-Identifier: Apache-2.0
"""Compute the exponent deviation of models, as de Morais et al. define it (equation 4)."""

from __future__ import annotations

from fractions import Fraction

from quipu.modeling.pmnf.model import Exponents


def exponent_deviation(first: Exponents, second: Exponents) -> Fraction:
    """Return ED = |n1 - n2| of the leading powers of one parameter; logarithms and constants have the power 0."""
    return abs(first[0] - second[0])
