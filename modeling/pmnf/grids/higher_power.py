# SPDX-License-Identifier: Apache-2.0
"""Polynomials through all measured sizes: one more power has the same values there.

K sizes have a polynomial of K coefficients for any counts, also for n^K, with whole coefficients because the sizes are
whole. For example, n³ at 16, 32 and 64 is 112·n² - 3584·n + 32768. But this description is longer. The next power is
added if it makes the coefficients shorter: 4·n³ + 12·n² + 12·n instead of 460·n² - 14324·n + 131072.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...experiment import FloatArray
from ..description import length_of
from ..model import Alternative, Factor, Model, Term, collect
from .calibration import GRID_DOUBT, GRID_MOST_DOUBT

_Form = tuple[float, tuple[Term, ...]]
_Factors = tuple[Factor, ...]
# Terms below this part of the largest one are rounding.
_NOTHING = 1e-15
# Decimal digits of a length, because lengths are sums of tenths.
_DIGITS = 9
# Number of polynomials through the same values that are compared.
_MOST_POLYNOMIALS = 3


def with_higher_power(model: Model, name: str, sizes: FloatArray) -> tuple[Model, float]:
    """Return a polynomial in the parameter `name` through all its K sizes (K,), with n^K if this is shorter.

    Also return by how much its description is shorter. The other polynomial is an alternative, with the weight of its
    length, and so are polynomials with another coefficient of n^K that are hardly longer. Models with other functions
    of the parameter do not change.
    """
    found = _by_length((model.constant, model.terms), name, sizes)
    others = [(own, _by_length((own.constant, own.terms), name, sizes)) for own in model.alternatives]
    alternatives = [replace(own, constant=near[0].constant, terms=near[0].terms) for own, near in others]
    best = found[0]
    length = next(own.length for own in found if own.is_former)
    weights = {own: math.exp(0.5 * (best.length - own.length)) for own in found[1:]}
    share = (1.0 - sum(own.weight for own in alternatives)) / (1.0 + sum(weights.values()))
    share *= min(1.0, GRID_MOST_DOUBT / max(share * sum(weights.values()), GRID_MOST_DOUBT))
    alternatives += [Alternative(share * weight, own.constant, own.terms) for own, weight in weights.items()]
    model = replace(model, constant=best.constant, terms=best.terms, alternatives=tuple(alternatives))
    return model, length - best.length


@dataclass(frozen=True, eq=False)
class _Sum:
    """A polynomial, and the length of its description; is_former: without the next power."""

    length: float
    constant: float
    terms: tuple[Term, ...]
    is_former: bool = False


def _by_length(form: _Form, name: str, sizes: FloatArray) -> list[_Sum]:
    """Return sums with the same values at the sizes: the shortest, others, and the original form.

    The shortest sum uses the shortest polynomial for each function of the other parameters; the others use one second
    shortest polynomial. If these functions are dependent, such as 1, 1/p and (p-1)/p, sums of 1 and 1/p are tried.
    """
    written = _parts(form, name, sizes.size)
    if written is None:
        return [_Sum(0.0, *form, is_former=True)]
    former = _Sum(_total(_length(own.tolist()) for own in written.values()), *form, is_former=True)
    without = _without_shares(written)
    parts = written if len(written) <= len(without) else without
    at = tuple(sizes.tolist())
    choices = {rest: _polynomials(tuple(coefficients.tolist()), at) for rest, coefficients in parts.items()}
    shortest = {rest: polynomials[0] for rest, polynomials in choices.items()}
    tried = [shortest, *({**shortest, rest: own} for rest, several in choices.items() for own in several[1:])]
    lengths = [_total(own.length for own in polynomials.values()) for polynomials in tried]
    least = min(former.length, *lengths)
    if math.isinf(least):
        return [former]
    found = [
        _sum_of(own, length, name) for own, length in zip(tried, lengths, strict=True) if length < least + GRID_DOUBT
    ]
    kept = {own.terms: own for own in reversed(found)}
    # an equal sum is the original form
    kept[former.terms] = former
    return sorted(kept.values(), key=lambda own: (own.length, _size(term.coefficient for term in own.terms)))


def _parts(form: _Form, name: str, number: int) -> dict[_Factors, FloatArray] | None:
    """Return the coefficients (K + 1,) of the powers of a parameter, by the other factors of their terms.

    None if there are other functions of the parameter than powers below K, the `number` of sizes.
    """
    parts: dict[_Factors, FloatArray] = {}
    for term in (Term(form[0], ()), *form[1]):
        own = [factor for factor in term.factors if factor.parameter == name]
        power = own[0].exponent if own else Fraction(0)
        plain = all(factor.is_plain and not factor.log for factor in own)
        if len(own) > 1 or not plain or power.denominator != 1 or not 0 <= power < number:
            return None
        rest = tuple(factor for factor in term.factors if factor.parameter != name)
        parts.setdefault(rest, np.zeros(number + 1))[int(power)] += term.coefficient
    return parts


def _without_shares(parts: Mapping[_Factors, FloatArray]) -> dict[_Factors, FloatArray]:
    """Return the same sums with 1 - 1/p instead of (p-1)/p."""
    result: dict[_Factors, FloatArray] = {}
    for rest, coefficients in parts.items():
        for product in _without_shares_of(rest):
            known = result.setdefault(product.factors, np.zeros_like(coefficients))
            known += product.coefficient * coefficients
    return {rest: own for rest, own in result.items() if own.any()}


@lru_cache(maxsize=4096)
def _without_shares_of(factors: _Factors) -> list[Term]:
    """Return a product of factors as a sum of terms without shares (p-1)/p."""
    products = [Term(1.0, ())]
    for factor in factors:
        products = [product.times(own) for product in products for own in _expanded(factor)]
    return products


def _expanded(factor: Factor) -> list[Term]:
    """Return a factor as a sum of terms without shares (p-1)/p."""
    if not factor.shares:
        return [Term(1.0, (factor,))]
    axis = None if factor.axis is None or factor.axis.dimensions == 1 else factor.axis
    once = Term(1.0, (Factor(factor.parameter, Fraction(-1), axis=axis),))
    fewer = replace(factor, shares=factor.shares - 1, axis=axis)
    rest = [Term(1.0, ())] if fewer == Factor(factor.parameter, axis=axis) else _expanded(fewer)
    return [*rest, *(own.times(once).scaled(-1.0) for own in rest)]


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """The coefficients (K + 1,) of the powers of a parameter, and the length of their description."""

    length: float
    coefficients: tuple[float, ...]


@lru_cache(maxsize=4096)
def _polynomials(coefficients: tuple[float, ...], sizes: tuple[float, ...]) -> list[_Polynomial]:
    """Return polynomials (K + 1,) with the same values at the sizes (K,), the shortest first, up to _MOST_POLYNOMIALS.

    They are polynomials in which one coefficient is 0, and polynomials whose coefficient of the next power is a
    multiple of 1/2 near the former. The results are cached, because alternatives of a model share most parts.
    """
    own = np.array(coefficients)
    nothing = np.poly(sizes)[::-1]  # the polynomial that is 0 at all sizes, from its constant on
    peaks = max(sizes) ** np.arange(len(sizes) + 1.0)
    tried = [own]
    for place in np.flatnonzero(nothing[:-1]).tolist():
        exact = -own[place] / nothing[place]
        near = {bound(exact * part) / part for part in (1, 2) for bound in (math.floor, math.ceil)} - {0.0, exact}
        for highest in (exact, *sorted(near)):
            other = own + highest * nothing
            if highest == exact:
                other[place] = 0.0
            tried.append(np.where(np.abs(other) * peaks > _NOTHING * (np.abs(other) * peaks).max(), other, 0.0))
    by_highest = {float(one[-1]): tuple(one.tolist()) for one in reversed(tried)}
    found = [_Polynomial(_length(one), one) for one in by_highest.values()]
    return sorted(found, key=lambda one: (one.length, _size(one.coefficients)))[:_MOST_POLYNOMIALS]


def _sum_of(parts: Mapping[_Factors, _Polynomial], length: float, name: str) -> _Sum:
    """Return polynomials with their other factors, as a sum whose description has this length."""
    terms = [
        Term(value, (*rest, Factor(name, Fraction(power))) if power else rest)
        for rest, polynomial in parts.items()
        for power, value in enumerate(polynomial.coefficients)
        if value
    ]
    return _Sum(length, *collect(0.0, terms))


def _length(coefficients: Iterable[float]) -> float:
    """Return the length of the description of coefficients, as for functions of a grid.

    Equal sets of coefficients have equal lengths, independent of the order of addition.
    """
    return _total(length_of(own) for own in coefficients if own)


def _total(lengths: Iterable[float]) -> float:
    return round(math.fsum(lengths), _DIGITS)


def _size(coefficients: Iterable[float]) -> float:
    """Return the sum of the magnitudes of coefficients, which decides between equal lengths."""
    return math.fsum(map(abs, coefficients))
