# SPDX-License-Identifier: Apache-2.0
"""Counts on lines that cross and that deviate from all functions: whether these are added or multiplied.

As in `crossing`: 201·n + 1.6e7/p - 4.1e6 on lines that cross at n = 20000 and p = 4 is the same as 806·n/p + 1.5e5/p -
5.5e4. Here coefficients are no small whole numbers. The description of each is as long as that of its part of the
counts, in units of the deviations (Rissanen, Modeling by shortest data description, 1978): a product written as a sum
has three parts as large as the whole that nearly cancel out, and as a product one, with small rests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXPECTED_DEVIATION, INEXACT, MOST_SHARE
from ..criterion.deviating import rises_beyond
from ..criterion.one_process import is_exact
from ..data.noise import Repetitions
from ..data.preparation import take
from ..grids.calibration import GRID_ALTERNATIVES
from ..grids.terms import limited
from ..hypotheses.library import make_term
from ..model import Alternative, Model, Term, collect, evaluate
from ..uncertainty.covariance import joint_covariance, value_variance
from .exact import Sum, key_of, written
from .hidden import never_together

_Flags = NDArray[np.bool_]
# Products that one sum has more than another.
_MOST_PRODUCTS = 3


def by_deviating_crossing(
    models: Sequence[Model | None],
    points: FloatArray,
    counts: FloatArray,
    used: _Flags,
    repetitions: Repetitions,
    names: Sequence[str],
) -> dict[int, Model]:
    """Return the models of counts (N, C) whose functions may be multiplied as well, the shortest form of each first.

    points: (C, m); used: (N, C), where a call path was measured and executed. The other forms are alternatives, with
    the weight that their length has.
    """
    result = {}
    for path, model in enumerate(models):
        if model is None or is_exact(model) or not _is_open(model):
            continue
        low, high = np.array(model.ranges).T  # another formula may hold at one process
        at = used[path] & ((points >= low) & (points <= high)).all(axis=1)
        if not (counts[path, at] > 0).all():
            continue
        found = model
        for pair in never_together(points[at]):
            if len(pair) == 2:
                own = take(repetitions, np.array([path]), at)
                found = _Crossing(points[at], counts[path, at], names, pair, own).shortest(found)
        if found is not model:
            result[path] = found
    return result


def _is_open(model: Model) -> bool:
    """Whether a model has terms of single parameters that may be multiplied, and nothing but powers and logarithms."""
    plain = all(factor.is_plain for term in model.terms for factor in term.factors)
    alone = {term.factors[0].parameter for term in model.terms if len(term.factors) == 1}
    return plain and len(alone) > 1 and bool(model.covariance) and len(model.ranges) == len(model.parameters)


@dataclass(frozen=True, eq=False)
class _Crossing:
    """Counts (C,) at points (C, m) where the two parameters `pair` never change together, with their repetitions."""

    points: FloatArray
    counts: FloatArray
    names: Sequence[str]
    pair: tuple[int, ...]
    repetitions: Repetitions

    def shortest(self, model: Model) -> Model:
        """Return the shortest of what is the same as a model at all points, the others as alternatives."""
        residual = model.quality.rms_relative if model.quality is not None else 0.0
        unit = max(residual, EXPECTED_DEVIATION)
        forms = {key_of(form): (self._length(form, unit), form) for form in self._forms(model, unit)}
        (least, best), *longer = sorted(forms.values(), key=lambda one: one[0])
        if not longer:
            return model
        others = [Alternative(math.exp(0.5 * (least - length)), *form) for length, form in longer]
        known = 1.0 - sum(other.weight for other in model.alternatives)
        others += [replace(other, weight=other.weight / known) for other in model.alternatives]
        alternatives = limited(sorted(others, key=lambda other: -other.weight)[:GRID_ALTERNATIVES], 1.0)
        if len(alternatives) == len(model.alternatives) and best == (model.constant, model.terms):
            return model
        first, second = (self.names[index] for index in self.pair)
        note = f"{first} and {second} never change together: products of their functions have the same counts"
        constant, terms = best
        rows = self._covariance(best, residual) if best != (model.constant, model.terms) else model.covariance
        changed = replace(model, constant=constant, terms=terms, covariance=rows, alternatives=alternatives)
        return replace(changed, notes=(*model.notes, note))

    def _forms(self, model: Model, unit: float) -> Iterator[Sum]:
        """Yield the sum of a model, and those that have more and more products, each time of the shortest one."""
        newest: Sum = model.constant, model.terms
        yield newest
        for _ in range(_MOST_PRODUCTS):
            found = [form for form in self._with_product(newest) if self._is_credible(form, model)]
            if not found:
                return
            yield from found
            newest = min(found, key=lambda form: self._length(form, unit))

    def _with_product(self, form: Sum) -> Iterator[Sum]:
        """Yield the sums that have a product of terms of each parameter in place of one of these, where it shows."""
        constant, terms = form
        pair = [self.names[index] for index in self.pair]
        of_each = [[term for term in terms if {own.parameter for own in term.factors} == {name}] for name in pair]
        for first, second in product(*of_each):
            one, two = Term(1.0, first.factors), Term(1.0, second.factors)
            size, other = self._at_crossing(one), self._at_crossing(two)
            if 0.0 in (size, other):
                continue
            for factor in (first.coefficient / other, second.coefficient / size):
                both = written(one.times(two).scaled(factor), self.names)
                if (np.abs(self._part(both)) / self.counts).max() >= MOST_SHARE:
                    rest = (both, one.scaled(-factor * other), two.scaled(-factor * size))
                    yield collect(constant + factor * size * other, [*terms, *rest])

    def _is_credible(self, form: Sum, model: Model) -> bool:
        """Whether a sum is a count where both parameters change, and rises beyond the points as it does there."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        corners = np.array(list(product(*zip(low.tolist(), high.tolist(), strict=True))))
        constant, terms = form
        changed = replace(model, constant=constant, terms=terms, covariance=(), alternatives=())
        positive = (evaluate(tuple(self.names), constant, terms, corners) > 0).all()
        return bool(positive) and not rises_beyond(changed, self.points, self.counts)

    def _length(self, form: Sum, unit: float) -> float:
        """Return the length of the description of a sum: of its form, and of its parts in units of the deviations."""
        constant, terms = form
        parts = [self._part(term) for term in terms] + ([np.full(self.counts.shape, constant)] if constant else [])
        shares = [float(np.sqrt(((part / self.counts) ** 2).mean())) for part in parts]
        length = INEXACT.coefficient * len(parts) + sum(2.0 * math.log1p(share / unit) for share in shares)
        length += INEXACT.negative * (sum(term.coefficient < 0 for term in terms) + (constant < 0))
        functions = [[make_term(own.exponent, own.log) for own in term.factors] for term in terms]
        length += INEXACT.complexity * sum(own.cost for term in functions for own in term)
        return length + INEXACT.growth * max((sum(own.order for own in term) for term in functions), default=0.0)

    def _covariance(self, form: Sum, residual: float) -> tuple[tuple[float, ...], ...]:
        """Return the covariance of a sum of this form that misses the counts by `residual`, as of models of counts."""
        constant, terms = form
        design = np.array([np.ones(self.counts.shape), *(self._part(replace(t, coefficient=1.0)) for t in terms)])
        coefficients = np.array([[constant, *(term.coefficient for term in terms)]])
        width = (coefficients != 0).sum(axis=1) + sum(len(term.factors) for term in terms)
        variance = value_variance(np.array([residual]), self.repetitions, self.counts.size, width)
        known = self.points, variance, self.counts[None]
        covariance = joint_covariance(design[None], coefficients, *known, lacking=variance)[0]
        return tuple(map(tuple, covariance.tolist()))

    def _part(self, term: Term) -> FloatArray:
        """Return a term at the points, (C,)."""
        return term.evaluate(dict(zip(self.names, self.points.T, strict=True)), self.counts.shape)

    def _at_crossing(self, term: Term) -> float:
        """Return a term of one of the parameters where the lines cross: at the value that most points have of each."""
        at = {}
        for index in self.pair:
            values, number = np.unique(self.points[:, index], return_counts=True)
            at[self.names[index]] = values[[number.argmax()]]
        return float(term.evaluate(at, (1,))[0])
