# SPDX-License-Identifier: Apache-2.0
"""Counts on lines that cross: whether their functions of two parameters are added or multiplied.

Where no two parameters ever leave one configuration together, 5000·p + 15·n - 19993 at n=1000 and at p=4 is the same as
5·n·(p-1) + 7: any multiple of (f(p) - f(p0))·(g(n) - g(n0)) is 0 at all points. Nothing but the length of the
description tells them apart (Rissanen, Modeling by shortest data description, 1978): what loops count has small whole
coefficients, and a product written as a sum has those of the configuration in them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_RESIDUAL, LOOP_DENOMINATOR
from ..criterion.one_process import reproduces
from ..description import length_of
from ..grids.calibration import GRID_ALTERNATIVES
from ..grids.terms import limited
from ..model import Alternative, Factor, Model, Term, collect
from .hidden import never_together

_Flags = NDArray[np.bool_]
Sum = tuple[float, tuple[Term, ...]]
# Products that one sum has more than another; so many of the shortest are looked at for each number of products.
_MOST_PRODUCTS, _MOST_SUMS = 3, 8
# Length of a coefficient that is no fraction as loops have, and of the choice of two functions to multiply.
_NO_FRACTION, _CHOICE = 12.0, 0.5
# Digits in which sums with the same coefficients agree.
_DIGITS = 9


def by_crossing(
    models: Sequence[Model | None], points: FloatArray, used: _Flags, names: Sequence[str]
) -> dict[int, Model]:
    """Return the exact models of counts whose functions may be multiplied as well, the shortest of both first.

    points: (C, m); used: (N, C), where a call path was measured and executed. The others are alternatives, with the
    weight that their length has.
    """
    result = {}
    crossings: dict[bytes, list[_Crossing]] = {}
    for path, model in enumerate(models):
        if model is None or not _is_open(model):
            continue
        key = np.packbits(used[path]).tobytes()
        if key not in crossings:
            own = points[used[path]]
            pairs = [pair for pair in never_together(own) if len(pair) == 2]
            crossings[key] = [_Crossing(own, names, pair) for pair in pairs]
        found = model
        for crossing in crossings[key]:
            found = crossing.shortest(found)
        if found is not model:
            result[path] = found
    return result


def _is_open(model: Model) -> bool:
    """Whether a model is exact, with terms of several parameters, none of them of a process grid or of steps."""
    plain = all(factor.is_plain for term in model.terms for factor in term.factors)
    return reproduces(model) and not model.covariance and plain and len(model.terms) > 1


class _Crossing:
    """Two parameters that never change together at points (C, m), with the values that most points have of both."""

    def __init__(self, points: FloatArray, names: Sequence[str], pair: tuple[int, ...]) -> None:
        self.columns = dict(zip(names, points.T, strict=True))
        self.names = [names[index] for index in pair]
        self.at = {}
        for name in self.names:
            values, number = np.unique(self.columns[name], return_counts=True)
            self.at[name] = values[[number.argmax()]]
        self._sizes: dict[tuple[Factor, ...], float] = {}
        self._peaks: dict[tuple[Factor, ...], float] = {}

    def shortest(self, model: Model) -> Model:
        """Return the shortest of what is the same as a model at all points.

        It is an alternative where another sum is shorter, and others are with it.
        """
        top = float(np.abs(model.evaluate(np.stack(list(self.columns.values()), axis=1))).max())
        own = self._clean((model.constant, tuple(model.terms)), top)
        lengths = {key_of(form): (_length(form), form) for form in (own, self._clean(self._added(own), top))}
        newest = [form for _, form in lengths.values()]
        fractions = max(map(_fractions, newest))
        for _ in range(_MOST_PRODUCTS):
            tried = (self._clean(form, top) for before in newest for form in self._with_product(before))
            more = {key_of(form): (_length(form) + _CHOICE, form) for form in tried if _fractions(form) <= fractions}
            found = sorted(more, key=lambda key: more[key][0])[:_MOST_SUMS]
            newest = [more[key][1] for key in found if key not in lengths]
            lengths |= {key: more[key] for key in found if key not in lengths}
        (least, (constant, terms)), *longer = sorted(lengths.values(), key=lambda one: one[0])
        others = [Alternative(math.exp(0.5 * (least - length)), *form) for length, form in longer]
        # of parameters before these; relative to the weight of the model, as the others are
        known = 1.0 - sum(other.weight for other in model.alternatives)
        others += [replace(other, weight=other.weight / known) for other in model.alternatives]
        alternatives = limited(sorted(others, key=lambda other: -other.weight)[:GRID_ALTERNATIVES], 1.0)
        note = f"{' and '.join(self.names)} never change together: products of their functions have the same counts"
        notes = (*model.notes, note) if len(alternatives) > len(model.alternatives) else model.notes
        in_order = tuple(written(term, model.parameters) for term in terms)
        return replace(model, constant=constant, terms=in_order, alternatives=alternatives, notes=notes)

    def _added(self, form: Sum) -> Sum:
        """Return the sum that is the same without products of the two parameters."""
        constant, terms = form
        found: list[Term] = []
        for term in terms:
            of_each = [tuple(own for own in term.factors if own.parameter == name) for name in self.names]
            if not all(of_each) or len(term.factors) != sum(map(len, of_each)):
                found.append(term)
                continue
            first, second = map(self._size, of_each)
            found += [Term(term.coefficient * second, of_each[0]), Term(term.coefficient * first, of_each[1])]
            constant -= term.coefficient * first * second
        return collect(constant, found)

    def _with_product(self, form: Sum) -> Iterator[Sum]:
        """Yield the sums that have one product more of a term of each of two parameters.

        It takes the place of one of the terms, or leaves less than one of the product of it.
        """
        constant, terms = form
        known = {term.shape for term in terms}
        of_each = [[term for term in terms if {own.parameter for own in term.factors} == {name}] for name in self.names]
        for first, second in product(*of_each):
            one, two = Term(1.0, first.factors), Term(1.0, second.factors)
            both = one.times(two)
            size, other = self._size(first.factors), self._size(second.factors)
            if both.shape in known or 0.0 in (size, other):
                continue
            wanted = {first.coefficient / other, second.coefficient / size}
            for factor in sorted({*wanted, *map(float, map(math.floor, wanted))} - {0.0}):
                rest = (both.scaled(factor), one.scaled(-factor * other), two.scaled(-factor * size))
                yield collect(constant + factor * size * other, [*terms, *rest])

    def _clean(self, form: Sum, top: float) -> Sum:
        """Return a sum with the fractions of loops that its coefficients are to within rounding of counts up to `top`.

        Terms that are no more than that disappear.
        """
        constant, terms = form
        kept = [
            Term(_fraction(term.coefficient, EXACT_RESIDUAL * top / self._peak(term)), term.factors) for term in terms
        ]
        return collect(_fraction(constant, EXACT_RESIDUAL * top), kept)

    def _size(self, factors: tuple[Factor, ...]) -> float:
        """Return a product of one of the parameters where the lines cross."""
        if factors not in self._sizes:
            self._sizes[factors] = float(Term(1.0, factors).evaluate(self.at, (1,))[0])
        return self._sizes[factors]

    def _peak(self, term: Term) -> float:
        """Return the largest value of a term without its coefficient at the points."""
        if term.shape not in self._peaks:
            values = Term(1.0, term.factors).evaluate(self.columns, next(iter(self.columns.values())).shape)
            self._peaks[term.shape] = max(float(np.abs(values).max()), 1e-300)
        return self._peaks[term.shape]


def _fraction(coefficient: float, rounding: float) -> float:
    """Return the fraction as loops have it that a coefficient is to within rounding, else the coefficient."""
    near = round(LOOP_DENOMINATOR * coefficient) / LOOP_DENOMINATOR
    return near if abs(near - coefficient) <= rounding else coefficient


def key_of(form: Sum) -> tuple[object, ...]:
    """Return what sums have in common whose coefficients differ by rounding only."""
    constant, terms = form
    return f"{constant:.{_DIGITS}e}", *((term.shape, f"{term.coefficient:.{_DIGITS}e}") for term in terms)


def written(term: Term, parameters: Sequence[str]) -> Term:
    """Return a term with its factors in the order of the parameters."""
    return replace(term, factors=tuple(sorted(term.factors, key=lambda own: parameters.index(own.parameter))))


def _length(form: Sum) -> float:
    """Return the length of the description of a sum."""
    return sum(min(length_of(own), _NO_FRACTION) for own in _coefficients(form))


def _fractions(form: Sum) -> int:
    """Return how many coefficients are no fractions as loops have them."""
    return sum(math.isinf(length_of(own)) for own in _coefficients(form))


def _coefficients(form: Sum) -> list[float]:
    constant, terms = form
    return [own for own in (constant, *(term.coefficient for term in terms)) if own]
