# SPDX-License-Identifier: Apache-2.0
"""Proposers for points that form no lines: a search, and a thorough search for values that are nearly exact.

Without lines, a search starts from forms that combine likely functions, and changes their terms. Bounds on coefficients
would stop the search early, so it has none; the criterion that selects among the candidates has bounds.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import SCATTERED_FREEDOM, THOROUGH, THOROUGH_PATHS
from ..criterion.criterion import ALL, Candidates, choose
from ..criterion.evidence import Evidence
from ..criterion.scattered import ScatteredCounts
from ..data.lines import lines
from ..hypotheses.pool import Pool, of_each_form
from ..hypotheses.tables import Tables
from .cost import Search
from .richer import RicherSums


def on_no_lines(points: FloatArray) -> bool:
    """Return whether no points (C, m) form a line along some parameter."""
    return not all(lines(points, parameter) for parameter in range(points.shape[1]))


def scattered(points: FloatArray) -> bool:
    """Return whether points (C, m) form no lines, and have at least three values of each parameter."""
    return min(np.unique(column).size for column in points.T) > 2 and on_no_lines(points)


class ScatteredSums:
    """Proposes hypotheses for values at `points` (C, m) whose noise is no larger than a criterion allows."""

    def __init__(self, points: FloatArray, tables: Tables) -> None:
        self.points, self.tables = points, tables

    def propose(self, values: FloatArray) -> list[Candidates]:
        """Return the results of the usual search for values (N, C)."""
        pool = Search(self.points, self._criterion(values)).run()
        return _simplest_first(candidates_of(pool, np.arange(len(values))), len(self.points))

    def propose_thoroughly(self, values: FloatArray, rows: NDArray[np.bool_]) -> list[Candidates]:
        """Return the results of the thorough search for the largest of the values (N, C) in `rows` (N,).

        Also sums that extend the best single product term by term, because small terms change nothing in the search.
        """
        numbers = np.flatnonzero(rows)
        peaks = np.abs(values[numbers]).max(axis=1, initial=0.0)
        numbers = np.sort(numbers[np.argsort(-peaks, kind="stable")[:THOROUGH_PATHS]])
        if not numbers.size:
            return []
        criterion = self._criterion(values[numbers])
        pool = Search(self.points, criterion, depth=THOROUGH).run()
        paths = np.arange(numbers.size)
        single = choose([own for own in parts_of(pool, paths) if own.specification.shape[1] == 1], criterion, 1)
        found = []
        for start in (pool, single):
            more = RicherSums(self.points, criterion, self.tables, start).run()
            found += candidates_of(more, numbers)
        return _simplest_first(found, len(self.points))

    def _criterion(self, values: FloatArray) -> Evidence:
        exact = np.zeros(len(values)), np.full(len(values), float(len(self.points)))
        return Evidence(self.tables, values, *exact, nonnegative=False)


def scattered_sums(points: FloatArray, criterion: ScatteredCounts) -> list[Candidates]:
    """Return the results of the search for noisy values, for counts at `points` (C, m) that no function reproduces.

    The search only uses the likelihood, because a search among plausible hypotheses ends too early. Its results may
    contain implausible terms, so sums of some of the products, and the constant, are candidates, too.
    """
    pool = Search(points, criterion.part(ALL), reweights=False).run()
    paths = np.arange(len(pool.score))
    constant = Candidates(paths, np.empty((paths.size, 0, points.shape[1]), dtype=np.int16), True)
    return [constant, *candidates_of(pool, paths), *parts_of(pool, paths)]


def _simplest_first(candidates: list[Candidates], points: int) -> list[Candidates]:
    """Return candidates without a constant and with one, small ones first; the first exact one is the best.

    Candidates with fewer than SCATTERED_FREEDOM degrees of freedom are left out, because small counts have some sum by
    coincidence.
    """
    both = [replace(own, constant=constant) for own in candidates for constant in (False, True)]
    free = [own for own in both if own.specification.shape[1] + own.constant + SCATTERED_FREEDOM <= points]
    return sorted(free, key=lambda own: own.specification.shape[1] + own.constant)


def parts_of(pool: Pool, paths: NDArray[np.int64]) -> list[Candidates]:
    """Return the sums of some of the products of the hypotheses of a pool of the call paths `paths` (N,)."""
    result = []
    for own in candidates_of(pool, paths):
        width = own.specification.shape[1]
        for kept in range(1, width):
            for places in combinations(range(width), kept):
                result.append(Candidates(own.path, own.specification[:, places], own.constant))
    return result


def candidates_of(pool: Pool, paths: NDArray[np.int64]) -> list[Candidates]:
    """Return the hypotheses of a pool of the call paths `paths` (N,), for a new fit and new scores."""
    return [
        Candidates(paths[row], pool.specification[row, rank, :width], constant)
        for width, constant, row, rank in of_each_form(pool)
    ]
