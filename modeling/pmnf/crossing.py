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

from ..experiment import FloatArray
from .criterion.one_process import reproduces
from .description import length_of
from .grid_calibration import GRID_ALTERNATIVES, GRID_MOST_DOUBT
from .hidden import never_together
from .model import Alternative, Model, Term, collect, evaluate

_Flags = NDArray[np.bool_]
_Sum = tuple[float, tuple[Term, ...]]
# Products that one sum has more than another; so many of the shortest are looked at for each number of products.
_MOST_PRODUCTS, _MOST_SUMS = 3, 8
# Length of a coefficient that is no fraction as loops have, and of the choice of two functions to multiply.
_NO_FRACTION, _CHOICE = 12.0, 0.5
# Sums with less of the posterior weight are no alternatives.
_LEAST_WEIGHT = 0.01


def by_crossing(
    models: Sequence[Model | None], points: FloatArray, used: _Flags, names: Sequence[str]
) -> dict[int, Model]:
    """Return the exact models of counts whose functions may be multiplied as well, the shortest of both first.

    points: (C, m); used: (N, C), where a call path was measured and executed. The others are alternatives, with the
    weight that their length has.
    """
    result = {}
    pairs: dict[bytes, list[tuple[int, ...]]] = {}
    for path, model in enumerate(models):
        if model is None or not _is_open(model):
            continue
        key = np.packbits(used[path]).tobytes()
        if key not in pairs:
            pairs[key] = [pair for pair in never_together(points[used[path]]) if len(pair) == 2]
        found = model
        for pair in pairs[key]:
            found = _shortest(found, [names[index] for index in pair], _crossing(points[used[path]], pair))
        if found is not model:
            result[path] = found
    return result


def _is_open(model: Model) -> bool:
    """Whether a model is exact, with terms of several parameters, none of them of a process grid or of steps."""
    plain = all(factor.is_plain for term in model.terms for factor in term.factors)
    return reproduces(model) and not model.covariance and not model.alternatives and plain and len(model.terms) > 1


def _crossing(points: FloatArray, pair: tuple[int, ...]) -> list[float]:
    """Return the values of two parameters at which their lines cross, those that most points have."""
    found = []
    for index in pair:
        values, number = np.unique(points[:, index], return_counts=True)
        found.append(float(values[number.argmax()]))
    return found


def _shortest(model: Model, names: Sequence[str], at: Sequence[float]) -> Model:
    """Return the shortest of what is the same as a model on lines in two parameters that cross `at` a configuration.

    It is an alternative where another sum is shorter, and others are with it.
    """
    own = (model.constant, tuple(model.terms))
    added = _added(own, names, at)
    lengths = {form: _length(form) for form in (own, added)}
    newest, fractions = list(lengths), max(map(_fractions, lengths))
    for _ in range(_MOST_PRODUCTS):
        more = {
            form: _length(form) + _CHOICE
            for before in newest
            for form in _with_product(before, names, at)
            if _fractions(form) <= fractions
        }
        newest = [form for form in sorted(more, key=lambda form: more[form])[:_MOST_SUMS] if form not in lengths]
        lengths |= {form: more[form] for form in newest}
    shortest = min(lengths, key=lambda form: lengths[form])
    weights = {form: math.exp(0.5 * (lengths[shortest] - length)) for form, length in lengths.items()}
    whole = sum(weights.values())
    others = [
        Alternative(weight / whole, *form)
        for form, weight in sorted(weights.items(), key=lambda entry: -entry[1])
        if form != shortest and weight >= _LEAST_WEIGHT * whole
    ][:GRID_ALTERNATIVES]
    doubt = sum(other.weight for other in others)
    if doubt > GRID_MOST_DOUBT:  # so that the median is the shortest
        others = [replace(other, weight=other.weight * GRID_MOST_DOUBT / doubt) for other in others]
    shortest = shortest[0], tuple(_written(term, model.parameters) for term in shortest[1])
    note = f"{' and '.join(names)} never change together: products of their functions have the same counts"
    notes = (*model.notes, note) if others else model.notes
    return replace(model, constant=shortest[0], terms=shortest[1], alternatives=tuple(others), notes=notes)


def _written(term: Term, parameters: Sequence[str]) -> Term:
    """Return a term with its factors in the order of the parameters."""
    return replace(term, factors=tuple(sorted(term.factors, key=lambda own: parameters.index(own.parameter))))


def _added(form: _Sum, names: Sequence[str], at: Sequence[float]) -> _Sum:
    """Return the sum that is the same without products of the two parameters."""
    constant, terms = form
    found: list[Term] = []
    for term in terms:
        of_each = [tuple(own for own in term.factors if own.parameter == name) for name in names]
        if not all(of_each) or len(term.factors) != sum(map(len, of_each)):
            found.append(term)
            continue
        parts = [Term(1.0, own) for own in of_each]
        first, second = _sizes(parts, names, at)
        found += [parts[0].scaled(term.coefficient * second), parts[1].scaled(term.coefficient * first)]
        constant -= term.coefficient * first * second
    return collect(constant, found)


def _sizes(parts: Sequence[Term], names: Sequence[str], at: Sequence[float]) -> list[float]:
    """Return terms of one parameter each where the lines cross."""
    return [
        float(evaluate((name,), 0.0, (term,), [[value]])[0]) for name, term, value in zip(names, parts, at, strict=True)
    ]


def _with_product(form: _Sum, names: Sequence[str], at: Sequence[float]) -> Iterator[_Sum]:
    """Yield the sums that have one product more of a term of each of two parameters.

    It takes the place of one of the terms, or leaves less than one of the product of it.
    """
    constant, terms = form
    known = {term.shape for term in terms}
    of_each = [[term for term in terms if {own.parameter for own in term.factors} == {name}] for name in names]
    for first, second in product(*of_each):
        one, two = Term(1.0, first.factors), Term(1.0, second.factors)
        both = one.times(two)
        sizes = _sizes((one, two), names, at)
        if both.shape in known or 0.0 in sizes:
            continue
        wanted = {first.coefficient / sizes[1], second.coefficient / sizes[0]}
        for factor in sorted({*wanted, *map(float, map(math.floor, wanted))} - {0.0}):
            rest = (both.scaled(factor), one.scaled(-factor * sizes[1]), two.scaled(-factor * sizes[0]))
            yield collect(constant + factor * sizes[0] * sizes[1], [*terms, *rest])


def _length(form: _Sum) -> float:
    """Return the length of the description of a sum."""
    return sum(min(length_of(own), _NO_FRACTION) for own in _coefficients(form))


def _fractions(form: _Sum) -> int:
    """Return how many coefficients are no fractions as loops have them."""
    return sum(math.isinf(length_of(own)) for own in _coefficients(form))


def _coefficients(form: _Sum) -> list[float]:
    constant, terms = form
    return [own for own in (constant, *(term.coefficient for term in terms)) if own]
