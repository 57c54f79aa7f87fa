"""Search for models of effort metrics that are no exact functions: data-dependent work, n/p rounded, and the like.

What is believed is the function of the highest posterior under these assumptions, made before any data are seen:

1. Deviations are relative to the value, and partly systematic: the same along all lines of points in a parameter.
   So a grid tells no more than its distinct values of the parameters that have an effect, and deviations below
   _DEVIATION (as certain as _CERTAINTY observations) are no evidence for anything.
2. Exponents that loops and trees have are likelier than others (library.make_atom); every coefficient has its
   price, a negative one more, and more again where a parameter has few values (the small-sample term of AICc,
   Hurvich and Tsai, Biometrika 76, 1989); the order of growth has a price, so that n² must explain more than n does.
3. A term that is there shows: at some point it has a share of the value that grows with its order, and is well
   above the deviations. So nothing is extrapolated that the measured points do not show.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..criterion.evidence import COST_PRICE
from ..data.lines import lines, same_places
from ..fit.fitter import fit_hypotheses
from ..fit.shortlist import lowest, set_squares
from ..fit.subsets import all_subsets, extended, gram, solve_both
from ..hypotheses.pool import Fitted, Pool, merge, nothing, ranked, to_pool
from ..hypotheses.tables import Specification, Tables
from .cost import Search

_POOL = 4
# Sums of three products are tried from so many of the best sums of two.
_PAIRS_KEPT = 6
# Hypotheses whose rough scores are so near to the best one are fitted precisely.
_NEAR = 25.0
# Hypotheses per call path and kind of subset that are fitted precisely.
_FINALISTS = 4
# Atoms up to this cost (library.make_atom) take part in sums of two; sums of two get so many atoms per parameter.
_PAIR_COST = 1.0
_MOST_ATOMS = {1: 6, 2: 3, 3: 2}
# Prices in units of twice the logarithm of the likelihood: of a coefficient, a negative one, an order of growth.
_COEFFICIENT, _NEGATIVE, _GROWTH = 5.0, 5.0, 2.0
# Price of unusual exponents.
_COST_PRICE = COST_PRICE["effort"]
# What is known of the deviations beforehand.
_DEVIATION, _CERTAINTY = 0.003, 2.0
# A parameter has an effect if values differ by more than this along a line.
_EFFECT = 0.01
# A term must be at least this part of some value, times (1 + its steepest exponent)², and so many deviations.
_LEAST_SHARE, _MOST_SHARE, _LEAST_DEVIATIONS = 0.025, 0.3, 2.0
# ... among the values that are at least this part of the largest one.
_LEAST_WORK = 0.01

_Flags = NDArray[np.bool_]


def effort_weights(values: FloatArray) -> FloatArray:
    """Return weights of counts (N, C): relative errors, but counts next to nothing are rounded numbers."""
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    whole = (values == np.round(values)).all(axis=1, keepdims=True)
    floor = np.where(whole, np.maximum(np.minimum(60.0, 0.05 * top), 1e-3 * top), 1e-3 * top)
    weights: FloatArray = 1.0 / np.hypot(size, np.where(top > 0, floor, 1.0))
    return weights


class InexactSearch:
    """One batch of call paths of an effort metric, measured at the same points: values (N, C)."""

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        """Take `values` at `points` (C, m), where `tables` holds the atoms."""
        self.points, self.tables, self.values = points, tables, values
        self.parameters = points.shape[1]
        self.weights = effort_weights(values)
        self.distinct = [np.unique(points[:, parameter]).size for parameter in range(self.parameters)]
        self.observations = self._observations()

    def run(self) -> Pool:
        """Return models of the lowest error and complexity."""
        empty = np.empty((1, 0, self.parameters), dtype=np.int16)
        constant = fit_hypotheses(self.tables, empty, self.values, self.weights, False)
        pools = [to_pool(constant, self._scores(constant), 1)]
        atoms = [self._likely_atoms(parameter) for parameter in range(self.parameters)]
        if all(own is not None for own in atoms):
            pools.append(self._best_subsets([own for own in atoms if own is not None]))
        else:  # scattered points
            nothing_known = np.zeros(len(self.values))
            general = Search(
                self.points,
                self.tables,
                self.values,
                nothing_known,
                nothing_known,
                True,
                weights=self.weights,
                kind="effort",
            )
            pools.append(self._credible(general.run()))
        return merge(pools, _POOL)

    def _observations(self) -> FloatArray:
        """Return how many independent observations each call path has, (N,)."""
        result = np.ones(len(self.values))
        for parameter, distinct in enumerate(self.distinct):
            effect = np.zeros(len(self.values), dtype=bool)
            for line in lines(self.points, parameter, least=2):
                part = self.values[:, line]
                effect |= np.asarray(np.ptp(part, axis=1) > _EFFECT * np.abs(part).max(axis=1), dtype=bool)
            result += np.where(effect, distinct - 1, 0)
        return np.clip(result, 2.0, self.values.shape[1])

    def _small_sample(self, specification: Specification) -> FloatArray:
        """Return the price (...) of hypotheses (..., K, m) that have many functions of a parameter with few values."""
        total = np.zeros(specification.shape[:-2])
        for parameter, distinct in enumerate(self.distinct):
            own = np.sort(specification[..., parameter], axis=-1)
            if own.shape[-1]:
                different = (own[..., :1] >= 0).sum(axis=-1) + (
                    (own[..., 1:] != own[..., :-1]) & (own[..., 1:] >= 0)
                ).sum(axis=-1)
                total += np.where(different > 0, _small_sample(different + 1, distinct), 0.0)
        return total

    def _posterior(
        self, squares: FloatArray, price: FloatArray, rows: NDArray[np.int64] | slice = slice(None)
    ) -> FloatArray:
        """Return scores (N, H) from mean squared errors: -2 log of the posterior, up to a constant."""
        number = self.observations[rows, None]
        variance = (number * squares + _CERTAINTY * _DEVIATION**2) / (number + _CERTAINTY)
        result: FloatArray = (number + _CERTAINTY) * np.log(variance) + price
        return result

    def _credible(self, pool: Pool) -> Pool:
        """Give up hypotheses that this search would not have proposed."""
        fitted = Fitted(pool.specification, pool.coefficients, pool.residual, pool.left_out, pool.residual)
        scores = np.where(self._incredible(fitted), np.inf, pool.score)
        return Pool(pool.specification, pool.coefficients, pool.residual, pool.left_out, scores)

    def _likely_atoms(self, parameter: int) -> Specification | None:
        """Return the atoms of the likeliest functions of one parameter, (N, atoms), -1 for none; None without lines.

        Along a line in one parameter the rest is constant, so every line has coefficients of its own.
        """
        own = lines(self.points, parameter)
        if not own:
            return None
        cost = self.tables.cost[parameter][:-1]
        order = self.tables.order_of(parameter)
        natural = np.flatnonzero(cost <= _PAIR_COST)
        paths = self.values.shape[0]
        sets = [np.arange(len(cost))[:, None], np.array(list(combinations(natural.tolist(), 2))).reshape(-1, 2)]
        squares = [np.zeros((paths, len(group))) for group in sets]
        negative = [np.zeros((paths, len(group))) for group in sets]
        for alike in same_places(own, self.points[:, parameter]):
            atoms = self.tables.columns[parameter][:-1, alike[0]]
            found = set_squares(atoms, natural, self.values[:, alike], self.weights[:, alike])
            for index, (error, is_below) in enumerate(found):
                squares[index] += error
                negative[index] += is_below * (len(alike) / len(own))
        points = sum(line.size for line in own)
        distinct = self.distinct[parameter]
        scores = []
        for group, error, below in zip(sets, squares, negative, strict=True):
            width = group.shape[1]
            price = _COEFFICIENT * width + _COST_PRICE * cost[group].sum(axis=1)
            price = price + _GROWTH * order[group].max(axis=1, initial=0.0) + _small_sample(width + 1, distinct)
            variance = (distinct * error / points + _CERTAINTY * _DEVIATION**2) / (distinct + _CERTAINTY)
            scores.append((distinct + _CERTAINTY) * np.log(variance) + price + _NEGATIVE * width * below)
        padded = np.concatenate([np.repeat(sets[0], 2, axis=1), sets[1]])
        everything = np.concatenate(scores, axis=1)
        few = np.sort(lowest(everything, 8), axis=1)
        order_of_few = np.argsort(np.take_along_axis(everything, few, axis=1), axis=1, kind="stable")
        best = padded[np.take_along_axis(few, order_of_few, axis=1)]
        return _first_distinct(best.reshape(paths, -1), _MOST_ATOMS.get(self.parameters, 1))

    def _best_subsets(self, atoms: list[Specification]) -> Pool:
        """Fit sums of products of `atoms` (N, k) of each parameter, with and without a constant; the best precisely."""
        specification, slots = _products(atoms)
        paths, number = specification.shape[0], len(slots) - 1
        matrix, right, total = gram(self.tables.design(specification), self.values, self.weights)
        penalty = _COST_PRICE * self.tables.complexity(specification[:, :, None])
        penalty[:, 1:][(specification[:, 1:] < 0).all(axis=2)] = np.inf  # there is no such product
        order = self.tables.order(specification)
        found: list[tuple[bool, NDArray[np.int64], FloatArray]] = []  # constant, products (N, S, k), scores (N, S)
        pairs = all_subsets(number, 2)
        best_pairs = np.empty((paths, 0), dtype=np.int64)
        for width in range(1, min(number, 3, self.values.shape[1] - 2) + 1):
            subsets = all_subsets(number, width) if width < 3 else extended(pairs, number)
            fixed = self._fixed_penalty(slots[subsets])
            chosen = subsets[None]
            if width == 3:
                numbers = (best_pairs[:, :, None] * number + np.arange(number)).reshape(paths, -1)
                fixed, chosen = fixed[numbers], subsets[numbers]
            own = fixed + sum(_gathered(penalty, chosen[:, :, i]) for i in range(width))
            growth = np.maximum.reduce([_gathered(order, chosen[:, :, i]) for i in range(width)])
            for constant, (coefficients, explained) in zip(
                (True, False), solve_both(matrix, right, chosen), strict=True
            ):
                error = np.maximum(total[:, None] - explained, 0.0) / self.values.shape[1]
                lead = np.maximum(growth, 0.0) if constant else growth
                negative = sum((coefficient < 0).astype(np.float64) for coefficient in coefficients)
                price = own + _COEFFICIENT * len(coefficients) + _GROWTH * lead + _NEGATIVE * negative
                scores = self._posterior(error, price)
                if width == 2 and constant:
                    best_pairs = lowest(scores, _PAIRS_KEPT)
                best = lowest(scores, _FINALISTS)
                kept = chosen[np.arange(paths)[:, None], best] if width == 3 else subsets[best]
                found.append((constant, kept, np.take_along_axis(scores, best, axis=1)))
        return self._finalists(specification, found)

    def _fixed_penalty(self, slots: NDArray[np.int64]) -> FloatArray:
        """Return what sums of products cost whatever their atoms are, (S,); slots: (S, k, m), which atom, -1 for none."""
        result = self._small_sample(slots)
        for i, j in combinations(range(slots.shape[1]), 2):
            result[(slots[:, i] == slots[:, j]).all(axis=1)] = np.inf
        return result

    def _finalists(self, specification: Specification, found: list[tuple[bool, NDArray[np.int64], FloatArray]]) -> Pool:
        """Fit what is nearly the best precisely; found: constant, products (N, S, k) of `specification`, scores."""
        paths = len(self.values)
        least = np.minimum.reduce([np.full((paths, 1), np.inf), *(s.min(axis=1, keepdims=True) for _, _, s in found)])
        pools = [nothing(paths, self.parameters)]
        for constant, chosen, scores in found:
            path, number = np.nonzero(np.isfinite(scores) & (scores <= least + _NEAR))
            if path.size:
                own = specification[path[:, None], chosen[path, number]][:, None]
                fitted = fit_hypotheses(self.tables, own, self.values[path], self.weights[path], False, constant)
                pools.append(ranked(path, fitted, self._scores(fitted, path)[:, 0], paths, _POOL))
        return merge(pools, _POOL)

    def _scores(self, fitted: Fitted, rows: NDArray[np.int64] | slice = slice(None)) -> FloatArray:
        width = (fitted.coefficients != 0).sum(axis=2)
        price = _COEFFICIENT * width + _COST_PRICE * self.tables.complexity(fitted.specification)
        price = price + _NEGATIVE * (fitted.coefficients < 0).sum(axis=2)
        if fitted.specification.shape[-2]:
            price = price + _GROWTH * self.tables.order(fitted.specification).max(axis=-1)
            price = price + self._small_sample(fitted.specification)
        squares = np.minimum(fitted.residual, 1e150) * np.minimum(fitted.left_out, 1e150)
        scores = np.where(np.isfinite(fitted.residual), self._posterior(squares, price, rows), np.inf)
        if fitted.specification.shape[-2]:
            scores[self._incredible(fitted, rows)] = np.inf
        return scores

    def _incredible(self, fitted: Fitted, rows: NDArray[np.int64] | slice = slice(None)) -> _Flags:
        """Return hypotheses (N, H) with a term that hardly shows, or whose term of the highest order is negative.

        In data that are not exact such terms follow the deviations. Points with hardly any work do not count: what
        little happens there (nothing to merge on one process) says nothing about growth.
        """
        size = np.abs(self.values[rows])
        weights = np.where(size >= _LEAST_WORK * size.max(axis=1, keepdims=True), self.weights[rows], 0.0)
        part = np.abs(fitted.coefficients[:, :, 1:, None] * self.tables.design(fitted.specification))
        share = (part * weights[:, None, None, :]).max(axis=3)
        constant = np.abs(fitted.coefficients[:, :, 0]) * weights.max(axis=1)[:, None]
        deviation = np.minimum(fitted.residual, 1.0)[:, :, None]
        steepest = self.tables.steepest(fitted.specification)
        least = np.minimum(_LEAST_SHARE * (1.0 + steepest) ** 2, _MOST_SHARE)
        least = np.maximum(least, _LEAST_DEVIATIONS * np.minimum(deviation, 0.1))
        hidden = (share < least) & (fitted.coefficients[:, :, 1:] != 0)
        order = self.tables.order(fitted.specification)
        order = np.concatenate([np.zeros((*order.shape[:-1], 1)), order], axis=-1)
        lead = np.broadcast_to(order, fitted.coefficients.shape).copy()
        lead[fitted.coefficients == 0] = -np.inf
        first = lead.argmax(axis=2)[:, :, None]
        negative = np.take_along_axis(fitted.coefficients, first, axis=2)[:, :, 0] < 0
        hidden_constant = (constant < _LEAST_SHARE) & (constant > 0)
        below = self.values[rows].min(axis=1)[:, None] < 0
        return np.asarray(hidden.any(axis=2) | hidden_constant | (negative & ~below), dtype=bool)


def _small_sample(coefficients: NDArray[np.int64] | int, values: int) -> FloatArray:
    """Return what AICc adds to AIC for so many coefficients, made finite where there are hardly more values."""
    number = np.asarray(coefficients, dtype=np.float64)
    return 2.0 * number * (number + 1.0) / np.maximum(values - number, 0.5)


def _first_distinct(atoms: NDArray[np.int64], number: int) -> Specification:
    """Return the first `number` different atoms of each row of (N, K), -1 where there are fewer."""
    earlier = np.zeros(atoms.shape, dtype=bool)
    for column in range(1, atoms.shape[1]):
        earlier[:, column] = (atoms[:, :column] == atoms[:, column, None]).any(axis=1)
    order = np.argsort(earlier, axis=1, kind="stable")[:, :number]
    chosen = np.take_along_axis(atoms, order, axis=1)
    result: Specification = np.where(np.take_along_axis(earlier, order, axis=1), -1, chosen).astype(np.int16)
    return result


def _products(atoms: list[Specification]) -> tuple[Specification, NDArray[np.int64]]:
    """Return all products of at most one atom per parameter, (N, Q, m), the empty one first, and their slots (Q, m).

    Slots say which of the atoms (N, k) of a parameter a product has; it is all -1 where one of them is missing.
    """
    slots = np.array(list(product(*(range(-1, own.shape[1]) for own in atoms))), dtype=np.int64)
    result = np.stack(
        [np.pad(own, ((0, 0), (0, 1)), constant_values=-1)[:, slots[:, i]] for i, own in enumerate(atoms)], 2
    )
    result[((result < 0) & (slots >= 0)).any(axis=2)] = -1
    return result, slots


def _gathered(table: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
    """Return the columns (1, S) or (N, S) of `table` (N, Q), (N, S)."""
    return table.take(columns[0], axis=1) if len(columns) == 1 else np.take_along_axis(table, columns, axis=1)
