"""Hypotheses as arrays: each is a sum of products of atoms, the same for all call paths or one set per path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .fitter import fit
from .library import Atom, Library, atom_columns

# Atom numbers of one hypothesis, shape (..., K, m): K products, one atom per parameter, -1 for none.
Specification = NDArray[np.int16]
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Tables:
    """The atoms of every parameter at the measured points.

    columns[l] has shape (atoms + 1, C); the last row is 1, so that atom number -1 means "no factor". Each row is
    divided by scale[l], its largest value, which keeps the fits well conditioned in any unit.
    """

    atoms: tuple[tuple[Atom, ...], ...]
    columns: tuple[FloatArray, ...]
    scale: tuple[FloatArray, ...]
    cost: tuple[FloatArray, ...]

    def order(self, specification: Specification) -> FloatArray:
        """Return how fast the products of hypotheses grow, shape (..., K): exponents, logarithms a tenth each."""
        total = np.zeros(specification.shape[:-1])
        for index in range(len(self.atoms)):
            total = total + np.append(self.order_of(index), 0.0)[specification[..., index]]
        return total

    def order_of(self, parameter: int) -> FloatArray:
        """Return how fast the atoms of one parameter grow, (A,)."""
        return np.array([atom.power + 0.1 * atom.log for atom in self.atoms[parameter]])

    def steepest(self, specification: Specification) -> FloatArray:
        """Return the largest exponent of a parameter in the products of hypotheses, at least 0, shape (..., K)."""
        largest = np.zeros(specification.shape[:-1])
        for index, atoms in enumerate(self.atoms):
            own = np.array([*(atom.power for atom in atoms), 0.0])
            largest = np.maximum(largest, own[specification[..., index]])
        return largest

    @property
    def points(self) -> int:
        """Number of measured points."""
        return int(self.columns[0].shape[1])

    def design(self, specification: Specification) -> FloatArray:
        """Return the products of hypotheses, shape (..., K, C)."""
        result: FloatArray = self.columns[0][specification[..., 0]]
        for index in range(1, len(self.columns)):
            result = result * self.columns[index][specification[..., index]]
        return result

    def divisor(self, specification: Specification) -> FloatArray:
        """Return by what the products were divided, shape (..., K)."""
        result: FloatArray = self.scale[0][specification[..., 0]]
        for index in range(1, len(self.columns)):
            result = result * self.scale[index][specification[..., index]]
        return result

    def complexity(self, specification: Specification) -> FloatArray:
        """Return the cost of the atoms of hypotheses, shape (...)."""
        result: FloatArray = self.cost[0][specification[..., 0]]
        for index in range(1, len(self.columns)):
            result = result + self.cost[index][specification[..., index]]
        total: FloatArray = result.sum(axis=-1)
        return total


def make_tables(points: FloatArray, library: Library) -> Tables:
    """Return the tables of `library` at `points` (C, m)."""
    atoms, columns, scales, costs = [], [], [], []
    for index in range(points.shape[1]):
        own = library.atoms(points[:, index])
        distinct, place = np.unique(points[:, index], return_inverse=True)
        table = np.ones((len(own) + 1, points.shape[0]))
        table[:-1] = atom_columns(own, distinct).T[:, place.reshape(-1)]
        scale = np.abs(table).max(axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        atoms.append(own)
        columns.append(table / scale[:, None])
        scales.append(scale)
        costs.append(np.array([*(atom.cost for atom in own), 0.0]))
    return Tables(tuple(atoms), tuple(columns), tuple(scales), tuple(costs))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Hypotheses fitted to call paths; coefficients[..., 0] is the constant. Infeasible ones have residual inf."""

    specification: Specification  # (N, H, K, m) or (H, K, m)
    coefficients: FloatArray  # (N, H, 1 + K), of the scaled columns
    residual: FloatArray
    left_out: FloatArray
    worst: FloatArray

    def rows(self, rows: NDArray[np.bool_]) -> Fitted:
        """Return the same of some call paths, where the hypotheses are those of each."""
        return Fitted(
            self.specification[rows],
            self.coefficients[rows],
            self.residual[rows],
            self.left_out[rows],
            self.worst[rows],
        )


def fit_hypotheses(
    tables: Tables,
    specification: Specification,
    values: FloatArray,
    weights: FloatArray,
    nonnegative: bool,
    constant: bool = True,
    precise: bool = True,
) -> Fitted:
    """Fit constant + products to `values` (N, C) with `weights`; specification (H, K, m) or (N, H, K, m).

    nonnegative: where the constant comes out negative the hypothesis is fitted without it, and hypotheses whose
    other coefficients are negative are refused. As smaller hypotheses are in the library too, the best one left
    is the best non-negative one. constant: whether there is one at all. precise: see fitter.fit.
    """
    products = tables.design(specification)
    columns = products
    if constant:
        columns = np.concatenate([np.ones((*products.shape[:-2], 1, products.shape[-1])), products], axis=-2)
    result = fit(columns, values, weights, precise)
    coefficients, residual = result.coefficients, result.residual
    left_out, worst = result.left_out, result.worst
    if not constant:
        coefficients = np.concatenate([np.zeros((*coefficients.shape[:2], 1)), coefficients], axis=2)
    if nonnegative:
        refit = coefficients[:, :, 0] < 0
        if specification.shape[-2] and bool(refit.any()):
            path, hypothesis = np.nonzero(refit)
            rows = products[path, hypothesis] if products.ndim == 4 else products[hypothesis]
            again = fit(rows[:, None], values[path], weights[path], precise)
            coefficients[path, hypothesis, 0] = 0.0
            coefficients[path, hypothesis, 1:] = again.coefficients[:, 0]
            residual[path, hypothesis] = again.residual[:, 0]
            left_out[path, hypothesis] = again.left_out[:, 0]
            worst[path, hypothesis] = again.worst[:, 0]
        # a product without any part in the sum makes this the smaller hypothesis, which is there already
        least = 1e-13 * np.abs(values).max(axis=1)[:, None, None]
        refused = ~((coefficients[:, :, 1:] > least).all(axis=2) & (coefficients[:, :, 0] >= 0))
        for array in (residual, left_out, worst):
            array[refused] = np.inf
    return Fitted(specification, coefficients, residual, left_out, worst)


