"""Exact models of counts that depend on the process grid: sums of functions of the other parameters and of its extents.

At each number of processes the functions of the other parameters (n³, n², n, say) are known from lines of points. Their
coefficients there are functions of the grid, which `proposers.grid_forms` finds, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from ..process_grid import ProcessGrid, telling
from .build import qualities
from .calibration import (
    GRID_ALTERNATIVES,
    GRID_FEW_PROCESSES,
    GRID_GHOSTS,
    GRID_MOST_DOUBT,
    GRID_UNSEEN,
    LEAST_WEIGHT,
)
from .criterion.exactness import exact_weights, rounding_of
from .criterion.one_process import reproduces
from .data.preparation import ranges
from .hypotheses.library import Library, SimpleTerm
from .model import Alternative, Factor, Model, Term, collect
from .model.term import SortKey, sort_key
from .proposers.grid_coefficients import Coefficients, Functions, OtherParameters
from .proposers.grid_forms import EVERY, SHARE, Atom, Domain, Form, Forms, GridForms

_Flags = NDArray[np.bool_]
# Sums of functions of the grid are different if they are at one of so many times the largest number of processes.
_FURTHER = np.array([2.0, 3.0, 4.0, 8.0])


@dataclass(frozen=True, eq=False)
class Found:
    """Models of call paths by one grid; None where there is none. length: of all descriptions together."""

    models: list[Model | None]
    length: float

    @property
    def count(self) -> int:
        """How many models there are."""
        return sum(model is not None for model in self.models)


class GridCounts:
    """Counts `values` (N, C) at `points` (C, m) of the parameters `names`, modeled by process grids."""

    def __init__(self, points: FloatArray, names: tuple[str, ...], library: Library, values: FloatArray) -> None:
        self.points, self.names, self.library = points, names, library
        # many call paths are executed alike
        self.values, row_of = np.unique(values, axis=0, return_inverse=True)
        self.row_of: list[int] = row_of.reshape(-1).tolist()
        self._known: dict[int, list[Coefficients | None]] = {}

    def models(self, grid: ProcessGrid) -> Found:
        """Return exact models of the counts, where there are such."""
        place = self.names.index(grid.parameter)
        processes = np.unique(self.points[:, place])
        if processes.size < 2:
            return Found([None] * len(self.row_of), 0.0)
        known, varying = self._coefficients(place), self._varying(place)
        forms = _forms(grid, tuple(processes.tolist()))
        domain = _domain([own for row in self.row_of if (own := known[row]) is not None], forms)
        names = [name for name in self.names if name != grid.parameter]
        written = _Writer(grid, [names[i] for i in varying], forms, processes)
        sums = [None if own is None else written.sums(own, domain) for own in known]
        models = [
            None if found is None else self._checked(found[0], self.values[row]) for row, found in enumerate(sums)
        ]
        length = sum((found[1] for row in self.row_of if (found := sums[row]) is not None), 0.0)
        return Found([models[row] for row in self.row_of], length)

    def _varying(self, place: int) -> list[int]:
        """Return which of the parameters but the one at `place` have several values."""
        others = np.delete(self.points, place, axis=1)
        return [i for i in range(others.shape[1]) if np.unique(others[:, i]).size > 1]

    def _coefficients(self, place: int) -> list[Coefficients | None]:
        """Return what the counts are at each value of the parameter at `place`, which is the same for all its grids."""
        if place not in self._known:
            others = np.delete(self.points, place, axis=1)[:, self._varying(place)]
            where = [np.flatnonzero(self.points[:, place] == p) for p in np.unique(self.points[:, place])]
            self._known[place] = OtherParameters(others, where, self.library).coefficients(self.values)
        return self._known[place]

    def _checked(self, model: Model, values: FloatArray) -> Model | None:
        """Return the model with its quality if it reproduces the values (C,), else None."""
        full = replace(model, parameters=self.names, ranges=ranges(self.points))
        fitted = full.evaluate(self.points)
        weights = exact_weights(values[None])
        limit = np.maximum(rounding_of(values[None], weights)[0], 1e-9)
        if (np.abs(fitted - values) * weights[0]).max() > limit:
            return None
        width = np.array([len(full.terms) + bool(full.constant)])
        return replace(full, quality=qualities(values[None], fitted[None], np.zeros(1), width)[0])


@lru_cache(maxsize=64)
def _forms(grid: ProcessGrid, processes: tuple[float, ...]) -> GridForms:
    """Return the functions of a grid at these numbers of processes."""
    at = np.array(processes)
    return GridForms(grid.extents(at), grid.extents(at.max() * _FURTHER))


@lru_cache(maxsize=64)
def _telling(grid: ProcessGrid, processes: tuple[float, ...]) -> tuple[int, ...]:
    """Return the numbers of processes that tell functions of a grid apart."""
    return tuple(telling(grid, list(processes))) or (2 * int(max(processes)),)


def by_grid(
    models: Sequence[Model | None],
    grids: Sequence[ProcessGrid],
    points: FloatArray,
    values: FloatArray,
    measured: _Flags,
    names: tuple[str, ...],
    library: Library,
) -> dict[int, Model]:
    """Return models of counts by the process grid, of the call paths whose `models` these explain more than.

    values: (N, C), 0 where a call path was not executed, which says as much of the grid as any other count: one rank
    has no neighbours. grids: what the grid may be; the one that most call paths follow is taken, the first of equals.
    """
    usable = [grid for grid in grids if grid.parameter in names]
    if not usable:
        return {}
    parameter, known = usable[0].parameter, bool(usable[0].source)
    few = np.unique(points[:, names.index(parameter)]).size <= GRID_FEW_PROCESSES
    unexplained = np.array([_is_unexplained(model) for model in models], dtype=bool)
    unseen = known and bool((np.ptp(usable[0].extents(points[:, names.index(parameter)]), axis=0) == 0).any())
    doubted = np.array([_is_doubted(model, parameter, unseen) for model in models], dtype=bool) & ~unexplained

    def found(paths: _Flags) -> dict[int, list[Model]]:
        return _by_each(usable, points, values, measured, paths, names, library)

    result = {
        path: _with_others(several, parameter)
        for path, several in found(unexplained).items()
        if _has_extents(several[0].terms) or not _reproduced(models[path])
    }
    if known or (few and any(_has_extents(model.terms) for model in result.values())):
        for path, several in found(doubted).items():
            former = models[path]
            result[path] = _with_others(several if known or former is None else [*several, former], parameter)
    return result


def _by_each(
    grids: Sequence[ProcessGrid],
    points: FloatArray,
    values: FloatArray,
    measured: _Flags,
    paths: _Flags,
    names: tuple[str, ...],
    library: Library,
) -> dict[int, list[Model]]:
    """Return the models of call paths by each of the grids, that by which most have a model first."""
    patterns, group = np.unique(measured, axis=0, return_inverse=True)
    parts = []
    for number, pattern in enumerate(patterns):
        own = np.flatnonzero((group.reshape(-1) == number) & paths)
        if own.size and pattern.any():
            parts.append((own, GridCounts(points[pattern], names, library, values[own][:, pattern])))
    found = [[counts.models(grid) for _, counts in parts] for grid in grids]
    # the first of equals: sorted keeps their order
    ranked = sorted(found, key=lambda own: (-sum(one.count for one in own), sum(one.length for one in own)))
    result = {}
    for place, (own, _) in enumerate(parts):
        for row, path in enumerate(own.tolist()):
            several = [model for one in ranked if (model := one[place].models[row]) is not None]
            if several:
                result[path] = several
    return result


def _with_others(models: Sequence[Model], parameter: str) -> Model:
    """Return the first of models by different grids, with those that differ from it among its alternatives."""
    best = models[0]
    place = best.parameters.index(parameter)
    top = np.array([high for _, high in best.ranges])
    further = np.repeat(top[None], len(_FURTHER), axis=0)
    further[:, place] *= _FURTHER
    kept, values = [best], [best.evaluate(further)]
    for model in models[1:]:
        own = model.evaluate(further)
        if not any(np.allclose(own, known, rtol=1e-6) for known in values):
            kept.append(model)
            values.append(own)
    if len(kept) == 1:
        return best
    own_weight = 1.0 - sum(a.weight for a in best.alternatives)
    others = [*best.alternatives, *(Alternative(own_weight, model.constant, model.terms) for model in kept[1:])]
    note = f"other grids explain the counts as well: measure {parameter} = {2 * top[place]:g}"
    return replace(best, alternatives=_limited(others, own_weight), notes=tuple(dict.fromkeys((*best.notes, note))))


def _limited(alternatives: Sequence[Alternative], best: float) -> tuple[Alternative, ...]:
    """Return alternatives with weights in proportion to theirs and to that of the best, which is the median."""
    total = sum(other.weight for other in alternatives)
    if not total:
        return ()
    scale = min(1.0 / (best + total), GRID_MOST_DOUBT / total)
    return tuple(replace(own, weight=own.weight * scale) for own in alternatives if own.weight * scale >= LEAST_WEIGHT)


def _has_extents(terms: Sequence[Term]) -> bool:
    return any(factor.axis is not None for term in terms for factor in term.factors)


def _reproduced(model: Model | None) -> bool:
    return model is not None and reproduces(model)


def _is_unexplained(model: Model | None) -> bool:
    """Whether a model does not reproduce the counts, or only without numbers of ranks that do not execute anything."""
    return model is not None and model.quality is not None and (not reproduces(model) or bool(model.notes))


def _is_doubted(model: Model | None, parameter: str, unseen: bool) -> bool:
    """Whether a model has functions of the number of processes that are no share, which grids may explain.

    unseen: an extent of the grid was always 1, so that shares are doubted, too.
    """
    factors = [f for term in model.terms for f in term.factors if f.parameter == parameter] if model else []
    return any(unseen or f.log or f.exponent != -1 for f in factors)


def _domain(known: Sequence[Coefficients], forms: GridForms) -> Domain | None:
    """Return the domain that the program works on, from the terms of the highest order; None if it is unclear."""
    highest = max((order for own in known for order in own.orders if order is not None), default=0)
    if not highest:
        return None
    dimensions = forms.grids.shape[1]
    share, every = Atom(((SHARE,) * dimensions,), 0.0), Atom(((EVERY,) * dimensions,), 0.0)
    votes = {True: 0, False: 0}
    for own in known:
        for order, values, tolerance in zip(own.orders, own.values, own.tolerance, strict=True):
            if order == highest:
                for strong, atom in ((True, share), (False, every)):
                    column = atom.evaluate(forms.grids)
                    factor = float(column @ values / (column @ column))
                    votes[strong] += bool(np.abs(values - factor * column).max() <= max(tolerance, 1e-9 * abs(factor)))
    if votes[True] == votes[False]:
        return None
    return Domain(highest, votes[True] > votes[False])


def _likeliest(choices: Sequence[Forms], peak: FloatArray, most: int) -> list[tuple[float, list[Form]]]:
    """Return weight and forms of sums in which one coefficient has another form than the shortest one.

    Those that change most at larger grids, weighted; peak: (K,), the largest values of what has the coefficients.
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
class _Writer:
    """Models as terms, from functions of the other parameters (`names`) and forms of the grid."""

    grid: ProcessGrid
    names: Sequence[str]
    forms: GridForms
    processes: FloatArray
    # terms with the coefficient 1, by which they are sorted, their numbers, and those of what was made before
    _shapes: list[tuple[Term, SortKey]] = field(default_factory=list)
    _numbers: dict[tuple[Factor, ...], int] = field(default_factory=dict)
    _made: dict[tuple[tuple[SimpleTerm | None, ...], int], list[int]] = field(default_factory=dict)

    def sums(self, known: Coefficients, domain: Domain | None) -> tuple[Model, float] | None:
        """Return the shortest sum, others that are nearly as short as its alternatives, and its length."""
        choices: list[Forms] = []
        highest = max((order for order in known.orders if order is not None), default=0)
        for values, tolerance, order in zip(known.values, known.tolerance, known.orders, strict=True):
            found = self.forms.propose(values, float(tolerance), order, order == highest, domain)
            if found is None:
                return None
            choices.append(found)
        best = [found.form(0) for found in choices]
        length = sum(float(found.lengths[0]) for found in choices)
        constant, terms = self._written(known.functions, best)
        unseen = self._unseen(terms, highest, domain)
        # few enough that each end of the interval has its weight
        others = _likeliest(choices, known.peak, GRID_ALTERNATIVES // 3 if unseen else GRID_ALTERNATIVES)
        if len(others) > 1:
            # all coefficients may be another function at once
            means = [found.beyond.mean(axis=1) for found in choices]
            ends = [
                [found.form(int(pick(mean))) for found, mean in zip(choices, means, strict=True)]
                for pick in (np.argmin, np.argmax)
            ]
            most = max(weight for weight, _ in others)
            others += [(most, forms) for forms in ends if forms != best]
        written = [Alternative(weight, *self._written(known.functions, forms)) for weight, forms in others]
        for factor in (GRID_GHOSTS, -GRID_GHOSTS) if unseen else ():
            more = [*terms, *(term.scaled(factor) for term in unseen)]
            written.append(Alternative(GRID_UNSEEN, *collect(constant, more)))
        alternatives = _limited(written, 1.0)
        parameters = (self.grid.parameter, *self.names)
        notes = []
        if any(_has_extents(own) for own in (terms, *(other.terms for other in alternatives))):
            notes.append(f"{'grid' if self.grid.source else 'assumed grid'} {self.grid}")
        if alternatives:
            notes.append(f"other functions of the grid have the same values: measure {self._advice}")
        return Model(parameters, constant, terms, alternatives=alternatives, notes=tuple(notes)), length

    def _unseen(self, terms: Sequence[Term], order: int, domain: Domain | None) -> list[Term]:
        """Return what layers of one cell add to the terms of the whole domain where an extent was always 1.

        There n/pz + a + b/pz has the value n + a + b, so that b may be anything that layers of cells make it: the terms
        are those of the highest order with 1 - 1/pz in place of n/pz, or of n if n is the size of a rank.
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

    @property
    def _advice(self) -> str:
        wanted = _telling(self.grid, tuple(self.processes.tolist()))
        return f"{self.grid.parameter} = {', '.join(map(str, wanted))}"

    def _written(self, functions: Functions, forms: Sequence[Form]) -> tuple[float, tuple[Term, ...]]:
        sums: dict[int, float] = {}
        for function, form in zip(functions, forms, strict=True):
            for number, coefficient in zip(form.atoms, form.coefficients, strict=True):
                for shape in self._shapes_of(function, number):
                    sums[shape] = sums.get(shape, 0.0) + coefficient
        constant = sums.pop(self._numbers.get((), -1), 0.0)
        kept = [(self._shapes[shape], coefficient) for shape, coefficient in sums.items() if coefficient]
        kept.sort(key=lambda own: own[0][1])
        return constant, tuple(Term(coefficient, term.factors) for (term, _), coefficient in kept)

    def _shapes_of(self, function: tuple[SimpleTerm | None, ...], atom: int) -> list[int]:
        """Return the numbers of the shapes of the terms that an atom makes of a function."""
        if (function, atom) not in self._made:
            own = tuple(term.factor(name) for name, term in zip(self.names, function, strict=True) if term is not None)
            found = [Term(1.0, Term(1.0, (*self._factors(factors), *own)).shape) for factors in self._products(atom)]
            numbers = [self._numbers.setdefault(term.factors, len(self._numbers)) for term in found]
            for number, term in zip(numbers, found, strict=True):
                if number == len(self._shapes):
                    self._shapes.append((term, sort_key(term)))
            self._made[function, atom] = numbers
        return self._made[function, atom]

    def _products(self, number: int) -> list[tuple[Factor, ...]]:
        """Return the products of an atom as factors."""
        atom = self.forms.atoms[number]
        if atom.processes is not None:
            exponent, log = atom.processes
            return [(Factor(self.grid.parameter, Fraction(exponent), log),)]
        axes = self.grid.axes
        return [
            tuple(
                Factor(self.grid.parameter, Fraction(-1), axis=axis)
                if kind == SHARE
                else Factor(self.grid.parameter, shares=1, axis=axis)
                for kind, axis in zip(own, axes, strict=True)
                if kind != EVERY
            )
            for own in atom.products
        ]

    def _factors(self, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        """Return factors of all extents alike as one of the number of processes: 1/p instead of 1/(px·py)."""
        if len(factors) == self.grid.dimensions and all(f.axis is not None and f.exponent == -1 for f in factors):
            return (Factor(self.grid.parameter, Fraction(-1)),)
        return factors
