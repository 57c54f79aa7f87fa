# SPDX-License-Identifier: Apache-2.0
"""Sizes of loops and messages: a coefficient times powers and logarithms of p and n, rounded to a whole number."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..pmnf.model import Model, Term, parse_product

PARAMETERS = ("p", "n")


def parse_growth(text: str) -> Term:
    """Return the term of a text such as "0.5*n^(3/2)*log2(p)". Raises ModelingError as `parse_product`."""
    return parse_product(text, PARAMETERS)


def exact_value(term: Term, point: Mapping[str, float]) -> float:
    """Return the value of a term at a point, before rounding to a whole number.

    The order of floating-point operations is that of generated programs, so that rounded sizes are equal.
    """
    value = term.coefficient
    for factor in term.shape:
        if factor.exponent:
            value *= math.pow(point[factor.parameter], float(factor.exponent))
        for _ in range(factor.log):
            value *= math.log2(point[factor.parameter])
    return value


def size(term: Term, point: Mapping[str, float]) -> int:
    """Return the size of a loop or message: the nearest whole number, at least 1."""
    return max(1, math.floor(exact_value(term, point) + 0.5))


def formula(term: Term) -> str:
    """Return the size of a loop or message as a Python expression of p and n that uses max, floor and log2."""
    return f"max(1, floor({_python(term)} + 0.5))"


def text(term: Term) -> str:
    """Return a term as text that `parse_growth` can read."""
    whole = not term.factors and term.coefficient.is_integer()
    return f"{term.coefficient:.0f}" if whole else _python(term).replace("**", "^")


def _python(term: Term) -> str:
    return Model(PARAMETERS, 0.0, (term,)).python if term.factors else repr(term.coefficient)


def as_cpp(term: Term) -> str:
    """Return the size of a loop or message as a C++ expression of run.p and run.n (source/generated.hpp)."""
    product = [repr(term.coefficient)]
    for factor in term.shape:
        name = f"run.{factor.parameter}"
        if factor.exponent == 1:
            product.append(name)
        elif factor.exponent:
            exponent = factor.exponent
            over = f" / {exponent.denominator}.0" if exponent.denominator > 1 else ""
            product.append(f"std::pow({name}, {exponent.numerator}.0{over})")
        product.extend([f"std::log2({name})"] * factor.log)
    return f"rounded({' * '.join(product)})"
