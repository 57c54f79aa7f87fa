# SPDX-License-Identifier: Apache-2.0
"""Propose models of counts that no function reproduces: sums of products of the likeliest functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    FINALISTS,
    INEXACT,
    INEXACT_PAIR_COMPLEXITY,
    INEXACT_PAIRS_KEPT,
    INEXACT_PURE_TERMS,
    INEXACT_SIMPLE_COMPLEXITY,
    INEXACT_TERMS,
)
from ..criterion.criterion import Candidates
from ..criterion.deviating import Deviating, Numbers
from ..data.lines import lines, same_places
from ..fit.shortlist import lowest, pure_squares, set_squares
from ..fit.subsets import all_subsets, extended, gram, solve_both, solve_shared
from ..hypotheses.library import SHARED
from ..hypotheses.tables import Specification

_Flags = NDArray[np.bool_]


class InexactSums:
    """Proposes hypotheses for the counts of `criterion` at `points` (C, m), with lines along each parameter."""

    def __init__(self, points: FloatArray, criterion: Deviating) -> None:
        self.points, self.tables, self.criterion = points, criterion.tables, criterion
        self.values, self.weights, self.distinct = criterion.values, criterion.weights, criterion.distinct
        self.parameters = points.shape[1]

    def propose(self) -> list[Candidates]:
        """Return hypotheses of low error and complexity, the constant among them."""
        paths = np.arange(len(self.values))
        constant = Candidates(paths, np.empty((paths.size, 0, self.parameters), dtype=np.int16), True)
        terms = [self._likely_terms(parameter) for parameter in range(self.parameters)]
        found = [constant, *self._best_subsets(terms), *self._simple_sums(), *self._pure_products()]
        return [_each_once(alike) for alike in _alike(found)]

    def _likely_terms(self, parameter: int) -> Specification:
        """Return the terms of the likeliest functions of one parameter, (N, terms), -1 for none.

        Along a line in one parameter, the other factors are constant, so every line has separate coefficients.
        """
        found_lines = lines(self.points, parameter)
        cost = self.tables.cost[parameter][:-1]
        order = self.tables.order_of(parameter)
        shared = [term.exponents in SHARED for term in self.tables.terms[parameter]]
        natural = np.flatnonzero((cost <= INEXACT_PAIR_COMPLEXITY) | shared)
        paths = self.values.shape[0]
        sets = [np.arange(len(cost))[:, None], np.array(list(combinations(natural.tolist(), 2))).reshape(-1, 2)]
        squares = [np.zeros((paths, len(group))) for group in sets]
        negative = [np.zeros((paths, len(group))) for group in sets]
        for alike in same_places(found_lines, self.points[:, parameter]):
            terms = self.tables.columns[parameter][:-1, alike[0]]
            found = set_squares(terms, natural, self.values[:, alike], self.weights[:, alike])
            for index, (error, is_below) in enumerate(found):
                squares[index] += error
                negative[index] += is_below * (len(alike) / len(found_lines))
        points = sum(line.size for line in found_lines)
        distinct = self.distinct[parameter]
        scores = []
        for group, error, below in zip(sets, squares, negative, strict=True):
            width = group.shape[1]
            penalty = INEXACT.coefficient * width + INEXACT.complexity * cost[group].sum(axis=1)
            penalty += INEXACT.growth * order[group].max(axis=1, initial=0.0)
            penalty = penalty + INEXACT.negative * width * below
            numbers = [*(Numbers(0, 0) for _ in range(parameter)), Numbers(width, width + 1)]
            scores.append(self.criterion.posterior(error / points, distinct, penalty, numbers))
        padded = np.concatenate([np.repeat(sets[0], 2, axis=1), sets[1]])
        everything = np.concatenate(scores, axis=1)
        few = np.sort(lowest(everything, 8), axis=1)
        order_of_few = np.argsort(np.take_along_axis(everything, few, axis=1), axis=1, kind="stable")
        best = padded[np.take_along_axis(few, order_of_few, axis=1)]
        return _first_distinct(best.reshape(paths, -1), INEXACT_TERMS.get(self.parameters, 1))

    def _simple_sums(self) -> list[Candidates]:
        """Return the best sums of two and of three terms of one parameter that loops and trees have.

        The likeliest sums with a constant need not contain any two of them: n² + n·log2(n) - n is far from n² +
        n·log2(n).
        """
        if self.parameters > 1 or self.distinct[0] < 5:
            return []
        table = self.tables.columns[0]  # the last one is 1
        cost, order = self.tables.cost[0], self.tables.order_of(0)
        simple = np.flatnonzero(cost[:-1] <= INEXACT_SIMPLE_COMPLEXITY)
        total = ((self.weights * self.values) ** 2).sum(axis=1, keepdims=True)
        result = []
        for width, constant in ((2, False), (2, True), (3, False), (3, True)):
            subsets = simple[all_subsets(simple.size, width) - 1]
            ones = np.full((len(subsets), int(constant)), len(table) - 1)
            columns = np.concatenate([subsets, ones], axis=1)
            coefficients, explained = solve_shared(table, columns, self.values, self.weights)
            error = np.maximum(total - explained, 0.0) / self.values.shape[1]
            penalty = INEXACT.coefficient * columns.shape[1] + INEXACT.complexity * cost[subsets].sum(axis=1)
            penalty += INEXACT.growth * order[subsets].max(axis=1)
            scores = penalty + INEXACT.negative * (coefficients < 0).sum(axis=2)
            numbers = [Numbers(width, width + constant)]
            scores = self.criterion.posterior(error, self.criterion.observations[:, None], scores, numbers)
            best = lowest(scores, FINALISTS)
            path = np.repeat(np.arange(len(best)), best.shape[1])
            result.append(Candidates(path, _in_order(subsets[best.ravel()][:, :, None].astype(np.int16)), constant))
        return result

    def _pure_products(self) -> list[Candidates]:
        """Return products of one function of each of several parameters, without further terms.

        With a separate constant for each line, almost any function fits three values, mostly with constants that no sum
        has. The function to which the values are proportional may then not be among the likeliest terms.
        """
        if self.parameters == 1:
            return []  # all single functions are among the sums
        found = [self._proportional_terms(parameter) for parameter in range(self.parameters)]
        specification, slots = _products(found)
        paths = len(self.values)
        number = len(slots) - 1
        path = np.repeat(np.arange(paths), number)
        return [Candidates(path, specification[:, 1:].reshape(paths * number, 1, self.parameters), False)]

    def _proportional_terms(self, parameter: int) -> Specification:
        """Return for each call path the terms to which values along lines are most nearly proportional, (N, k)."""
        found_lines = lines(self.points, parameter)
        cost, order = self.tables.cost[parameter][:-1], self.tables.order_of(parameter)
        squares = np.zeros((len(self.values), len(cost)))
        for alike in same_places(found_lines, self.points[:, parameter]):
            terms = self.tables.columns[parameter][:-1, alike[0]]
            squares += pure_squares(terms, self.values[:, alike], self.weights[:, alike])
        penalty = INEXACT.complexity * cost + INEXACT.growth * order
        points = sum(line.size for line in found_lines)
        scores = self.criterion.posterior(squares / points, self.distinct[parameter], penalty)
        best: Specification = np.sort(lowest(scores, INEXACT_PURE_TERMS), axis=1).astype(np.int16)
        return best

    def _best_subsets(self, terms: list[Specification]) -> list[Candidates]:
        """Return the best sums of products of `terms` (N, k) of each parameter, with and without a constant."""
        specification, slots = _products(terms)
        paths, number = specification.shape[0], len(slots) - 1
        matrix, right, total = gram(self.tables.design(specification), self.values, self.weights)
        penalty = INEXACT.complexity * self.tables.complexity(specification[:, :, None])
        penalty[:, 1:][(specification[:, 1:] < 0).all(axis=2)] = np.inf  # there is no such product
        order = self.tables.order(specification)
        found: list[tuple[bool, NDArray[np.int64], FloatArray]] = []  # constant, products (N, S, k), scores (N, S)
        pairs = all_subsets(number, 2)
        best_pairs = np.empty((paths, 0), dtype=np.int64)
        for width in range(1, min(number, 3, self.values.shape[1] - 2) + 1):
            subsets = all_subsets(number, width) if width < 3 else extended(pairs, number)
            places = np.arange(len(subsets))[None]
            if width == 3:
                places = (best_pairs[:, :, None] * number + np.arange(number)).reshape(paths, -1)
            chosen = subsets[places]
            of_terms = _twice(slots[subsets])[places] + sum(_gathered(penalty, chosen[:, :, i]) for i in range(width))
            growth = np.maximum.reduce([_gathered(order, chosen[:, :, i]) for i in range(width)])
            for constant, (coefficients, explained) in zip(
                (True, False), solve_both(matrix, right, chosen), strict=True
            ):
                error = np.maximum(total[:, None] - explained, 0.0) / self.values.shape[1]
                lead = np.maximum(growth, 0.0) if constant else growth
                negative = sum((coefficient < 0).astype(np.float64) for coefficient in coefficients)
                scores = of_terms + INEXACT.coefficient * len(coefficients) + INEXACT.negative * negative
                of_sums = self.criterion.numbers(slots[subsets], constant)
                numbers = [Numbers(*(np.asarray(number)[places] for number in own)) for own in of_sums]
                scores = self.criterion.posterior(
                    error, self.criterion.observations[:, None], scores + INEXACT.growth * lead, numbers
                )
                if width == 2 and constant:
                    best_pairs = lowest(scores, INEXACT_PAIRS_KEPT)
                best = lowest(scores, FINALISTS)
                kept = chosen[np.arange(paths)[:, None], best] if width == 3 else subsets[best]
                found.append((constant, kept, np.take_along_axis(scores, best, axis=1)))
        result = []
        for constant, chosen, scores in found:
            path, place = np.nonzero(np.isfinite(scores))
            result.append(Candidates(path, _in_order(specification[path[:, None], chosen[path, place]]), constant))
        return result


def _alike(candidates: Sequence[Candidates]) -> list[Candidates]:
    """Return the candidates, concatenated by the number of products and by whether they have a constant."""
    forms: dict[tuple[int, bool], list[Candidates]] = {}
    for own in candidates:
        forms.setdefault((own.specification.shape[1], own.constant), []).append(own)
    return [
        Candidates(
            np.concatenate([own.path for own in some]), np.concatenate([s.specification for s in some]), constant
        )
        for (_, constant), some in forms.items()
    ]


def _each_once(candidates: Candidates) -> Candidates:
    """Return the candidates without duplicates, whose posterior weight would count twice."""
    keys = np.column_stack([candidates.path, candidates.specification.reshape(len(candidates.path), -1)])
    order = np.lexsort(keys.T)
    ordered = keys[order]
    first = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)]) if order.size else np.empty(0, bool)
    kept = np.sort(order[first])
    return Candidates(candidates.path[kept], candidates.specification[kept], candidates.constant)


def _in_order(specification: Specification) -> Specification:
    """Return sums (M, K, m) with sorted products, so that equal sums compare equal."""
    keys = np.zeros(specification.shape[:2], dtype=np.int64)
    for functions in np.moveaxis(specification, 2, 0):
        keys = keys * (specification.max(initial=0) + 2) + functions + 1
    result: Specification = np.take_along_axis(
        specification, np.argsort(keys, axis=1, kind="stable")[..., None], axis=1
    )
    return result


def _twice(slots: NDArray[np.int64]) -> FloatArray:
    """Return inf for sums (..., k, m) that contain a product twice, otherwise 0."""
    alike = [(slots[..., i, :] == slots[..., j, :]).all(axis=-1) for i, j in combinations(range(slots.shape[-2]), 2)]
    return np.where(np.any(alike, axis=0), np.inf, 0.0) if alike else np.zeros(slots.shape[:-2])


def _first_distinct(terms: NDArray[np.int64], number: int) -> Specification:
    """Return the first `number` different terms of each row of (N, K), -1 where there are fewer."""
    earlier = np.zeros(terms.shape, dtype=bool)
    for column in range(1, terms.shape[1]):
        earlier[:, column] = (terms[:, :column] == terms[:, column, None]).any(axis=1)
    order = np.argsort(earlier, axis=1, kind="stable")[:, :number]
    chosen = np.take_along_axis(terms, order, axis=1)
    result: Specification = np.where(np.take_along_axis(earlier, order, axis=1), -1, chosen).astype(np.int16)
    return result


def _products(terms: list[Specification]) -> tuple[Specification, NDArray[np.int64]]:
    """Return all products of at most one term per parameter, (N, Q, m), and their slots, (Q, m).

    terms: for each parameter, (N, k). A slot is the index of a term of a parameter in a product. The empty product is
    the first. A product is all -1 if one of its terms is missing.
    """
    slots = np.array(list(product(*(range(-1, chosen.shape[1]) for chosen in terms))), dtype=np.int64)
    result = np.stack(
        [np.pad(chosen, ((0, 0), (0, 1)), constant_values=-1)[:, slots[:, i]] for i, chosen in enumerate(terms)], 2
    )
    result[((result < 0) & (slots >= 0)).any(axis=2)] = -1
    return result, slots


def _gathered(table: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
    """Return some columns of each row of `table` (N, Q), (N, S). columns: (N, S), or (1, S) if equal for all rows."""
    return table.take(columns[0], axis=1) if len(columns) == 1 else np.take_along_axis(table, columns, axis=1)
