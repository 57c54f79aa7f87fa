# SPDX-License-Identifier: Apache-2.0
"""Exact models of counts that depend on the process grid: sums of functions of other parameters and grid extents.

At each number of processes, lines of points determine the functions of the other parameters (for example n³, n², n).
Their coefficients are functions of the grid, which `proposers.grid_forms` finds one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ...process_grid import ProcessGrid
from ..criterion.one_process import reproduces
from ..data.preparation import not_executed
from ..hypotheses.library import Library
from ..model import Model
from ..proposers.grid_coefficients import Coefficients, OtherParameters
from ..proposers.grid_forms import Domain, GridForms
from ..proposers.grid_functions import EVERY, SHARE, GridFunction
from ..proposers.grid_polynomials import GridPolynomials
from .calibration import FURTHER, GRID_BITS, GRID_FEW_PROCESSES, GRID_LEAST_LUCK, GRID_OF_DOMAIN
from .higher_power import with_higher_power
from .models import checked, each, with_others
from .preferred import beside, beyond_few, is_better, is_doubted, is_simpler, is_unexplained
from .terms import Writer, as_table, few_confirm, has_extents

_Flags = NDArray[np.bool_]
# Differences of lengths below this are ignored, except for polynomials over all points that leave degrees of freedom.
_LITTLE = 1.0


@dataclass(frozen=True, eq=False)
class Found:
    """Models of call paths by one grid; None if there is none.

    saved: how much shorter the description is than a table of the coefficients at each number of processes, 0 if it is
    not. A grid with more dimensions has functions for more counts, which are not shorter than these.
    """

    models: list[Model | None]
    saved: list[float]


class GridCounts:
    """Counts `values` (N, C) at `points` (C, m) of the parameters `names`, modeled by process grids."""

    def __init__(self, points: FloatArray, names: tuple[str, ...], library: Library, values: FloatArray) -> None:
        self.points, self.names, self.library = points, names, library
        # many call paths are executed at the same points
        self.values, row_of = np.unique(values, axis=0, return_inverse=True)
        self.row_of: list[int] = row_of.reshape(-1).tolist()
        self._known: dict[int, list[Coefficients | None]] = {}
        self._whole: dict[int, GridCounts | None] = {}

    def domain(self, grid: ProcessGrid) -> Domain | None:
        """Return the divided domain that these counts show."""
        place = self.names.index(grid.parameter)
        forms = forms_of(grid, tuple(np.unique(self.points[:, place]).tolist()))
        known = self._coefficients(place)
        found = _domain([own for row in self.row_of if (own := known[row]) is not None], forms)
        whole = self._of_whole_lines(place) if found is None else None
        return found if whole is None else whole.domain(grid)

    def models(self, grid: ProcessGrid, domain: Domain | None) -> Found:
        """Return exact models of the counts, if there are any; domain: of the program."""
        place = self.names.index(grid.parameter)
        processes = np.unique(self.points[:, place])
        if processes.size < 2:
            return Found([None] * len(self.row_of), [0.0] * len(self.row_of))
        known, varying = self._coefficients(place), self._varying(place)
        forms = forms_of(grid, tuple(processes.tolist()))
        names = [name for name in self.names if name != grid.parameter]
        written = Writer(grid, [names[i] for i in varying], forms, processes)
        described = [written.sums(own, domain) if own is not None and _is_evidence(own) else None for own in known]
        described = self._with_higher_powers(described, known, place, varying)
        sums = [
            found if own is not None and found and _says_more(own, found[1], values) else None
            for own, found, values in zip(known, described, self.values, strict=True)
        ]
        of_lines = [found is not None for found in sums]
        self._add_polynomials(sums, place, varying, forms, written)
        models = [
            None if found is None else checked(found[0], self.points, self.values[row], self.names, grid.parameter)
            for row, found in enumerate(sums)
        ]
        shorter = [
            (max(as_table(own) - found[1], 0.0) if lined and own else _LITTLE) if found and model else 0.0
            for own, found, lined, model in zip(known, sums, of_lines, models, strict=True)
        ]
        whole = self._of_whole_lines(place) if None in models else None
        if whole is not None:
            also = whole.models(grid, domain)
            for row, model in enumerate(also.models):
                shorter[row] = max(shorter[row], also.saved[row])
                if models[row] is None and model is not None:
                    own = (self.points, self.values[row], self.names, grid.parameter)
                    several = [right for one in each(model) if (right := checked(one, *own)) is not None]
                    models[row] = with_others(several, grid.parameter) if several else None
        return Found([models[row] for row in self.row_of], [shorter[row] for row in self.row_of])

    def _with_higher_powers(
        self,
        sums: list[tuple[Model, float] | None],
        known: Sequence[Coefficients | None],
        place: int,
        varying: Sequence[int],
    ) -> list[tuple[Model, float] | None]:
        """Return sums of polynomials through all sizes, if the sizes are equal at all numbers of processes."""
        if len(varying) != 1:
            return sums
        others = np.delete(self.points, place, axis=1)[:, varying[0]]
        name = [own for i, own in enumerate(self.names) if i != place][varying[0]]
        sizes = np.unique(others)
        if sizes.size * np.unique(self.points[:, place]).size != len(others):
            return sums
        result = list(sums)
        for row, (found, own) in enumerate(zip(sums, known, strict=True)):
            if found is not None and own is not None and own.free == 0:
                model, saved = with_higher_power(found[0], name, sizes)
                result[row] = model, found[1] - saved
        return result

    def _add_polynomials(
        self,
        sums: list[tuple[Model, float] | None],
        place: int,
        varying: Sequence[int],
        forms: GridForms,
        written: Writer,
    ) -> None:
        """Use polynomials over all points if lines at each number of processes did not give a model."""
        rows = [row for row, found in enumerate(sums) if found is None]
        if len(varying) != 1 or not rows:
            return
        sizes = np.delete(self.points, place, axis=1)[:, varying[0]]
        at = np.unique(self.points[:, place], return_inverse=True)[1].reshape(-1)
        polynomials = _polynomials(forms, tuple(sizes.tolist()), tuple(at.tolist()))
        for row, found in zip(rows, polynomials.propose(self.values[rows]), strict=True):
            if found:
                sums[row] = written.polynomials(found)

    def _varying(self, place: int) -> list[int]:
        """Return which parameters other than the one at `place` have several values."""
        others = np.delete(self.points, place, axis=1)
        return [i for i in range(others.shape[1]) if np.unique(others[:, i]).size > 1]

    def _of_whole_lines(self, place: int) -> GridCounts | None:
        """Return the counts at the numbers of processes with most points, if others have fewer.

        The others have too few points for the functions of a line, and check the result.
        """
        if place not in self._whole:
            _, at, number = np.unique(self.points[:, place], return_inverse=True, return_counts=True)
            most = number == number.max()
            if most.all() or np.count_nonzero(most) < 2:
                self._whole[place] = None
            else:
                kept = most[at.reshape(-1)]
                self._whole[place] = GridCounts(self.points[kept], self.names, self.library, self.values[:, kept])
        return self._whole[place]

    def _coefficients(self, place: int) -> list[Coefficients | None]:
        """Return the counts at each value of the parameter at `place`, if they are equal for all its grids."""
        if place not in self._known:
            others = np.delete(self.points, place, axis=1)[:, self._varying(place)]
            where = [np.flatnonzero(self.points[:, place] == p) for p in np.unique(self.points[:, place])]
            self._known[place] = OtherParameters(others, where, self.library).coefficients(self.values)
        return self._known[place]


def _is_evidence(known: Coefficients) -> bool:
    """Return whether points beyond the coefficients confirm these, or a coincidence is improbable."""
    return known.free > 0 or known.by_luck() >= GRID_LEAST_LUCK


def _says_more(known: Coefficients, length: float, values: FloatArray) -> bool:
    """Return whether a sum of this length is shorter than the counts (C,), if only its coefficients confirm it.

    Polynomials through all points of a line have whole or simple fractional coefficients if counts are whole and points
    are equidistant. Their digits are then the digits of the counts.
    """
    return known.free > 0 or length < GRID_BITS * float(np.log2(np.abs(values) + 1.0).sum())


@lru_cache(maxsize=64)
def forms_of(grid: ProcessGrid, processes: tuple[float, ...]) -> GridForms:
    """Return the functions of a grid at these numbers of processes."""
    at = np.array(processes)
    return GridForms(grid.extents(at), grid.extents(at.max() * np.array(FURTHER)), bool(grid.source), grid.periodic)


@lru_cache(maxsize=64)
def _polynomials(forms: GridForms, sizes: tuple[float, ...], place: tuple[int, ...]) -> GridPolynomials:
    """Return the polynomials of these functions of a grid at points."""
    return GridPolynomials(np.array(sizes), np.array(place), forms)


@dataclass(frozen=True)
class Grids:
    """Possible process grids. ranked: sorted by probability; otherwise the grid of most call paths is selected."""

    possible: tuple[ProcessGrid, ...]
    ranked: bool
    library: Library


def by_grid(
    models: Sequence[Model | None],
    grids: Grids,
    points: FloatArray,
    values: FloatArray,
    measured: _Flags,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models of counts by the process grid, for call paths that they explain better than `models`.

    values: (N, C), 0 where a call path was not executed, which is as informative as any other count: one rank has no
    neighbours.
    """
    usable = tuple(grid for grid in grids.possible if grid.parameter in names)
    if not usable:
        return {}
    grids = replace(grids, possible=usable)
    parameter, known = usable[0].parameter, bool(usable[0].source)
    few = np.unique(points[:, names.index(parameter)]).size <= GRID_FEW_PROCESSES
    idle = measured & (values == 0)
    alone = [is_unexplained(model, parameter, points[at]) for model, at in zip(models, idle, strict=True)]
    unexplained = np.array(alone, dtype=bool)
    unseen = known and bool((np.ptp(usable[0].extents(points[:, names.index(parameter)]), axis=0) == 0).any())
    doubted = np.array([is_doubted(model, parameter, unseen) for model in models], dtype=bool) & ~unexplained

    def found(paths: _Flags, at: _Flags = measured) -> dict[int, list[Model]]:
        return _by_each(grids, points, values, measured, at, paths, names)

    def preferred(several: dict[int, list[Model]], at: _Flags) -> dict[int, Model]:
        own = ((path, models[path], points[at[path]], values[path][at[path]]) for path in several)
        chosen = {path: _preferred(several[path], former, known, parameter, *there) for path, former, *there in own}
        return {path: model for path, model in chosen.items() if model is not None}

    result = preferred(found(unexplained), measured)
    if known:
        # few processes may use another algorithm
        later = _not_of_few(points[:, names.index(parameter)], measured, idle) & unexplained
        later[[path for path, model in result.items() if not few_confirm(model)]] = False
        later &= np.array([own is not None and own.depends_on(parameter) for own in models], dtype=bool)
        for path, several in found(later, measured & ~idle).items():
            former, at = result.get(path, models[path]), measured[path]
            said = not_executed(names, points[at], idle[path][at])
            model = beyond_few(several, former, parameter, points[at & ~idle[path]])
            result[path] = replace(model, notes=tuple(dict.fromkeys((*said, *model.notes))))
    if known or (few and any(has_extents(model.terms) for model in result.values())):
        for path, several in found(doubted).items():
            result[path] = beside(several, models[path], not known, parameter)
    return result


