# SPDX-License-Identifier: Apache-2.0
"""Models of counts of decomposed domains that no function reproduces: so much for each cell, face, edge and part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from ...experiment import FloatArray
from ...process_grid import ProcessGrid
from ..build import qualities
from ..calibration import EXACT_LEAST_LEAD, FAR_BETTER
from ..data.noise import Repetitions
from ..data.preparation import ranges, take
from ..forms.unexplained import missed
from ..hypotheses.library import make_term
from ..model import Model, Term, collect
from ..proposers.domain_functions import DomainFunctions, Part, parts_of
from ..proposers.grid_forms import Form
from ..uncertainty.covariance import joint_covariance, value_variance
from .calibration import DOMAIN_DOUBT, DOMAIN_MISSED, DOMAIN_SLACK, GRID_FREE_POINTS
from .exact import Grids, forms_of
from .terms import Writer, notes_of

_Flags = NDArray[np.bool_]


def by_domain(
    models: Sequence[Model | None],
    grids: Grids,
    points: FloatArray,
    values: FloatArray,
    measured: _Flags,
    repetitions: Repetitions,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models of counts (N, C) at points (C, m) that `models` miss by far more, there and at the largest points.

    measured: (N, C), where something was measured: a count of 0 says that what is done there has no part. Larger points
    are those of the most processes and of the largest size: of both models the coefficients are fitted to the others,
    and what they predict there is compared.
    """
    parameter = grids.possible[0].parameter
    place = names.index(parameter)
    varying = [i for i in range(len(names)) if i != place and np.unique(points[:, i]).size > 1]
    if len(varying) != 1:
        return {}
    found: dict[int, Model] = {}
    domains: dict[tuple[bytes, bytes], _Domain] = {}  # many call paths are executed at the same points
    for path, model in enumerate(models):
        at = measured[path] & (values[path] > 0)
        if model is None or not DOMAIN_MISSED < missed(model) < np.inf or (values[path] < 0).any() or not at.any():
            continue
        own = take(repetitions, np.array([path]), at)
        key = at.tobytes(), measured[path].tobytes()
        if key not in domains:
            domains[key] = _Domain(points[at], points[measured[path] & ~at], names, place, varying[0])
        domain = domains[key]
        best = domain.best(grids.possible, values[path, at], model, own)
        if best is not None:
            found[path] = best
    return found


