# SPDX-License-Identifier: Apache-2.0
"""Propose models of counts that are rounded: whole numbers within a few counts of a function.

Sizes of loops over shares, blocks and roots are rounded to whole numbers, n/p or n^(1/3). No function reproduces such
counts exactly, but all of their digits except the last few are evidence: a simple function that stays within a few
counts of large values is no coincidence. Lines in one parameter show which sets of functions follow the counts.
Candidates are sums of products that contain all functions of one set per parameter, if they stay within rounding at all
points.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    BATCH_NUMBERS,
    LOST_IN_GRAM,
    ROUNDED,
    ROUNDED_LEAST_TERM,
    ROUNDED_PRODUCTS,
    ROUNDED_SETS,
    ROUNDING_EXPECTED,
    ROUNDING_MOST,
)
from ..criterion.criterion import Candidates
from ..data.lines import lines, same_places
from ..fit.projection import residual_makers, squared_residuals
from ..fit.shortlist import lowest
from ..fit.subsets import gram, solve_both
from ..hypotheses.tables import Tables

_Flags = NDArray[np.bool_]
_Index = NDArray[np.int64]


class RoundedSums:
    """Proposes hypotheses for counts that were measured at `points` (C, m). tables: the functions."""

    def __init__(self, points: FloatArray, tables: Tables) -> None:
        self.points, self.tables = points, tables
        self.parameters = points.shape[1]
        self.most_sets = ROUNDED_SETS.get(self.parameters, 1)
        self._known_groups: dict[int, list[tuple[_Index, list[FloatArray]]]] = {}

    def propose(self, values: FloatArray) -> list[Candidates]:
        """Return hypotheses that follow the whole numbers `values` (N, C) to within rounding."""
        paths = np.flatnonzero((values == np.round(values)).all(axis=1))
        sets: list[NDArray[np.int16]] = []
        if not paths.size:
            return []
        for parameter in range(self.parameters):
            chosen, found = self._sets(parameter, values[paths])
            paths, sets = paths[found], [*(kept[found] for kept in sets), chosen[found]]
            if not paths.size:
                return []
        # one set per parameter: (N · combinations, functions)
        choices = list(product(range(self.most_sets), repeat=self.parameters))
        places = np.array(choices)
        stacked = [
            of_parameter[:, places[:, parameter]].reshape(-1, of_parameter.shape[2])
            for parameter, of_parameter in enumerate(sets)
        ]
        path = np.repeat(paths, len(choices))
        known = np.logical_and.reduce([of_parameter[:, 0] > _ABSENT for of_parameter in stacked])
        sizes = np.stack([(of_parameter >= 0).sum(axis=1) for of_parameter in stacked], axis=1)
        result = []
        for shape in np.unique(sizes[known], axis=0).tolist():
            rows = known & (sizes == shape).all(axis=1)
            result += self._combined(values, path[rows], [of_parameter[rows] for of_parameter in stacked], tuple(shape))
        return result

    # --- functions of one parameter -------------------------------------------------------------------------

    def _groups(self, parameter: int) -> list[tuple[_Index, list[FloatArray]]]:
        """Return groups of lines with the same values of a parameter, and residual matrices of sets of functions."""
        if parameter not in self._known_groups:
            found = []
            for alike in same_places(lines(self.points, parameter), self.points[:, parameter]):
                table = self.tables.columns[parameter][:, alike[0]]
                found.append((alike, [residual_makers(table, sets) for sets in self._families(parameter)]))
            self._known_groups[parameter] = found
        return self._known_groups[parameter]

    def _families(self, parameter: int) -> tuple[_Index, ...]:
        distinct = np.unique(self.points[:, parameter]).size
        return _families(len(self.tables.terms[parameter]), min(2, distinct - 2))

    def _sets(self, parameter: int, values: FloatArray) -> tuple[NDArray[np.int16], _Flags]:
        """Return for each call path the likeliest sets of up to two functions, (N, sets, 2); and whether there are any.

        Along a line in one parameter, the other factors are constant, so every line has separate coefficients.
        """
        chosen = np.full((len(values), self.most_sets, 2), -1, dtype=np.int16)
        chosen[:, :, 0] = _ABSENT
        families, groups = self._families(parameter), self._groups(parameter)
        if not families or not groups:
            return chosen, np.zeros(len(values), dtype=bool)
        padded, factor = self._penalties(parameter)
        points = sum(alike.size for alike, _ in groups)
        most = points * ROUNDING_MOST**2
        squares = np.zeros((len(values), len(padded)))
        for alike, makers in groups:
            place = 0
            for matrices in makers:
                squares[:, place : place + len(matrices)] += squared_residuals(matrices, values[:, alike], most)
                place += len(matrices)
        squares[squares > most] = np.inf
        scores = (squares / points + ROUNDING_EXPECTED**2) * factor
        best = np.sort(lowest(scores, self.most_sets), axis=1)
        likelihood = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(likelihood, axis=1, kind="stable")
        best, possible = np.take_along_axis(best, order, axis=1), np.isfinite(np.sort(likelihood, axis=1))
        chosen[:, : best.shape[1]][possible] = padded[best[possible]]
        return chosen, np.asarray(possible.any(axis=1), dtype=bool)

    def _penalties(self, parameter: int) -> tuple[_Index, FloatArray]:
        """Return all sets (S, 2), and the penalties (S,) as factors of variances, which need no logarithm."""
        distinct = np.unique(self.points[:, parameter]).size
        padded, penalty = [], []
        for sets in self._families(parameter):
            padded.append(np.pad(sets, ((0, 0), (0, 2 - sets.shape[1])), constant_values=-1))
            complexity = self.tables.cost[parameter][sets].sum(axis=1)
            penalty.append(ROUNDED.coefficient * sets.shape[1] + ROUNDED.complexity * complexity)
        return np.concatenate(padded), np.exp(np.concatenate(penalty) / distinct)

    # --- combinations ---------------------------------------------------------------------------------------

    def _combined(
        self, values: FloatArray, path: _Index, sets: list[NDArray[np.int16]], sizes: tuple[int, ...]
    ) -> list[Candidates]:
        """Return the sums of products of the functions in `sets` (M, 2) by parameter that may follow the values."""
        products = np.array(list(product(*(range(-1, size) for size in sizes))), dtype=np.int64)
        products = products[np.argsort((products >= 0).any(axis=1), kind="stable")]  # the constant first
        sums = [(width, covering) for width, covering in _covering(sizes) if width < values.shape[1]]
        result: list[Candidates] = []
        step = max(1, BATCH_NUMBERS // (len(products) * values.shape[1]))
        for start in range(0, len(path), step):
            part = slice(start, start + step)
            of_path = path[part]
            specification = np.full((of_path.size, len(products), self.parameters), -1, dtype=np.int16)
            for parameter, functions in enumerate(sets):
                specification[:, :, parameter] = np.where(
                    products[:, parameter] >= 0, functions[part][:, products[:, parameter]], -1
                )
            own_values = values[of_path]
            columns = self.tables.design(specification)
            matrix, right, total = gram(columns, own_values, np.ones_like(own_values))
            limit = values.shape[1] * ROUNDING_MOST**2 + LOST_IN_GRAM * total
            top = np.abs(own_values).max(axis=1)[:, None]  # the unit of coefficients
            peak = np.abs(columns).max(axis=2) * top
            least = np.maximum(ROUNDED_LEAST_TERM * ROUNDING_MOST - 10.0 * LOST_IN_GRAM * top, 0.0)
            for _, subsets in sums:
                for constant, (found, explained) in zip(
                    (True, False), solve_both(matrix, right, subsets[None]), strict=True
                ):
                    near = total[:, None] - explained <= limit[:, None]
                    for own_terms, coefficient in zip(subsets.T, found[-subsets.shape[1] :], strict=True):
                        near &= np.abs(coefficient) * peak[:, own_terms] >= least
                    row, number = np.nonzero(near)
                    if row.size:
                        chosen = specification[row[:, None], subsets[number]]
                        result.append(Candidates(of_path[row], chosen, constant))
        return result


# In the first place of a set: there is no set.
_ABSENT = -2


@lru_cache(maxsize=32)
def _families(functions: int, most: int) -> tuple[_Index, ...]:
    """Return sets of no function, of one and so on, each an array (sets, size)."""
    families = []
    for size in range(max(most, -1) + 1):
        sets = list(combinations(range(functions), size))
        families.append(np.array(sets, dtype=np.int64).reshape(len(sets), size))
    return tuple(families)


@lru_cache(maxsize=256)
def _covering(sizes: tuple[int, ...]) -> list[tuple[int, _Index]]:
    """Return the sums of up to three products that have every function of sets of these sizes, (H, products).

    Products are indexed as all choices of one function per parameter, or none; the constant (0) comes first.
    """
    everything = list(product(*(range(-1, size) for size in sizes)))
    everything.sort(key=lambda term: any(place >= 0 for place in term))
    wanted = {(parameter, place) for parameter, size in enumerate(sizes) for place in range(size)}
    found = []
    for width in range(1, ROUNDED_PRODUCTS + 1):
        sums = [
            subset
            for subset in combinations(range(1, len(everything)), width)
            if {(i, place) for term in subset for i, place in enumerate(everything[term]) if place >= 0} == wanted
        ]
        if sums:
            found.append((width, np.array(sums, dtype=np.int64)))
    return found