@dataclass(frozen=True, eq=False)
class Pool:
    """The best hypotheses of every call path, best first. Absent ones have score inf.

    specification: (N, P, K, m); coefficients: (N, P, 1 + K); residual, left_out, score: (N, P).
    """

    specification: Specification
    coefficients: FloatArray
    residual: FloatArray
    left_out: FloatArray
    score: FloatArray

    def rows(self, rows: NDArray[np.bool_]) -> Pool:
        """Return the pool of some call paths."""
        return Pool(
            self.specification[rows],
            self.coefficients[rows],
            self.residual[rows],
            self.left_out[rows],
            self.score[rows],
        )


def to_pool(fitted: Fitted, scores: FloatArray, size: int) -> Pool:
    """Return the `size` best hypotheses of each call path."""
    size = min(size, scores.shape[1])
    best = np.argpartition(scores, size - 1, axis=1)[:, :size] if size < scores.shape[1] else _all(scores)
    rows = np.arange(scores.shape[0])[:, None]
    specification = fitted.specification
    chosen = specification[rows, best] if specification.ndim == 4 else specification[best]
    return _sorted(
        Pool(
            chosen,
            fitted.coefficients[rows, best],
            fitted.residual[rows, best],
            fitted.left_out[rows, best],
            scores[rows, best],
        )
    )


def stack(pools: Sequence[Pool]) -> Pool:
    """Return pools of the same widths as one of all of their call paths, one after the other."""
    names = ("specification", "coefficients", "residual", "left_out", "score")
    return Pool(*(np.concatenate([getattr(pool, name) for pool in pools]) for name in names))


def merge(pools: Sequence[Pool], size: int) -> Pool:
    """Return the best of several pools of the same call paths, padded to the largest number of products."""
    width = max(pool.specification.shape[2] for pool in pools)
    specification = np.concatenate([_pad(p.specification, width, -1) for p in pools], axis=1)
    coefficients = np.concatenate([_pad(p.coefficients, width + 1, 0) for p in pools], axis=1)
    both = Pool(
        specification,
        coefficients,
        np.concatenate([p.residual for p in pools], axis=1),
        np.concatenate([p.left_out for p in pools], axis=1),
        np.concatenate([p.score for p in pools], axis=1),
    )
    ordered = _sorted(both)
    cut = slice(0, size)
    return Pool(
        ordered.specification[:, cut],
        ordered.coefficients[:, cut],
        ordered.residual[:, cut],
        ordered.left_out[:, cut],
        ordered.score[:, cut],
    )


def _all(scores: FloatArray) -> NDArray[np.int64]:
    return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)


def _sorted(pool: Pool) -> Pool:
    order = np.argsort(pool.score, axis=1, kind="stable")
    rows = np.arange(order.shape[0])[:, None]
    return Pool(
        pool.specification[rows, order],
        pool.coefficients[rows, order],
        pool.residual[rows, order],
        pool.left_out[rows, order],
        pool.score[rows, order],
    )


def _pad(array: NDArray[_Number], width: int, value: int) -> NDArray[_Number]:
    missing = width - array.shape[2]
    if not missing:
        return array
    result = np.full((*array.shape[:2], width, *array.shape[3:]), value, dtype=array.dtype)
    result[:, :, : array.shape[2]] = array
    return result


def tensor(atoms: list[Specification], sizes: list[int]) -> Specification:
    """Return all products of at most one atom per parameter, (N, Q, m), the empty product left out."""
    paths = atoms[0].shape[0]
    columns = [[-1, *range(size)] for size in sizes]
    choices = [choice for choice in product(*columns) if any(index >= 0 for index in choice)]
    result = np.full((paths, len(choices), len(atoms)), -1, dtype=np.int16)
    for number, choice in enumerate(choices):
        for parameter, index in enumerate(choice):
            if index >= 0:
                result[:, number, parameter] = atoms[parameter][:, index]
    return result


def nothing(paths: int, parameters: int) -> Pool:
    """Return a pool without any hypothesis."""
    infinite = np.full((paths, 1), np.inf)
    return Pool(
        np.full((paths, 1, 0, parameters), -1, dtype=np.int16),
        np.zeros((paths, 1, 1)),
        infinite,
        infinite.copy(),
        infinite.copy(),
    )


def spread(pool: Pool, rows: NDArray[np.bool_]) -> Pool:
    """Return the pool of some call paths as one of all; the others have nothing in it."""
    paths = rows.size
    size, width, parameters = pool.specification.shape[1:]
    specification = np.full((paths, size, width, parameters), -1, dtype=np.int16)
    coefficients = np.zeros((paths, size, width + 1))
    errors = [np.full((paths, size), np.inf) for _ in range(3)]
    specification[rows], coefficients[rows] = pool.specification, pool.coefficients
    for target, source in zip(errors, (pool.residual, pool.left_out, pool.score), strict=True):
        target[rows] = source
    return Pool(specification, coefficients, *errors)
