# SPDX-License-Identifier: Apache-2.0
"""Search models of noisy metrics: from functions of one parameter to their combinations.

Along a line of points in one parameter, every sum of products of one-parameter functions is c0 + c1·g(x). Lines
therefore show which functions g to consider for each parameter. Then forms that combine these functions are tried at
all points together. All call paths are handled as one batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray, IntArray
from ..calibration import (
    BATCH_NUMBERS,
    NEAR,
    NOISY_FACTOR,
    NOISY_LINES,
    NOISY_POOL,
    NOISY_SWEEPS,
    NOISY_TERMS,
    USUAL,
    Depth,
)
from ..criterion.criterion import Candidates, Rows, choose
from ..criterion.evidence import Evidence
from ..data.lines import lines, same_places
from ..fit.scattered import varying_errors
from ..fit.shortlist import combinations_of, line_squares, lowest, product_grid, sweep_errors
from ..fit.subsets import gram, solve_both
from ..fit.weights import count_weights, model_weights
from ..hypotheses.pool import Pool, merge, replaced, spread, widened
from ..hypotheses.tables import Specification


@dataclass(frozen=True, eq=False)
class _Likely:
    """Hypotheses (N, H, K, m); near, best: which may have a posterior weight, and which is the best, (N, H)."""

    specification: Specification
    near: NDArray[np.bool_]
    best: NDArray[np.bool_]


def _likely(lists: list[tuple[Specification, FloatArray]]) -> _Likely:
    """Join short lists of hypotheses for the same call paths, each with rough scores (N, H)."""
    rough = np.concatenate([scores for _, scores in lists], axis=1)
    least = rough.min(axis=1, keepdims=True, initial=np.inf)
    near, best = rough <= least + NEAR, (rough == least) & np.isfinite(rough)
    return _Likely(widened([specification for specification, _ in lists], 2), near, best)


class Search:
    """One batch of call paths measured at the same points (C, m), and the criterion, whose weights it may improve."""

    def __init__(self, points: FloatArray, criterion: Evidence, reweights: bool = True, depth: Depth = USUAL) -> None:
        """Use the values of `criterion`; reweights: whether to compute weights from the likeliest model."""
        self.points, self.criterion, self.reweights, self.depth = points, criterion, reweights, depth
        self.tables, self.values = criterion.tables, criterion.values
        self.penalties, self.growth_penalty = criterion.penalties, criterion.growth_penalty
        self.nonnegative = criterion.nonnegative
        self.parameters = points.shape[1]

    @cached_property
    def lines(self) -> list[list[IntArray]]:
        """The lines of points along each parameter."""
        return [lines(self.points, parameter, most=NOISY_LINES) for parameter in range(self.parameters)]

    def run(self) -> Pool:
        """Return the best hypotheses of every call path."""
        if self.parameters == 1:
            likely, factors = self._functions(), np.empty((0, 0), dtype=np.int16)
        else:
            candidates, factors = self._candidates()
            likely, starts = self._combine(candidates)
        self._reweight(likely)
        paths = np.arange(len(self.values))
        constant = Candidates(paths, np.empty((paths.size, 0, self.parameters), dtype=np.int16), True)
        path, number = np.nonzero(likely.near)
        near = Candidates(path, likely.specification[path, number], True)
        best = choose([constant, near], self.criterion, NOISY_POOL)
        if self.parameters == 1:
            return self._without_constant(merge([best, self._alone()], NOISY_POOL) if len(self.points) < 3 else best)
        if starts.shape[1]:
            return self._without_constant(merge([best, self._from(starts)], NOISY_POOL))
        best = self._swept(best, 1)
        nested = ((best.specification[:, 0] >= 0).sum(axis=1) > 1).any(axis=1)
        if nested.any():
            part = self._part(nested)
            united = part._united(best.rows(nested), factors[nested])
            best = merge([best, spread(part._swept(united, NOISY_SWEEPS), nested)], NOISY_POOL)
        return self._without_constant(best)

    def _from(self, starts: Specification) -> Pool:
        """Return the hypotheses (N, F, K, m) of different forms after a change of terms, each form separately."""
        paths, number = starts.shape[:2]
        part = self._part(np.repeat(np.arange(paths), number))
        alone = starts.reshape(paths * number, 1, *starts.shape[2:])
        pool = part._swept(part._precise(alone, np.ones(alone.shape[:2], dtype=bool)), self.depth.sweeps)
        return merge(
            [pool.rows((slice(start, None, number), slice(0, self.depth.finalists))) for start in range(number)],
            NOISY_POOL,
        )

    def _swept(self, pool: Pool, rounds: int) -> Pool:
        """Return the pool after changes of the terms of each parameter in the best hypotheses."""
        rows = np.ones(len(self.values), dtype=bool)
        for _ in range(rounds):
            before = pool.specification[rows, 0]
            part, found = self._part(rows), pool.rows(rows)
            for parameter in range(self.parameters):
                found = part._sweep(found, parameter)
            better = found.specification[:, 0] != before
            pool = found if rows.all() else replaced(pool, rows, found)
            rows[rows] = better.any(axis=(1, 2))
            if not rows.any():
                break
        return pool

    def _united(self, pool: Pool, factors: NDArray[np.int16]) -> Pool:
        """Return the product of the likeliest `factors` (N, m) of all parameters in the best hypotheses.

        If the best hypothesis is a·b + a instead of a·b, no change of a single term leads to a·b.
        """
        present = (pool.specification[:, 0] >= 0).any(axis=1)
        united = np.where(present, factors, -1).astype(np.int16)[:, None, None]
        return self._precise(united, np.ones(united.shape[:2], dtype=bool))

    def _reweight(self, likely: _Likely) -> None:
        """Compute the weights from the likeliest model of each call path."""
        if not (self.reweights and likely.best.any()):
            return
        first = self._precise(likely.specification, likely.best, 1)
        values = np.einsum("nkc,nk->nc", self.tables.design(first.specification[:, 0]), first.coefficients[:, 0, 1:])
        values += first.coefficients[:, 0, :1]
        found = np.isfinite(first.score[:, 0])
        chosen = (first.coefficients[:, 0] != 0).sum(axis=1) + (first.specification[:, 0] >= 0).sum(axis=(1, 2))
        weights = model_weights(self.values, values) * self._precision(values, chosen)
        self.criterion.weights = np.where(found[:, None], weights, self.criterion.weights)

    def _precision(self, fitted: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
        """Return factors of weights (N, C) for the repetitions of each point.

        fitted: (N, C) a model of the values with `chosen` (N,) coefficients and exponents, whose residuals show by how
        much points deviate beyond the noise of repetitions.
        """
        counts = self.criterion.counts
        if (counts == counts[:, :1]).all():
            return np.ones_like(counts)
        single = self.criterion.noise**2 * counts.mean(axis=1)
        squares = (((self.values - fitted) * model_weights(self.values, fitted)) ** 2).sum(axis=1)
        explained = single * (1.0 / np.maximum(counts, 1.0)).mean(axis=1)
        between = np.maximum(squares / np.maximum(counts.shape[1] - chosen, 1) - explained, 0.0)
        return count_weights(counts, single, between)

    def _functions(self) -> _Likely:
        """Return the likeliest functions of the only parameter."""
        paths, points = self.values.shape
        number = len(self.tables.terms[0])
        if points <= 2:  # nothing to rank by
            specification = np.broadcast_to(np.arange(number, dtype=np.int16)[:, None, None], (paths, number, 1, 1))
            return _likely([(specification, np.zeros((paths, number)))])
        one, present = np.ones((paths, 1, points)), np.ones(1, dtype=bool)
        both = sweep_errors(one, present, self.tables.columns[0][:-1], self.values, self.criterion.weights)
        total = ((self.criterion.weights * self.values) ** 2).sum(axis=1)
        penalty = self.penalties.complexity * self.tables.cost[0][:-1]
        terms = np.arange(number, dtype=np.int16)[:, None, None]
        rough = self.criterion.rough(*both, total, penalty + self.criterion.effects(terms))
        best = lowest(rough, NOISY_POOL)
        return _likely([(terms[best], np.take_along_axis(rough, best, axis=1))])

    def _alone(self) -> Pool:
        """Return the best functions of the only parameter without a constant."""
        paths, number = len(self.values), len(self.tables.terms[0])
        terms = np.tile(np.arange(number, dtype=np.int16), paths)[:, None, None]
        return choose([Candidates(np.repeat(np.arange(paths), number), terms, False)], self.criterion, NOISY_POOL)

    def _without_constant(self, pool: Pool) -> Pool:
        """Add the best hypotheses without their constant, which may be a coincidence."""
        rows = np.flatnonzero((pool.specification[:, 0] >= 0).any(axis=(1, 2)) & (pool.coefficients[:, 0, 0] != 0))
        alone = choose([Candidates(rows, pool.specification[rows, 0], False)], self.criterion, 1)
        return merge([pool, alone], NOISY_POOL)

    def _candidates(self) -> tuple[list[Specification], Specification]:
        """Return the likeliest terms of each parameter, best first, (N, k); and the best pure products, (N, m)."""
        found, factors = [], []
        for parameter in range(self.parameters):
            found_lines = self.lines[parameter]
            errors = pure = np.zeros(1)
            if not found_lines:
                errors, pure = varying_errors(self.points, self.tables.columns[parameter][:-1], self.values, parameter)
            for group in same_places(found_lines, self.points[:, parameter]):
                terms = self.tables.columns[parameter][:-1, group[0]]
                with_constant, without = line_squares(terms, self.values[:, group], self.nonnegative)
                errors, pure = errors + with_constant, pure + without
            found.append(np.argsort(errors, axis=1, kind="stable").astype(np.int16))
            factors.append(pure.argmin(axis=1).astype(np.int16))
        return found, np.stack(factors, axis=1)

    def _combine(self, candidates: list[Specification]) -> tuple[_Likely, Specification]:
        """Return the likeliest hypotheses of the first candidates of each parameter, some of each number of products.

        Also returned: if points form no lines, the best hypotheses of different forms (N, F, K, m), otherwise none.
        """
        paths = self.values.shape[0]
        depth = min([NOISY_TERMS.get(self.parameters, 1), *(terms.shape[1] for terms in candidates)])
        grid = product_grid(self.parameters, depth)
        specification = np.full((paths, len(grid), self.parameters), -1, dtype=np.int16)
        for parameter, terms in enumerate(candidates):
            specification[:, :, parameter] = np.where(grid[:, parameter] < 0, -1, terms[:, grid[:, parameter]])
        matrix, right, total = self._gram(candidates, depth)
        own_penalty = self.penalties.complexity * self.tables.complexity(specification[:, :, None])
        own_penalty += NOISY_FACTOR * (specification >= 0).sum(axis=2)
        if self.growth_penalty:
            own_penalty += self.growth_penalty * self.criterion.growth(specification)
        found, by_form = [(specification[:, :0, None], total[:, None][:, :0])], []
        for width in range(1, self.parameters + 1):
            subsets = combinations_of(self.parameters, depth, width)
            if width + 1 >= self.values.shape[1] or not len(subsets):
                continue
            both = solve_both(matrix, right, subsets[None])
            effects = (grid[subsets] >= 0).any(axis=1).sum(axis=1)
            penalty = sum(
                (own_penalty.take(column, axis=1) for column in subsets.T), self.penalties.parameter * effects
            )
            rough = self.criterion.rough(*both, total, penalty)
            best = lowest(rough, self.depth.finalists)
            chosen = specification[np.arange(paths)[:, None, None], subsets[best]]
            found.append((chosen, np.take_along_axis(rough, best, axis=1)))
            if not all(self.lines):  # no points form a line along some parameter
                patterns = (grid[subsets] >= 0).reshape(len(subsets), -1)
                _, form = np.unique(patterns, axis=0, return_inverse=True)
                for number in range(int(form.max()) + 1):
                    alike = np.flatnonzero(form.reshape(-1) == number)
                    place = alike[rough[:, alike].argmin(axis=1)]
                    by_form.append(
                        (specification[np.arange(paths)[:, None], subsets[place]], rough[np.arange(paths), place])
                    )
        return _likely(found), _of_forms(by_form, self.depth.forms) if by_form else specification[:, :0, None]

    def _gram(self, candidates: list[Specification], depth: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return subsets.gram of the products of product_grid, a few call paths at a time for the cache."""
        paths, number = len(self.values), (depth + 1) ** self.parameters
        matrix, right, total = np.empty((paths, number, number)), np.empty((paths, number)), np.empty(paths)
        step = max(1, BATCH_NUMBERS // (number * self.values.shape[1]))
        first = [np.pad(terms[:, :depth], ((0, 0), (1, 0)), constant_values=-1) for terms in candidates]
        for start in range(0, paths, step):
            part = slice(start, start + step)
            columns = np.ones((len(self.values[part]), 1, self.values.shape[1]))
            for table, terms in zip(self.tables.columns, first, strict=True):
                own = table[terms[part]]
                columns = (columns[:, :, None] * own[:, None]).reshape(len(columns), -1, columns.shape[2])
            matrix[part], right[part], total[part] = gram(columns, self.values[part], self.criterion.weights[part])
        return matrix, right, total

    def _precise(self, specification: Specification, wanted: NDArray[np.bool_], size: int = NOISY_POOL) -> Pool:
        """Return the `size` best of the `wanted` (N, H) hypotheses (N, H, K, m)."""
        path, number = np.nonzero(wanted)
        candidates = Candidates(path, specification[path, number], True)
        return choose([candidates], self.criterion, min(size, specification.shape[1]))

    def _part(self, rows: Rows) -> Search:
        return Search(self.points, self.criterion.part(rows), False, self.depth)

    def _sweep(self, pool: Pool, parameter: int) -> Pool:
        """Try all terms of one parameter in the best hypothesis of each call path, with unchanged other terms."""
        best = pool.specification[:, 0]
        present = best[:, :, parameter] >= 0
        with_it, widths = present.sum(axis=1), (best >= 0).any(axis=2).sum(axis=1)
        ordered = np.take_along_axis(best, np.argsort(~present, axis=1, kind="stable")[:, :, None], axis=1)
        ordered[:, :, parameter] = -1
        terms = self.tables.columns[parameter][:-1]
        number = min(self.depth.finalists, len(terms))
        trial = np.repeat(best[:, None], number, axis=1)
        wanted = np.zeros(trial.shape[:2], dtype=bool)
        keys = with_it * (present.shape[1] + 1) + widths
        for key in np.unique(keys[with_it > 0]).tolist():
            rows = np.flatnonzero(keys == key)
            many, width = divmod(key, present.shape[1] + 1)
            part = self.criterion.part(rows)
            base = self.tables.design(ordered[rows, :width])
            both = sweep_errors(base, np.arange(width) < many, terms, part.values, part.weights)
            total = ((part.weights * part.values) ** 2).sum(axis=1)
            penalty = self.penalties.complexity * many * self.tables.cost[parameter][:-1]
            if self.growth_penalty:
                penalty = penalty + 0.5 * self.growth_penalty * many * np.abs(self.tables.order_of(parameter))
            rough = part.rough(*both, total, penalty)
            chosen = lowest(rough, number)
            rough = np.take_along_axis(rough, chosen, axis=1)
            trial[rows, :, :, parameter] = np.where(present[rows, None], chosen[:, :, None], -1)
            wanted[rows] = rough <= rough.min(axis=1, keepdims=True) + NEAR
        wanted &= ~_known(trial, pool.specification)
        if not wanted.any():
            return pool
        return merge([pool, self._precise(trial, wanted)], NOISY_POOL)


def _of_forms(lists: list[tuple[Specification, FloatArray]], number: int) -> Specification:
    """Return the `number` likeliest hypotheses, (N, F, K, m). lists: hypotheses (N, K, m) with rough scores (N,)."""
    rough = np.stack([scores for _, scores in lists], axis=1)
    width = max(form.shape[1] for form, _ in lists)
    padded = [np.pad(form, ((0, 0), (0, width - form.shape[1]), (0, 0)), constant_values=-1) for form, _ in lists]
    best = lowest(rough, number)
    result: Specification = np.stack(padded, axis=1)[np.arange(len(rough))[:, None], best]
    return result


def _known(trial: Specification, pool: Specification) -> NDArray[np.bool_]:
    """Return which hypotheses of `trial` (N, H, K, m) are in `pool` (N, P, K, m) already."""
    same: NDArray[np.bool_] = (trial[:, :, None] == pool[:, None]).all(axis=(3, 4)).any(axis=2)
    return same
