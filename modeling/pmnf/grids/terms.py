# SPDX-License-Identifier: Apache-2.0
"""Exact models of counts by process grids as terms, from functions of the other parameters and forms of the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...catalogue import FEW_GRIDS, LONG_GRIDS, TOO_FEW_GRIDS
from ...experiment import FloatArray
from ...process_grid import ProcessGrid, telling
from ..calibration import LEAST_WEIGHT
from ..hypotheses.library import SimpleTerm
from ..model import Alternative, Factor, Model, Term, collect
from ..model.term import SortKey, sort_key
from ..proposers.grid_coefficients import Coefficients, Functions
from ..proposers.grid_forms import Domain, Form, Forms, GridForms
from ..proposers.grid_functions import EACH, EVERY, NEIGHBOUR, SEVERAL, SHARE, STEPS, STEPS_OF_SHARE
from ..proposers.grid_polynomials import Polynomial
from ..proposers.grid_shares import with_logarithms_of_shares
from .calibration import (
    GRID_ALTERNATIVES,
    GRID_BITS,
    GRID_FUNCTION,
    GRID_GHOSTS,
    GRID_LONGER,
    GRID_LONGER_ALONE,
    GRID_MOST_DOUBT,
    GRID_MOST_FUNCTIONS,
    GRID_UNSEEN,
)


def limited(alternatives: Sequence[Alternative], best: float) -> tuple[Alternative, ...]:
    """Return alternatives with weights in proportion to theirs, and with the best one as the median."""
    total = sum(other.weight for other in alternatives)
    if not total:
        return ()
    scale = min(1.0 / (best + total), GRID_MOST_DOUBT / total)
    return tuple(replace(own, weight=own.weight * scale) for own in alternatives if own.weight * scale >= LEAST_WEIGHT)


def has_extents(terms: Sequence[Term]) -> bool:
    """Return whether terms depend on extents of a process grid."""
    return any(factor.axis is not None for term in terms for factor in term.factors)


@lru_cache(maxsize=64)
def advice(grid: ProcessGrid, processes: tuple[float, ...]) -> str:
    """Name the numbers of processes that would distinguish functions of a grid."""
    wanted = tuple(telling(grid, list(processes))) or (2 * int(max(processes)),)
    return f"{grid.parameter} = {', '.join(map(str, wanted))}"


# Exponents of an extent in the functions of one dimension.
_EXPONENTS = {SHARE: -1, STEPS_OF_SHARE: -1, EACH: 1}


def few_confirm(model: Model) -> bool:
    """Return whether few or no numbers of processes confirm a model by a grid."""
    return FEW_GRIDS.is_in(model.notes) or TOO_FEW_GRIDS.is_in(model.notes)


def notes_of(grid: ProcessGrid, processes: FloatArray, model: Model) -> tuple[str, ...]:
    """Return the notes of a model by a grid, measured at numbers of processes (G,)."""
    notes = []
    if any(has_extents(terms) for terms in (model.terms, *(other.terms for other in model.alternatives))):
        notes.append(f"{'grid' if grid.source else 'assumed grid'} {grid}")
    if model.alternatives:
        measure = advice(grid, tuple(processes.tolist()))
        notes.append(f"other functions of the grid have the same values: measure {measure}")
    return tuple(notes)


def as_one(factors: tuple[Factor, ...], grid: ProcessGrid) -> tuple[Factor, ...]:
    """Return equal factors of all extents as a factor of the number of processes: 1/p for 1/(px·py)."""
    if len(factors) == grid.dimensions and all(f.axis is not None and f.exponent == -1 and not f.log for f in factors):
        return (Factor(grid.parameter, Fraction(-1)),)
    return factors


def as_table(known: Coefficients) -> float:
    """Return the length of a description of coefficients by a table of their values."""
    length = 0.0
    for values, tolerance in zip(known.values, known.tolerance.tolist(), strict=True):
        different = 1 + np.count_nonzero(np.diff(np.sort(values)) > 2.0 * tolerance)
        which = len(values) * math.log2(different)
        length += GRID_FUNCTION * different + GRID_BITS * (_bits(values, tolerance) + which)
    return length


def _bits(values: FloatArray, tolerance: float) -> float:
    """Return the bits of the distinct nonzero values (G,), as multiples of their greatest common divisor."""
    size = np.sort(np.abs(values))
    size = size[np.diff(size, prepend=0.0) > 2.0 * tolerance]
    unit = 0.0
    for value in size.tolist():
        larger, smaller = max(unit, value), min(unit, value)
        while smaller > max(2.0 * tolerance, 1e-6 * value):
            larger, smaller = smaller, math.remainder(larger, smaller)
            smaller = abs(smaller)
        unit = larger
    return float(np.log2(size / unit + 1.0).sum()) if unit else 0.0


def _likeliest(choices: Sequence[Forms], peak: FloatArray, most: int) -> list[tuple[float, list[Form]]]:
    """Return weights and forms of sums in which one coefficient has another form than the shortest one.

    The forms with the largest changes at larger grids are selected, by weight; peak: (K,), the largest values of the
    factors of the coefficients.
    """
    best = [found.form(0) for found in choices]
    weights = [np.exp(0.5 * (found.lengths[0] - found.lengths)) for found in choices]
    effects = [
        weight * height * np.abs(found.beyond - found.beyond[0]).max(axis=1)
        for weight, height, found in zip(weights, peak, choices, strict=True)
    ]
    owners = [(place, number) for place, found in enumerate(choices) for number in range(1, len(found.rows))]
    order = np.argsort(-np.concatenate([own[1:] for own in effects]), kind="stable")[:most]
    return [
        (float(weights[place][number]), [*best[:place], choices[place].form(number), *best[place + 1 :]])
        for place, number in (owners[i] for i in order.tolist())
    ]


@dataclass(frozen=True, eq=False)
class Writer:
    """Models as terms, from functions of the other parameters (`names`) and forms of the grid."""

    grid: ProcessGrid
    names: Sequence[str]
    forms: GridForms
    processes: FloatArray
    # terms with the coefficient 1 and their sort keys, their numbers, and numbers of cached results
    _shapes: list[tuple[Term, SortKey]] = field(default_factory=list)
    _numbers: dict[tuple[Factor, ...], int] = field(default_factory=dict)
    _made: dict[tuple[tuple[SimpleTerm | None, ...], int], list[tuple[int, float]]] = field(default_factory=dict)

    def sums(self, known: Coefficients, domain: Domain | None) -> tuple[Model, float] | None:
        """Return the shortest sum, with sums that are nearly as short as alternatives, and its length."""
        choices: list[Forms] = []
        longer = False
        highest = max((order for order in known.orders if order is not None), default=0)
        for values, tolerance, order in zip(known.values, known.tolerance, known.orders, strict=True):
            found = self.forms.propose(values, float(tolerance), order, order == highest, domain)
            if found is None:
                return None
            choices.append(found)
            if not self.grid.source and self._is_doubtful(found.form(0)):
                extra = float(found.lengths[0]) - GRID_BITS * _bits(values, float(tolerance))
                longer = longer or extra > (GRID_LONGER if self._has_freedom(found.form(0)) else GRID_LONGER_ALONE)
        choices = with_logarithms_of_shares(self.forms, known.functions, choices)
        best = [found.form(0) for found in choices]
        length = sum(float(found.lengths[0]) for found in choices)
        constant, terms = self.written(known.functions, best)
        unseen = self._unseen(terms, highest, domain)
        # few enough that each end of the interval has its weight
        others = _likeliest(choices, known.peak, GRID_ALTERNATIVES // 3 if unseen else GRID_ALTERNATIVES)
        if len(others) > 1:
            # all coefficients may have another function at once
            means = [found.beyond.mean(axis=1) for found in choices]
            ends = [
                [found.form(int(pick(mean))) for found, mean in zip(choices, means, strict=True)]
                for pick in (np.argmin, np.argmax)
            ]
            most = max(weight for weight, _ in others)
            others += [(most, forms) for forms in ends if forms != best]
        written = [Alternative(weight, *self.written(known.functions, forms)) for weight, forms in others]
        for factor in (GRID_GHOSTS, -GRID_GHOSTS) if unseen else ():
            more = [*terms, *(term.scaled(factor) for term in unseen)]
            written.append(Alternative(GRID_UNSEEN, *collect(constant, more)))
        model = self._model(constant, terms, written)
        if any(self._is_doubtful(form) for form in best):
            # equal functions in several coefficients confirm each other
            spare = min(self._grids_of(form) - len(form.grid_functions) for form in best) - (len(best) == 1)
            entry = LONG_GRIDS if longer else TOO_FEW_GRIDS if spare <= 0 else FEW_GRIDS
            model = replace(model, notes=(*model.notes, entry()))
        return model, length

    def _is_doubtful(self, form: Form) -> bool:
        """Return whether a sum has several functions, and more than half as many as grids at which they are not 0."""
        return len(form.grid_functions) > 1 and 2 * len(form.grid_functions) > self._grids_of(form)

    def _has_freedom(self, form: Form) -> bool:
        """Return whether a sum has fewer functions than grids at which they are not 0, or fewer than the maximum."""
        return len(form.grid_functions) < max(self._grids_of(form), GRID_MOST_FUNCTIONS)

    def _grids_of(self, form: Form) -> int:
        """Return the number of grids at which functions of a sum are not 0."""
        seen = np.abs(self.forms.columns[list(form.grid_functions)]).max(axis=0, initial=0.0) > 0
        return int(np.count_nonzero(seen))

    def polynomials(self, found: Sequence[Polynomial]) -> tuple[Model, float]:
        """Return the shortest of polynomials, the others as its alternatives, and its length."""
        best = found[0]
        written = [
            Alternative(float(np.exp(0.5 * (best.length - own.length))), *self.written(own.functions, own.forms))
            for own in found[1 : 1 + GRID_ALTERNATIVES]
        ]
        return self._model(*self.written(best.functions, best.forms), written), best.length

    def _model(self, constant: float, terms: tuple[Term, ...], others: Sequence[Alternative]) -> Model:
        """Return a model with its notes; others: with their weights relative to the model."""
        parameters = (self.grid.parameter, *self.names)
        model = Model(parameters, constant, terms, alternatives=limited(others, 1.0))
        return replace(model, notes=notes_of(self.grid, self.processes, model))

    def _unseen(self, terms: Sequence[Term], order: int, domain: Domain | None) -> list[Term]:
        """Return the possible additions by layers of cells to the terms of the whole domain, if an extent was always 1.

        There n/pz + a + b/pz equals n + a + b, so b is not determined. The terms are those of the highest order with 1
        - 1/pz instead of n/pz (or instead of n if n is the size of a rank).
        """
        if domain is None or order != domain.dimensions or len(self.names) != 1:
            return []
        (name,), found = self.names, []
        for axis, seen in zip(self.grid.axes, self.forms.grids.T, strict=True):
            if np.ptp(seen) > 0:
                continue
            rest = Factor(self.grid.parameter, Fraction(int(domain.strong)), shares=1, axis=axis)
            fewer = Term(1.0, (rest, Factor(name, Fraction(-1))))
            found += [
                term.times(fewer)
                for term in terms
                if sum(f.exponent for f in term.factors if f.parameter == name) == order
            ]
        return found

    def written(self, functions: Functions, forms: Sequence[Form]) -> tuple[float, tuple[Term, ...]]:
        """Return the constant and the terms of functions of the other parameters times forms."""
        sums: dict[int, float] = {}
        for function, form in zip(functions, forms, strict=True):
            for number, coefficient in zip(form.grid_functions, form.coefficients, strict=True):
                for shape, weight in self._shapes_of(function, number):
                    sums[shape] = sums.get(shape, 0.0) + weight * coefficient
        constant = sums.pop(self._numbers.get((), -1), 0.0)
        kept = [(self._shapes[shape], coefficient) for shape, coefficient in sums.items() if coefficient]
        kept.sort(key=lambda own: own[0][1])
        return constant, tuple(Term(coefficient, term.factors) for (term, _), coefficient in kept)

    def _shapes_of(self, function: tuple[SimpleTerm | None, ...], grid_function: int) -> list[tuple[int, float]]:
        """Return the indices of the terms' shapes for a function of the grid, and their coefficients."""
        if (function, grid_function) not in self._made:
            own = tuple(term.factor(name) for name, term in zip(self.names, function, strict=True) if term is not None)
            products = self._products(grid_function)
            found = [Term(1.0, Term(1.0, (*as_one(factors, self.grid), *own)).shape) for factors, _ in products]
            numbers = [self._numbers.setdefault(term.factors, len(self._numbers)) for term in found]
            for number, term in zip(numbers, found, strict=True):
                if number == len(self._shapes):
                    self._shapes.append((term, sort_key(term)))
            self._made[function, grid_function] = [
                (number, by) for number, (_, by) in zip(numbers, products, strict=True)
            ]
        return self._made[function, grid_function]

    def _products(self, number: int) -> list[tuple[tuple[Factor, ...], float]]:
        """Return the products of a function of the grid as factors, and their coefficients."""
        grid_function = self.forms.grid_functions[number]
        if grid_function.processes is not None:
            exponent, log = grid_function.processes
            return [((Factor(self.grid.parameter, Fraction(exponent), log, int(grid_function.others)),), 1.0)]
        found = []
        for own in grid_function.products:
            kinds = [(kind, axis) for kind, axis in zip(own, self.grid.axes, strict=True) if kind != EVERY]
            factors = tuple(
                Factor(
                    self.grid.parameter,
                    Fraction(_EXPONENTS.get(kind, 0)),
                    int(kind in (STEPS, STEPS_OF_SHARE)),
                    int(kind == NEIGHBOUR),
                    axis,
                    several=kind == SEVERAL,
                )
                for kind, axis in kinds
            )
            factors += (Factor(self.grid.parameter, several=True),) * grid_function.several
            factors += (Factor(self.grid.parameter, shares=1),) * grid_function.others
            found.append((factors, grid_function.weight(own)))
        return found
