"""Search for models of counts that are rounded: whole numbers within a few counts of a function.

Loops over shares, blocks and roots have sizes that are rounded to whole numbers, n/p or n^(1/3), so that no function
reproduces the counts exactly, and yet all of their digits but the last few are evidence. What follows a simple
function to within a few counts, over values that span many times that, follows it for a reason.

Many sums of two or three functions do so over five values. They are ranked by their marginal likelihood (Laplace's
approximation; MacKay, Information Theory, Inference, and Learning Algorithms, 2003, section 28.2) with coefficients of
unknown magnitude (Jeffreys' prior 1/|c|) and deviations of about a count. So a coefficient costs as many digits as
the counts tell of it; a large constant, which the stated loops do not have, is as costly as a further function.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..data.lines import lines, same_places
from ..fit.fitter import fit_hypotheses
from ..hypotheses.pool import Fitted, Pool, merge, nothing, spread, to_pool
from ..hypotheses.tables import Specification, Tables

# Deviations in counts: what is expected, and the largest one that is still rounding.
_EXPECTED, _MOST = 1.0, 8.0
# A term must be so many of the largest deviations somewhere.
_LEAST_TERM = 8.0
# What the values tell beyond the coefficients (logarithm of variation over rounding, for each further value) must
# exceed the logarithm of the number of functions that are tried.
_LEAST_EVIDENCE = 16.0
# Price of a coefficient (its magnitude may be anything between 1e-10 and 1e10), of a negative one, and of atoms by
# their cost, in units of twice the logarithm of the likelihood.
_COEFFICIENT, _NEGATIVE, _COST = 7.5, 5.0, 1.0
# Sets of functions of one parameter that are combined, by the number of parameters.
_MOST_SETS = {1: 24, 2: 6, 3: 2}
_MOST_PRODUCTS = 3
# So many sets are tried at a time.
_CHUNK = 128
_POOL = 4

_Flags = NDArray[np.bool_]


class RoundedSearch:
    """One batch of call paths of an effort metric, measured at the same points: values (N, C)."""

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        """Take `values` at `points` (C, m), where `tables` holds the atoms."""
        self.points, self.tables, self.values = points, tables, values
        self.parameters = points.shape[1]
        self.lines = [lines(points, parameter, least=2) for parameter in range(self.parameters)]
        self.distinct = [np.unique(points[:, parameter]).size for parameter in range(self.parameters)]

    def search(self) -> tuple[Pool, _Flags]:
        """Return the best models, and the call paths (N,) that follow theirs to within rounding."""
        good = np.asarray((self.values == np.round(self.values)).all(axis=1), dtype=bool)
        pools = [nothing(len(good), self.parameters)]
        sets = [self._sets(parameter, good) for parameter in range(self.parameters)]
        for path in np.flatnonzero(good).tolist():
            pool = self._combined(path, [own[path] for own in sets])
            row = np.zeros(len(good), dtype=bool)
            row[path] = True
            good[path] = pool is not None
            if pool is not None:
                pools.append(spread(pool, row))
        return merge(pools, _POOL), good

    # --- functions of one parameter -------------------------------------------------------------------------

    def _sets(self, parameter: int, open_paths: _Flags) -> list[list[tuple[int, ...]]]:
        """Return the likeliest sets of up to two atoms for each call path, and close those that have none.

        Along a line in one parameter the rest is constant, so every line has coefficients of its own.
        """
        result: list[list[tuple[int, ...]]] = [[] for _ in range(len(self.values))]
        own = lines(self.points, parameter)
        distinct = self.distinct[parameter]
        families = _families(len(self.tables.atoms[parameter]), min(2, distinct - 2))
        paths = np.flatnonzero(open_paths)
        if not own or not families or not paths.size:
            open_paths[:] = False
            return result
        cost = self.tables.cost[parameter]
        squares = [np.zeros((paths.size, len(sets))) for sets in families]
        for alike in same_places(own, self.points[:, parameter]):
            table = self.tables.columns[parameter][:, alike[0]]
            values = self.values[paths][:, alike]
            squares = [known + _deviations(table, sets, values) for known, sets in zip(squares, families, strict=True)]
        points = sum(line.size for line in own)
        scores: list[FloatArray] = []
        names: list[tuple[int, ...]] = []
        for total, sets in zip(squares, families, strict=True):
            price = _COEFFICIENT * sets.shape[1] + _COST * cost[sets].sum(axis=1)
            possible = total <= points * _MOST**2
            score = distinct * np.log(total / points + _EXPECTED**2) + price
            scores.append(np.where(possible, score, np.inf))
            names.extend(tuple(own_set) for own_set in sets.tolist())
        everything = np.concatenate(scores, axis=1)
        order = np.argsort(everything, axis=1, kind="stable")[:, : _MOST_SETS.get(self.parameters, 1)]
        for row, path in enumerate(paths.tolist()):
            result[path] = [names[i] for i in order[row].tolist() if np.isfinite(everything[row, i])]
            open_paths[path] = bool(result[path])
        return result

    # --- combinations ---------------------------------------------------------------------------------------

    def _combined(self, path: int, sets: list[list[tuple[int, ...]]]) -> Pool | None:
        """Return the best sums of products of the sets of each parameter; None if none follows the values."""
        by_width: dict[int, list[Specification]] = {}
        for choice in product(*sets):
            padded = [np.array([*own, -1], dtype=np.int16) for own in choice]
            for width, places in _covering(tuple(map(len, choice))):
                terms = np.stack([own[places[:, :, i]] for i, own in enumerate(padded)], axis=2)
                by_width.setdefault(width, []).append(terms)
        values = self.values[path : path + 1]
        pools = []
        for hypotheses in by_width.values():
            specification = np.concatenate(hypotheses)[None]
            for constant in (True, False):
                fitted = fit_hypotheses(self.tables, specification, values, np.ones_like(values), False, constant)
                pools.append(to_pool(fitted, self._scores(fitted, values, constant), _POOL))
        if not pools:
            return None
        best = merge(pools, _POOL)
        return best if np.isfinite(best.score[0, 0]) else None

    def _scores(self, fitted: Fitted, values: FloatArray, constant: bool) -> FloatArray:
        """Return -2 log of the marginal likelihood (1, H), infinite for what the values do not support."""
        design = self.tables.design(fitted.specification)
        width = design.shape[2] + int(constant)
        part = np.abs(fitted.coefficients[:, :, 1:, None] * design).max(axis=3)
        order = self.tables.order(fitted.specification)
        lead = np.take_along_axis(fitted.coefficients[:, :, 1:], order.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
        number = self._observations(values)
        tells = np.log(max(np.ptp(values), 1.0) / _MOST)
        credible = (fitted.worst <= _MOST) & (part >= _LEAST_TERM * _MOST).all(axis=2) & (lead > 0)
        credible &= tells * (number - width) >= _LEAST_EVIDENCE
        scores = np.full(fitted.residual.shape, np.inf)
        rows = np.flatnonzero(credible[0])
        if not rows.size:
            return scores
        columns, coefficients = design[0, rows], fitted.coefficients[0, rows, 1:]
        if constant:
            columns = np.concatenate([np.ones_like(columns[:, :1]), columns], axis=1)
            coefficients = fitted.coefficients[0, rows]
        triangle = np.linalg.qr(columns.transpose(0, 2, 1), mode="r")
        sizes = np.abs(np.einsum("hkk->hk", triangle)) * np.abs(coefficients) / _EXPECTED
        squares = fitted.residual[0, rows] ** 2
        scores[0, rows] = (
            number * np.log(squares + _EXPECTED**2)
            + 2.0 * np.log(np.maximum(sizes, 1.0)).sum(axis=1)
            + _COEFFICIENT * width
            + _NEGATIVE * (coefficients < 0).sum(axis=1)
            + _COST * self.tables.complexity(fitted.specification[0, rows])
        )
        return scores

    def _observations(self, values: FloatArray) -> float:
        """Return how many independent observations there are: deviations may be alike along all lines."""
        result = 1.0
        for own, distinct in zip(self.lines, self.distinct, strict=True):
            result += (distinct - 1) * any(np.ptp(values[0, line]) > _MOST for line in own)
        return max(result, 2.0)


@lru_cache(maxsize=32)
def _families(atoms: int, most: int) -> tuple[NDArray[np.int64], ...]:
    """Return sets of no atom, of one and so on, each an array (sets, size)."""
    families = []
    for size in range(max(most, -1) + 1):
        sets = list(combinations(range(atoms), size))
        families.append(np.array(sets, dtype=np.int64).reshape(len(sets), size))
    return tuple(families)


@lru_cache(maxsize=256)
def _covering(sizes: tuple[int, ...]) -> list[tuple[int, NDArray[np.int64]]]:
    """Return the sums of up to three products that have every atom of sets of these sizes: (products, places).

    places: (H, products, m) in the sets, -1 where a product has no atom of the parameter.
    """
    products = [term for term in product(*(range(-1, size) for size in sizes)) if any(place >= 0 for place in term)]
    wanted = {(parameter, place) for parameter, size in enumerate(sizes) for place in range(size)}
    found = []
    for width in range(1, _MOST_PRODUCTS + 1):
        sums = [
            subset
            for subset in combinations(products, width)
            if {(i, place) for term in subset for i, place in enumerate(term) if place >= 0} == wanted
        ]
        if sums:
            found.append((width, np.array(sums, dtype=np.int64)))
    return found


def _deviations(table: FloatArray, sets: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Return the squared deviations (N, S) of values (N, L, c) from the best fits of a constant and atoms (S, k).

    Residuals are taken as products with what is orthogonal to the columns, to the last digits.
    """
    points = values.shape[2]
    result = np.empty((len(values), len(sets)))
    for start in range(0, len(sets), _CHUNK):
        part = sets[start : start + _CHUNK]
        columns = np.concatenate([np.ones((len(part), 1, points)), table[part]], axis=1).transpose(0, 2, 1)
        basis, _ = np.linalg.qr(columns, mode="complete")
        rest = basis[:, :, part.shape[1] + 1 :].transpose(1, 0, 2)
        squares = (values.reshape(-1, points) @ rest.reshape(points, -1)) ** 2
        squares = squares.reshape(len(values), values.shape[1], len(part), rest.shape[2])
        result[:, start : start + _CHUNK] = squares.sum(axis=(1, 3))
    return result
