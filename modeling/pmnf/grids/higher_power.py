"""Polynomials through all sizes that were measured: one power more has the same values there.

Through K sizes goes a polynomial of K coefficients whatever is counted, and n^K is one of them, with whole
coefficients, because the sizes are whole. So n³ counted at 16, 32 and 64 is 112·n² - 3584·n + 32768, which no digit of
the counts speaks against. But it is the longer description: the next power belongs to what is counted where
coefficients become shorter by it, 4·n³ + 12·n² + 12·n in place of 460·n² - 14324·n + 131072.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...experiment import FloatArray
from ..description import length_of
from ..model import Alternative, Factor, Model, Term, collect
from .calibration import GRID_MOST_DOUBT

_Form = tuple[float, tuple[Term, ...]]
# Terms below this part of the largest one are rounding.
_NOTHING = 1e-15


def with_higher_power(model: Model, name: str, sizes: FloatArray) -> tuple[Model, float]:
    """Return a polynomial in the parameter `name` through all its K sizes (K,), with n^K where that is shorter.

    And by how much its description is shorter then.
    The other one is among its alternatives, with the weight that its length has. Models with other functions of the
    parameter stay as they are.
    """
    form, saved = _shortest((model.constant, model.terms), name, sizes)
    others = [(own, *_shortest((own.constant, own.terms), name, sizes)) for own in model.alternatives]
    alternatives = [replace(own, constant=better[0], terms=better[1]) for own, better, _ in others]
    if not saved:
        return replace(model, alternatives=tuple(alternatives)), 0.0
    weight = math.exp(-0.5 * saved)
    best = 1.0 - sum(own.weight for own in alternatives)
    former = Alternative(min(best * weight / (1.0 + weight), GRID_MOST_DOUBT), model.constant, model.terms)
    return replace(model, constant=form[0], terms=form[1], alternatives=(*alternatives, former)), saved


def _shortest(form: _Form, name: str, sizes: FloatArray) -> tuple[_Form, float]:
    """Return the shortest of the forms that have the same values at the sizes, and by how much it is shorter."""
    parts: dict[tuple[Factor, ...], FloatArray] = {}
    for term in (Term(form[0], ()), *form[1]):
        own = [factor for factor in term.factors if factor.parameter == name]
        power = own[0].exponent if own else Fraction(0)
        plain = all(factor.is_plain and not factor.log for factor in own)
        if len(own) > 1 or not plain or power.denominator != 1 or not 0 <= power < sizes.size:
            return form, 0.0
        rest = tuple(factor for factor in term.factors if factor.parameter != name)
        parts.setdefault(rest, np.zeros(sizes.size + 1))[int(power)] += term.coefficient
    nothing = np.poly(sizes)[::-1]  # the polynomial that is 0 at all sizes, from its constant on
    peaks = sizes.max() ** np.arange(sizes.size + 1.0)
    terms: list[Term] = []
    saved = 0.0
    for rest, coefficients in parts.items():
        tried = [coefficients]
        for place in np.flatnonzero(nothing[:-1]).tolist():
            other = coefficients - coefficients[place] / nothing[place] * nothing
            other[place] = 0.0
            tried.append(np.where(np.abs(other) * peaks > _NOTHING * (np.abs(other) * peaks).max(), other, 0.0))
        lengths = list(map(_length, tried))
        best = int(np.argmin(lengths))
        if math.isinf(lengths[best]):
            return form, 0.0
        chosen = tried[best]
        saved += lengths[0] - lengths[best]
        terms += [
            Term(value, (*rest, Factor(name, Fraction(power))) if power else rest)
            for power, value in enumerate(chosen.tolist())
            if value
        ]
    return (collect(0.0, terms), saved) if saved > 0.0 else (form, 0.0)


def _length(coefficients: FloatArray) -> float:
    """Return the length of the description of coefficients, as sums of functions of a grid have it."""
    return sum(length_of(own) for own in coefficients.tolist() if own)