class _Domain:
    """The points (C, m) of a call path: the number of processes at `place`, the size of the domain at `size`.

    nothing: (Z, m), where it counted 0.
    """

    def __init__(self, points: FloatArray, nothing: FloatArray, names: tuple[str, ...], place: int, size: int) -> None:
        self.points, self.nothing, self.names, self.place, self.size = points, nothing, names, place, size
        processes, sizes = points[:, place], points[:, size]
        self.processes = np.unique(np.concatenate([processes, nothing[:, place]]))
        self.largest = np.asarray((processes == processes.max()) | (sizes == sizes.max()), dtype=bool)
        self._known: dict[tuple[ProcessGrid, Part], DomainFunctions] = {}

    def best(
        self, grids: Sequence[ProcessGrid], counts: FloatArray, former: Model, repetitions: Repetitions
    ) -> Model | None:
        """Return what misses the counts (C,) least of the functions of domains on grids, if that is far less.

        It need not be less than a model misses that leaves one process out and has more coefficients.
        """
        known = self.points[~self.largest]
        if np.unique(known[:, self.place]).size < 2 or np.unique(known[:, self.size]).size < 2:
            return None
        least, chosen = FAR_BETTER * missed(former), None
        most = len(former.terms) + bool(former.constant) if not self._within(former).all() else 0
        for grid in grids:
            for part in parts_of(grid.dimensions):
                functions = self._functions(grid, part)
                bound = least if chosen is not None or not most else missed(former)
                coefficients = _fewest(functions, counts, bound)
                if coefficients is None:
                    continue
                missing, many = _missed(coefficients @ functions.columns, counts), np.count_nonzero(coefficients)
                if missing < (bound if many < most else least) and many + GRID_FREE_POINTS <= len(counts):
                    least, chosen = missing, (grid, functions, coefficients)
        if chosen is None:
            return None
        grid, functions, coefficients = chosen
        ahead = functions.fit(counts, ~self.largest, coefficients > 0) @ functions.columns[:, self.largest]
        if _missed(ahead, counts[self.largest]) >= self._ahead(former, counts):
            return None
        return self._model(grid, functions, coefficients, counts, repetitions)

    def _functions(self, grid: ProcessGrid, part: Part) -> DomainFunctions:
        if (grid, part) not in self._known:
            self._known[grid, part] = self._made(grid, part)
        return self._known[grid, part]

    def _made(self, grid: ProcessGrid, part: Part) -> DomainFunctions:
        forms = forms_of(grid, tuple(self.processes.tolist()))
        here, nothing = (
            (own[:, self.size], np.searchsorted(self.processes, own[:, self.place]))
            for own in (self.points, self.nothing)
        )
        return DomainFunctions(forms, part, *here, nothing)

    def _ahead(self, former: Model, counts: FloatArray) -> float:
        """Return what a model of the same form misses the counts (C,) of the largest points by, if it has no others."""
        columns = {name: self.points[:, i] for i, name in enumerate(former.parameters)}
        shapes = [Term(1.0, term.factors) for term in former.terms] + [Term(1.0, ())] * bool(former.constant)
        design = np.stack([own.evaluate(columns, counts.shape) for own in shapes])
        known = ~self.largest & self._within(former)
        relative = design[:, known] / counts[known]
        coefficients = np.linalg.lstsq(relative.T, np.ones(relative.shape[1]), rcond=None)[0]
        return _missed(coefficients @ design[:, self.largest], counts[self.largest])

    def _within(self, former: Model) -> _Flags:
        """Return which points (C,) a model is of: another formula may hold at one process."""
        low, high = np.array(former.ranges).T
        return np.asarray((self.points >= low).all(axis=1) & (self.points <= high).all(axis=1), dtype=bool)

    def _model(
        self,
        grid: ProcessGrid,
        functions: DomainFunctions,
        coefficients: FloatArray,
        counts: FloatArray,
        repetitions: Repetitions,
    ) -> Model:
        """Return a sum of functions with its uncertainty: all terms of one function have its coefficient."""
        used = np.flatnonzero(coefficients).tolist()
        writer = Writer(grid, [self.names[self.size]], forms_of(grid, tuple(self.processes.tolist())), self.processes)
        of_each = [self._written(writer, *functions.functions[i]) for i in used]
        parts = list(zip(coefficients[used].tolist(), of_each, strict=True))
        constant, terms = collect(
            sum(by * own for by, (own, _) in parts), [term.scaled(by) for by, (_, own) in parts for term in own]
        )
        # coefficients of terms, the constant first, from those of functions
        change = np.zeros((1 + len(terms), len(used)))
        row = {term.factors: number for number, term in enumerate(terms, 1)}
        for column, (one, own) in enumerate(of_each):
            change[0, column] = one
            for term in own:
                change[row[term.factors], column] = term.coefficient
        fitted = coefficients @ functions.columns
        width = np.array([len(used)])
        variance = value_variance(np.array([_missed(fitted, counts)]), repetitions, len(counts), 2 * width)
        fit = functions.columns[used][None], coefficients[used][None]
        covariance = joint_covariance(*fit, self.points, variance, counts[None], DOMAIN_DOUBT, variance)[0]
        each = np.kron(np.eye(1 + len(self.names)), change)
        moved = block_diag(each, np.eye(len(self.names)))
        matrix = tuple(map(tuple, (moved @ covariance @ moved.T).tolist()))
        quality = qualities(counts[None], fitted[None], np.full(1, np.nan), width)[0]
        model = Model(self.names, constant, terms, quality, ranges(self.points), matrix)
        return replace(model, notes=notes_of(grid, self.processes, model))

    @staticmethod
    def _written(writer: Writer, power: int, grid_function: int) -> tuple[float, tuple[Term, ...]]:
        function = make_term(Fraction(power), 0) if power else None
        return writer.written(((function,),), [Form((grid_function,), (1.0,))])


def _fewest(functions: DomainFunctions, counts: FloatArray, least: float) -> FloatArray | None:
    """Return coefficients (K,) of as few functions as miss the counts (C,) by little more than all of them.

    None if even all of them miss these by `least` or more.
    """

    def largest(coefficients: FloatArray) -> FloatArray:
        return np.asarray((coefficients[:, None] * functions.columns / counts).max(axis=1), dtype=np.float64)

    # what is nowhere a part of the counts is rounding
    best = functions.fit(counts)
    if _missed(best @ functions.columns, counts) >= least:
        return None
    best = functions.fit(counts, of=largest(best) >= EXACT_LEAST_LEAD)
    most = DOMAIN_SLACK * _missed(best @ functions.columns, counts)
    # those with the smallest part in any count first
    parts = largest(best)
    for number in np.argsort(parts)[np.count_nonzero(best == 0) :].tolist():
        without = best > 0
        without[number] = False
        fewer = functions.fit(counts, of=without)
        if _missed(fewer @ functions.columns, counts) <= most:
            best = fewer
    return best


def _missed(fitted: FloatArray, counts: FloatArray) -> float:
    return float(np.sqrt(((fitted / counts - 1.0) ** 2).mean()))
