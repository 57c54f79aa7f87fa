# SPDX-License-Identifier: Apache-2.0
"""Propose the functions of one parameter in exact counts.

A block count such as 7 + 4n + 5n² + 3n³ has several terms per parameter, and a fit of a single term would give
n^(11/4). For each parameter, the simplest set of functions is searched that reproduces every line of points to
rounding.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    BATCH_SETS,
    EXACT_LEAST_LEAD,
    EXACT_LINES,
    EXACT_NEAR,
    EXACT_PAIR_COMPLEXITY,
    EXACT_RESIDUAL,
    EXACT_RESIDUAL_OF_SIZE,
    EXACT_RESOLUTION,
    EXACT_TRIPLE_COMPLEXITY,
    LOOP_DENOMINATOR,
    NEARLY_EXACT,
    RANKED_LEAST_WEIGHED,
    RECURSION_DENOMINATOR,
    WHOLE,
    WHOLE_OF_SIZE,
)
from ..criterion.exactness import exact_weights, rounding_of
from ..data.lines import lines
from ..data.preparation import unit_of
from ..fit.fitter import fit
from ..fit.projection import residual_bases, squares_left
from ..fit.subsets import solve_shared
from ..grids.calibration import FURTHER
from ..hypotheses.library import SHARED, SimpleTerm
from ..hypotheses.tables import Specification, Tables
from ..model import recursion_of

_Flags = NDArray[np.bool_]


@lru_cache(maxsize=128)
def _families(tables: Tables, parameter: int) -> tuple[Specification, ...]:
    """Return sets of one, two and three terms, each an array (sets, size), simplest first (pairs: `SHARED` first)."""
    return _families_of(tables.terms[parameter])


@lru_cache(maxsize=128)
def _families_of(terms: tuple[SimpleTerm, ...]) -> tuple[Specification, ...]:
    cost = np.array([term.cost for term in terms])
    shared = np.array([term.exponents in SHARED for term in terms], dtype=bool)
    result = []
    for size, limit in ((1, np.inf), (2, EXACT_PAIR_COMPLEXITY), (3, EXACT_TRIPLE_COMPLEXITY)):
        pool = np.flatnonzero((cost <= limit) | shared).tolist()
        sets = np.array(list(combinations(pool, size)), dtype=np.int16).reshape(-1, size)
        costs = np.where((size == 2) & shared[sets].all(axis=1), 0.0, cost[sets].sum(axis=1))
        result.append(sets[np.argsort(costs, kind="stable")])
    return tuple(result)


@lru_cache(maxsize=256)
def _units(tables: Tables, parameter: int, size: int) -> FloatArray:
    """Return for each set of this size the unit of sums of whole multiples of its functions, at least 1; shape (S,)."""
    sets = _families(tables, parameter)[size - 1]
    table = tables.columns[parameter] * tables.scale[parameter][:, None]
    least = EXACT_RESOLUTION * np.abs(table).max(axis=1)
    own = np.concatenate([np.zeros(1), unit_of(table, least)])[np.pad(sets + 1, ((0, 0), (1, 0)))]
    together = unit_of(own, EXACT_RESOLUTION * own.max(axis=1))
    result: FloatArray = np.maximum(np.minimum(together, own[:, 1:].min(axis=1)), 1.0)
    return result


class ExactLines:
    """Searches for sets of functions that reproduce counts along lines: points that differ in one parameter.

    points: (C, m), m parameters. values: (N, C), for N call paths. tables: the possible terms at the points.
    """

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        self.points, self.tables, self.values = points, tables, values

    def propose(self, parameter: int) -> tuple[Specification, _Flags]:
        """Return for each call path the simplest set of terms that reproduces every line, and whether one was found.

        Shapes: (N, 3), -1 for no term, and (N,). The lines are those along one parameter. Lines with fewer values than
        others are ignored if the others have points to spare.
        """
        paths = self.values.shape[0]
        found_lines = lines(self.points, parameter, least=2)
        if len(found_lines) > EXACT_LINES:
            found_lines = [found_lines[i] for i in np.linspace(0, len(found_lines) - 1, EXACT_LINES).astype(int)]
        terms, exact = np.full((paths, 3), -1, dtype=np.int16), np.zeros(paths, dtype=bool)
        if not found_lines:
            return terms, exact
        flat = np.ones(paths, dtype=bool)
        for line in found_lines:
            values = self.values[:, line]
            flat &= np.ptp(values, axis=1) <= EXACT_RESIDUAL_OF_SIZE * np.abs(values).max(axis=1)
        exact |= flat
        tried = 0
        found_lines.sort(key=lambda line: -float(np.ptp(self.values[:, line], axis=1).sum()))
        evidence, unit = self._evidence(found_lines)
        steepest = np.stack([np.ptp(self.values[:, line], axis=1) for line in found_lines]).argmax(axis=0)
        sizes = [np.unique(self.points[line, parameter]).size for line in found_lines]
        most = max(sizes)
        simpler: list[tuple[Specification, FloatArray]] = []
        for sets in _families(self.tables, parameter):
            open_paths = np.flatnonzero(~exact)
            if not open_paths.size or not len(sets):
                break
            freedom = most - sets.shape[1] - 1
            needed = np.log(np.arange(tried + 1, tried + len(sets) + 1)) + 1.0
            tried += len(sets)
            # as many coefficients as points: other evidence is necessary below
            fits_all = (freedom * evidence[open_paths][:, None] >= needed) | (freedom <= 0)
            doubted = np.zeros_like(fits_all)
            shows = np.repeat(flat[open_paths][:, None], len(sets), axis=1)
            # if points are missing, a line may have too few values to confirm the result of longer lines
            telling = [
                line for line, size in zip(found_lines, sizes, strict=True) if size >= most - max(freedom - 1, 0)
            ]
            fits_all = self._possible_everywhere(parameter, sets, telling, open_paths, fits_all)
            for line in telling:
                alive = np.flatnonzero(fits_all.any(axis=1))
                if not alive.size:
                    break
                rows = open_paths[alive]
                if line is telling[0] and freedom > 0:
                    # how far the best smaller set is from the values, on the line with the largest variation, in units
                    counts = np.zeros((rows.size, len(sets)))
                    of_sets = _units(self.tables, parameter, sets.shape[1])
                    for number in np.unique(steepest[rows]).tolist():
                        own = steepest[rows] == number
                        nearest = self._nearest(parameter, simpler, found_lines[number], rows[own], evidence[rows[own]])
                        several = np.outer(nearest / unit[rows[own]], of_sets)
                        counts[own] = np.log(np.maximum(several, 1.0))
                    doubted[alive] = freedom * counts < needed
                good, visible = self._reproduced(parameter, sets, line, rows, fits_all[alive], doubted[alive], most)
                fits_all[alive] &= good
                shows[alive] |= visible
            simpler.append((sets, needed))
            fits_all &= shows
            found = fits_all.any(axis=1)
            first = fits_all.argmax(axis=1)
            terms[open_paths[found], : sets.shape[1]] = sets[first[found]]
            exact[open_paths[found]] = True
        return terms, exact

    def _evidence(self, found_lines: list[NDArray[np.int64]]) -> tuple[FloatArray, FloatArray]:
        """Return two arrays (N,): the evidence of one point, which is ln(variation / resolution), and the unit.

        The resolution is 1 for whole numbers; for means over ranks, it is the unit of which they are multiples. Small
        variations are little evidence, because many functions reproduce small numbers by coincidence. A set of
        functions is accepted if its evidence exceeds the logarithm of the number of tried sets. If a smaller set
        differs from the values by a few units only, the larger set may explain mere rounding. It is then accepted
        only with coefficients that loops produce (multiples of 1/LOOP_DENOMINATOR).
        """
        best = np.full(self.values.shape[0], -np.inf)
        units = np.ones(self.values.shape[0])
        by_size: dict[int, list[NDArray[np.int64]]] = {}
        for line in found_lines:
            by_size.setdefault(line.size, []).append(line)
        alike = {size: self._resolved(np.stack(own)) for size, own in by_size.items()}
        places = dict.fromkeys(alike, 0)
        for line in found_lines:
            ratios, several = alike[line.size]
            ratio, unit = ratios[:, places[line.size]], several[:, places[line.size]]
            places[line.size] += 1
            units = np.where(ratio > best, unit, units)
            best = np.maximum(best, ratio)
        return best, units

    def _resolved(self, alike: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return two arrays (N, L): ln(variation / resolution) and the unit, on each of the lines `alike` (L, c)."""
        values = self.values[:, alike].reshape(-1, alike.shape[1])
        whole = (values == np.round(values)).all(axis=1)
        top = np.abs(values).max(axis=1)
        unit = unit_of(values, EXACT_RESOLUTION * np.where(top > 0, top, 1.0))
        resolution = np.where(whole, 1.0, unit)
        variation = values.max(axis=1) - values.min(axis=1)
        ratio = np.log(np.maximum(variation, 1e-300)) - np.log(np.maximum(resolution, 1e-300))
        return ratio.reshape(-1, len(alike)), unit.reshape(-1, len(alike))

    def _possible_everywhere(
        self,
        parameter: int,
        sets: Specification,
        telling: list[NDArray[np.int64]],
        paths: NDArray[np.int64],
        wanted: _Flags,
    ) -> _Flags:
        """Return which sets are `_possible` on all lines."""
        for line in telling:
            wanted = wanted & self._possible(parameter, sets, line, paths, wanted)
            if not wanted.any():
                break
        return wanted

    def _possible(
        self, parameter: int, sets: Specification, line: NDArray[np.int64], paths: NDArray[np.int64], wanted: _Flags
    ) -> _Flags:
        """Return which of the sets (S, K) may reproduce the values of `paths` on one line, (paths, S).

        wanted: (paths, S), the sets to test. Without weights, residuals are products with matrices common to all call
        paths. If they are too large, the weighted residuals are, too. This avoids the precise fit of nearly all sets.
        """
        distinct, width = np.unique(self.points[line, parameter]).size, sets.shape[1]
        if distinct <= width + 1:
            return np.broadcast_to((distinct > width) & self._polynomial(parameter)[sets].all(axis=1), wanted.shape)
        bases = residual_bases(self._table(parameter, line), sets)
        values = self.values[paths][:, line]
        limit = line.size * (NEARLY_EXACT * np.abs(values).max(axis=1, keepdims=True)) ** 2
        result = np.zeros_like(wanted)
        rows = np.flatnonzero(wanted.any(axis=1))
        step = max(1, BATCH_SETS // len(sets))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            result[part] = squares_left(bases, values[part]) <= limit[part]
        return result

    def _nearest(
        self,
        parameter: int,
        simpler: list[tuple[Specification, FloatArray]],
        line: NDArray[np.int64],
        paths: NDArray[np.int64],
        evidence: FloatArray,
    ) -> FloatArray:
        """Return for each path the smallest deviation on a line from a constant or from a set in `simpler`, (paths,).

        simpler: sets with fewer coefficients than points, each with the logarithm of the number of tried sets.
        """
        distinct = np.unique(self.points[line, parameter]).size
        values = self.values[paths][:, line]
        nearest: FloatArray = np.ptp(values, axis=1)
        top = np.abs(values).max(axis=1)
        table = self._table(parameter, line)
        for sets, needed in simpler:
            freedom = distinct - sets.shape[1] - 1
            left = _left(table, sets, values)
            told = freedom * evidence[:, None] >= needed
            if freedom > 0:
                least = np.where(told, left, np.inf).min(axis=1, initial=np.inf)
                nearest = np.minimum(nearest, np.sqrt(least) * top)
            near = told & (left <= EXACT_NEAR)
            path, number = np.nonzero(near)
            if freedom > 0 and path.size:
                # residuals in counts, not relative to each count
                result = fit(table[_with_constant(sets)[number]][:, None], values[path], np.ones_like(values[path]))
                np.minimum.at(nearest, path, result.worst[:, 0])
        return nearest

    def _table(self, parameter: int, line: NDArray[np.int64]) -> FloatArray:
        return self.tables.columns[parameter][:, line]

    def _reproduced(
        self,
        parameter: int,
        sets: Specification,
        line: NDArray[np.int64],
        paths: NDArray[np.int64],
        wanted: _Flags,
        doubted: _Flags,
        most: int,
    ) -> tuple[_Flags, _Flags]:
        """Return two arrays (paths, S): which sets reproduce the values on a line; which have a visible leading term.

        sets: (S, K). wanted: (paths, S), sets to try. doubted: (paths, S), where coefficients must be ones that loops
        produce (multiples of 1/LOOP_DENOMINATOR). most: number of values of the parameter on the longest line.
        """
        distinct = np.unique(self.points[line, parameter]).size
        width = sets.shape[1]
        good, visible = np.zeros_like(wanted), np.zeros_like(wanted)
        values = self.values[paths][:, line]
        weights = exact_weights(values)
        path, number = np.nonzero(wanted)
        chosen = _with_constant(sets)[number]
        columns = self._table(parameter, line)[chosen]
        result = fit(columns[:, None], values[path], weights[path])
        exact = result.worst[:, 0] <= rounding_of(values, weights)[path]
        order = self.tables.order_of(parameter)[chosen[:, 1:]]
        lead = np.where(order > 0, order, -np.inf).argmax(axis=1) + 1
        rows = np.arange(path.size)
        part = np.abs(result.coefficients[rows, 0, lead]) * columns[rows, lead].max(axis=1)
        shows = part >= EXACT_LEAST_LEAD * np.abs(values).max(axis=1)[path]
        coefficients = result.coefficients[:, 0].copy()
        coefficients[:, 1:] /= self.tables.scale[parameter][chosen[:, 1:]]
        if distinct == width + 1:
            # with as many coefficients as points, only whole, nonnegative coefficients are evidence
            exact &= _whole(coefficients) & (coefficients > -0.5).all(axis=1)
        calls = self._calls_at_smallest(parameter, line)[chosen]
        below = np.where(calls > 1.0, RECURSION_DENOMINATOR, LOOP_DENOMINATOR).max(axis=1, keepdims=True)
        exact &= ~doubted[path, number] | _whole(self._parts(parameter, line) * below * coefficients * calls)
        # as many coefficients as distinct values are no explanation, for example of a constant with one exception
        steps = np.diff(np.sort(values, axis=1), axis=1) > EXACT_RESIDUAL * np.abs(values).max(axis=1, keepdims=True)
        different = np.count_nonzero(steps, axis=1)
        exact &= ((different == 0) | (different >= width))[path]
        if distinct == width + 2 == most:
            # with one spare point, a sum may be a coincidence: accept it with powers of loops, or without a constant
            loops = self._of_loops(parameter)[chosen[:, 1:]].all(axis=1)
            exact &= ~doubted[path, number] | loops | (np.abs(coefficients[:, 0]) <= WHOLE)
            # one spare point is not enough for a function that becomes negative, because counts do not
            exact &= ~self._becomes_negative(parameter, line, chosen, coefficients) | (values[path] < 0.0).any(axis=1)
        good[path, number], visible[path, number] = exact, shows
        return good, visible

    def _becomes_negative(
        self, parameter: int, line: NDArray[np.int64], chosen: Specification, coefficients: FloatArray
    ) -> _Flags:
        """Return which sums of terms `chosen` (N, K) with `coefficients` (N, K) are negative beyond a line."""
        at = self.points[line, parameter].max() * np.array(FURTHER)
        terms = [term.factor("x").evaluate(at) for term in self.tables.terms[parameter]]
        beyond = np.stack([*terms, np.ones(len(at))], axis=1)
        parts = beyond[:, chosen] * coefficients
        return np.asarray((parts.sum(axis=2) < -1e-9 * np.abs(parts).max(axis=2)).any(axis=0), dtype=bool)

    def _parts(self, parameter: int, line: NDArray[np.int64]) -> int:
        """Return the ratio of the other parameters' values on a line to their smallest values.

        At 8 processes 7·n²/p is 7/8·n², at one process 7·n²: the ratio for 1 and 8 processes is 8.
        """
        others = np.delete(self.points, parameter, axis=1)
        more = others[line[0]] / np.where(others.min(axis=0) > 0.0, others.min(axis=0), np.inf)
        return math.prod(int(ratio) for ratio in more.tolist() if ratio >= 1.0 and ratio.is_integer())

    def _calls_at_smallest(self, parameter: int, line: NDArray[np.int64]) -> FloatArray:
        """Return for each term the smallest number of calls on a line, if the term describes a recursion, otherwise 1.

        The last value belongs to the constant. Numbers of calls are multiples of these values.
        """
        smallest = self.points[line, parameter].min()
        terms = self.tables.terms[parameter]
        return np.array([*(smallest**term.power if recursion_of(term.exponent) else 1.0 for term in terms), 1.0])

    def _of_loops(self, parameter: int) -> _Flags:
        """Return which terms are whole powers, possibly times logarithms, as in sorts."""
        terms = self.tables.terms[parameter]
        return np.array([a.exponent.denominator == 1 and a.exponent > 0 for a in terms], dtype=bool)

    def _polynomial(self, parameter: int) -> _Flags:
        """Return which terms are whole powers."""
        terms = self.tables.terms[parameter]
        return np.array([a.log == 0 and a.exponent.denominator == 1 and a.exponent > 0 for a in terms], dtype=bool)


def _whole(coefficients: FloatArray) -> _Flags:
    """Return which rows of coefficients (N, K) are whole numbers."""
    limit = WHOLE * np.maximum(1.0, np.abs(coefficients) * WHOLE_OF_SIZE)
    return np.asarray((np.abs(coefficients - np.round(coefficients)) <= limit).all(axis=1), dtype=bool)


def _left(table: FloatArray, sets: Specification, values: FloatArray) -> FloatArray:
    """Fit each set (S, K) of rows of `table` to the values (N, C); return the share of squares that remains, (N, S).

    Normal equations square the weights, so the weight of a single zero among the values is limited.
    """
    weights = exact_weights(values, RANKED_LEAST_WEIGHED)
    total = ((weights * values) ** 2).sum(axis=1)
    subsets = _with_constant(sets).astype(np.int64) % len(table)
    result = np.empty((len(values), len(sets)))
    step = max(1, BATCH_SETS // max(1, len(sets)))
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        _, explained = solve_shared(table, subsets, values[part], weights[part])
        result[part] = np.maximum(1.0 - explained / np.maximum(total[part, None], np.finfo(float).tiny), 0.0)
    return result


def _with_constant(sets: Specification) -> Specification:
    return np.concatenate([np.full((len(sets), 1), -1, dtype=sets.dtype), sets], axis=1)
