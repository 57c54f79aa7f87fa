# SPDX-License-Identifier: Apache-2.0
"""Counts on crossing lines: decide whether their functions of two parameters are added or multiplied.

If no two parameters leave one configuration together, any multiple of (f(p) - f(p0))·(g(n) - g(n0)) is 0 at all points.
For example, 5000·p + 15·n - 19993 and 5·n·(p-1) + 7 are equal for n=1000 and for p=4. Only the length of the
description distinguishes them (Rissanen, Modeling by shortest data description, 1978): coefficients of loops are small
whole numbers, and a product written as a sum contains the values of the configuration.
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
# Additional products of one sum; number of the shortest sums that are kept for each number of products.
_MOST_PRODUCTS, _MOST_SUMS = 3, 8
# Length of a coefficient that is no fraction of loops, and of the choice of two functions to multiply.
_NO_FRACTION, _CHOICE = 12.0, 0.5
# Digits that must be equal in sums with the same coefficients.
_DIGITS = 9


def by_crossing(
    models: Sequence[Model | None], points: FloatArray, used: _Flags, names: Sequence[str]
) -> dict[int, Model]:
    """Return the exact models of counts whose functions may also be multiplied, the shortest description first.

    points: (C, m); used: (N, C), where a call path was measured and executed. The others are alternatives, with weights
    by their lengths.
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
    """Return whether a model is exact, with terms of several parameters, without process grids and steps."""
    plain = all(factor.is_plain for term in model.terms for factor in term.factors)
    return reproduces(model) and not model.covariance and plain and len(model.terms) > 1


class _Crossing:
    """Two parameters that never change together at points (C, m), with the values that most points have."""

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
        """Return the shortest sum that equals a model at all points, with the next ones as alternatives."""
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
        """Return an equal sum without products of the two parameters."""
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
        """Yield the sums with one more product of two parameters, in place of a term, or with a rest of a term."""
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
        """Return a sum with coefficients that are fractions of loops within rounding of counts up to `top`.

        Terms within rounding of 0 disappear.
        """
        constant, terms = form
        kept = [
            Term(_fraction(term.coefficient, EXACT_RESIDUAL * top / self._peak(term)), term.factors) for term in terms
        ]
        return collect(_fraction(constant, EXACT_RESIDUAL * top), kept)

    def _size(self, factors: tuple[Factor, ...]) -> float:
        """Return a product with one of the parameters at its value where the lines cross."""
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
    """Return the fraction of loops that equals a coefficient within rounding; otherwise the coefficient."""
    near = round(LOOP_DENOMINATOR * coefficient) / LOOP_DENOMINATOR
    return near if abs(near - coefficient) <= rounding else coefficient


def key_of(form: Sum) -> tuple[object, ...]:
    """Return a key that is equal for sums whose coefficients differ by rounding."""
    constant, terms = form
    return f"{constant:.{_DIGITS}e}", *((term.shape, f"{term.coefficient:.{_DIGITS}e}") for term in terms)


def written(term: Term, parameters: Sequence[str]) -> Term:
    """Return a term with its factors in the order of the parameters."""
    return replace(term, factors=tuple(sorted(term.factors, key=lambda own: parameters.index(own.parameter))))


def _length(form: Sum) -> float:
    """Return the length of the description of a sum."""
    return sum(min(length_of(own), _NO_FRACTION) for own in _coefficients(form))


def _fractions(form: Sum) -> int:
    """Return how many coefficients are no fractions of loops."""
    return sum(math.isinf(length_of(own)) for own in _coefficients(form))


def _coefficients(form: Sum) -> list[float]:
    constant, terms = form
    return [own for own in (constant, *(term.coefficient for term in terms)) if own]