def _not_of_few(processes: FloatArray, measured: _Flags, idle: _Flags) -> _Flags:
    """Return which call paths (N,) are executed at all points of some numbers of processes (C,), not smaller ones.

    These are several processes; otherwise one process has no neighbours. measured, idle: (N, C), where they were
    measured, and not executed.
    """
    executed = measured & ~idle
    first = np.where(executed, processes, np.inf).min(axis=1, initial=np.inf, keepdims=True)
    several = (idle & (processes > 1)).any(axis=1) & executed.any(axis=1)
    return np.asarray(several & ~(idle & (processes >= first)).any(axis=1), dtype=bool)


def _preferred(
    several: Sequence[Model], former: Model | None, known: bool, parameter: str, points: FloatArray, counts: FloatArray
) -> Model | None:
    """Return the models by grids of the counts (C,) at points (C, m), or None if the former model is better."""
    if former is not None and is_simpler(former, several[0], known, parameter, points):
        return with_others([former, *several], parameter)
    if is_better(several[0], former, parameter, points, counts):
        return beside(several, former, former is not None and reproduces(former) and not known, parameter)
    if former is not None and former.is_constant:
        return with_others([former, *several], parameter)
    return None


def _by_each(
    grids: Grids,
    points: FloatArray,
    values: FloatArray,
    measured: _Flags,
    at: _Flags,
    paths: _Flags,
    names: tuple[str, ...],
) -> dict[int, list[Model]]:
    """Return the models of call paths by each of the grids, the likeliest grid first, for the counts `at` (N, C)."""
    library = grids.library
    patterns, group = np.unique(at, axis=0, return_inverse=True)
    parts = []
    for number, pattern in enumerate(patterns):
        own = np.flatnonzero((group.reshape(-1) == number) & paths)
        if own.size and pattern.any():
            parts.append((own, GridCounts(points[pattern], names, library, values[own][:, pattern])))
    if not parts:
        return {}
    # the largest counts come from loops over the whole domain
    everywhere = np.flatnonzero(measured.all(axis=1))
    largest = everywhere[np.argsort(-values[everywhere].max(axis=1, initial=0.0), kind="stable")[:GRID_OF_DOMAIN]]
    whole = next((counts for own, counts in parts if np.isin(largest, own).all()), None)
    whole = GridCounts(points, names, library, values[largest]) if whole is None else whole
    ranked = []
    for grid in grids.possible:
        domain = whole.domain(grid)
        ranked.append([counts.models(grid, domain) for _, counts in parts])
    if not grids.ranked:
        # the first of equals: sorted keeps their order
        ranked.sort(key=lambda own: -round(sum(sum(one.saved) for one in own), 6))
    result = {}
    for place, (own, _) in enumerate(parts):
        for row, path in enumerate(own.tolist()):
            found = [(one[place].saved[row] < _LITTLE, model) for one in ranked if (model := one[place].models[row])]
            # a sum that is not shorter than a table of the counts is a coincidence, with any grid
            found.sort(key=lambda one: one[0])
            if found:
                result[path] = [model for _, model in found]
    return result


def _domain(known: Sequence[Coefficients], forms: GridForms) -> Domain | None:
    """Return the domain of the program, from the terms of the highest order; None if it is unclear.

    A polynomial through all points of a line has a highest order for any counts. Such counts only determine the domain
    if there are no others.
    """
    known = [own for own in known if _is_evidence(own)] or known
    highest = max((order for own in known for order in own.orders if order is not None), default=0)
    if not highest:
        return None
    dimensions = forms.grids.shape[1]
    share, every = GridFunction(((SHARE,) * dimensions,), 0.0), GridFunction(((EVERY,) * dimensions,), 0.0)
    votes = {True: 0, False: 0}
    for own in known:
        for order, values, tolerance in zip(own.orders, own.values, own.tolerance, strict=True):
            if order == highest:
                for strong, grid_function in ((True, share), (False, every)):
                    column = grid_function.evaluate(forms.grids)
                    factor = float(column @ values / (column @ column))
                    votes[strong] += bool(np.abs(values - factor * column).max() <= max(tolerance, 1e-9 * abs(factor)))
    if votes[True] == votes[False]:
        return None
    return Domain(highest, votes[True] > votes[False])
