# SPDX-License-Identifier: Apache-2.0
"""Hypotheses as arrays: a hypothesis is a sum of products of terms, and terms are given by their numbers.

Shapes: N call paths, C points, m parameters, K products per hypothesis, A terms of a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from .library import Library, SimpleTerm, term_columns

# Numbers of the terms in hypotheses, shape (..., K, m): K products of one term per parameter; -1 is no term.
Specification = NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Tables:
    """The terms of every parameter at the measured points.

    Each field has one entry per parameter. terms: the A terms. columns: (A + 1, C), the terms at the points; the last
    row is 1, so that term number -1 means "no factor". Each row is divided by its largest value, which keeps the fits
    well conditioned in any unit. scale: (A + 1,), these largest values. cost: (A + 1,), complexities. twice: (A + 1,),
    the terms at twice the largest value of the parameter, not divided.
    """

    terms: tuple[tuple[SimpleTerm, ...], ...]
    columns: tuple[FloatArray, ...]
    scale: tuple[FloatArray, ...]
    cost: tuple[FloatArray, ...]
    twice: tuple[FloatArray, ...]

    def order(self, specification: Specification) -> FloatArray:
        """Return the order (..., K) of each product: the sum of its exponents plus 0.1 per logarithm."""
        return reduce(np.add, self._of_terms(self._orders, specification))

    def order_of(self, parameter: int) -> FloatArray:
        """Return the order (A,) of the terms of one parameter: exponent plus 0.1 per logarithm."""
        return self._orders[parameter][:-1]

    def steepest(self, specification: Specification) -> FloatArray:
        """Return the largest exponent (..., K) of any parameter in each product, at least 0."""
        return np.maximum(reduce(np.maximum, self._of_terms(self._powers, specification)), 0.0)

    @cached_property
    def _orders(self) -> tuple[FloatArray, ...]:
        return tuple(np.array([*(term.order for term in terms), 0.0]) for terms in self.terms)

    @cached_property
    def _powers(self) -> tuple[FloatArray, ...]:
        return tuple(np.array([*(term.power for term in terms), 0.0]) for terms in self.terms)

    @property
    def points(self) -> int:
        """Return the number C of measured points."""
        return int(self.columns[0].shape[1])

    def part(self, points: NDArray[np.bool_], parameters: Sequence[int]) -> Tables:
        """Return the tables of the parameters with these numbers at the points in a mask (C,)."""
        return Tables(
            tuple(self.terms[i] for i in parameters),
            tuple(self.columns[i][:, points] for i in parameters),
            tuple(self.scale[i] for i in parameters),
            tuple(self.cost[i] for i in parameters),
            tuple(self.twice[i] for i in parameters),
        )

    def design(self, specification: Specification) -> FloatArray:
        """Return the products (..., K, C) of hypotheses at the points, of scaled terms."""
        return reduce(np.multiply, self._of_terms(self.columns, specification))

    def divisor(self, specification: Specification) -> FloatArray:
        """Return the number (..., K) by which each product in `design` was divided."""
        return reduce(np.multiply, self._of_terms(self.scale, specification))

    def further(self, specification: Specification) -> FloatArray:
        """Return the products (..., K) at the point with twice the largest value of each parameter, not scaled."""
        return reduce(np.multiply, self._of_terms(self.twice, specification))

    def complexity(self, specification: Specification) -> FloatArray:
        """Return the complexity (...) of hypotheses: the sum over all their terms."""
        total: FloatArray = reduce(np.add, self._of_terms(self.cost, specification)).sum(axis=-1)
        return total

    def _of_terms(self, by_parameter: tuple[FloatArray, ...], specification: Specification) -> Iterator[FloatArray]:
        return (table[specification[..., parameter]] for parameter, table in enumerate(by_parameter))


def make_tables(points: FloatArray, library: Library) -> Tables:
    """Return the tables of `library` at `points` (C, m). They are cached, so their arrays are read-only."""
    count, parameters = points.shape
    return _tables_at(np.asarray(points, dtype=np.float64).tobytes(), (count, parameters), library)


@lru_cache(maxsize=64)
def _tables_at(of_points: bytes, shape: tuple[int, int], library: Library) -> Tables:
    points = np.frombuffer(of_points).reshape(shape)
    terms, columns, scales, costs, twice = [], [], [], [], []
    for index in range(points.shape[1]):
        found = library.terms(points[:, index])
        distinct, place = np.unique(points[:, index], return_inverse=True)
        table = np.ones((len(found) + 1, points.shape[0]))
        table[:-1] = term_columns(found, distinct).T[:, place.reshape(-1)]
        scale = np.abs(table).max(axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        terms.append(found)
        columns.append(table / scale[:, None])
        scales.append(scale)
        costs.append(np.array([*(term.cost for term in found), 0.0]))
        twice.append(np.append(term_columns(found, 2.0 * distinct[-1:])[0], 1.0))
    for array in (*columns, *scales, *costs, *twice):
        array.flags.writeable = False
    return Tables(tuple(terms), tuple(columns), tuple(scales), tuple(costs), tuple(twice))


def extended(tables: Tables, points: FloatArray, terms: tuple[SimpleTerm, ...]) -> Tables:
    """Return the tables of a single parameter with additional terms; former terms keep their numbers.

    points: (C, 1), the points of `tables`.
    """
    column = points[:, 0]
    more = term_columns(terms, column).T
    scale = np.abs(more).max(axis=1)
    further = term_columns(terms, 2.0 * column.max(keepdims=True))[0]
    cost = np.array([term.cost for term in terms])

    def joined(table: FloatArray, own: FloatArray) -> tuple[FloatArray]:
        return (np.concatenate([table[:-1], own, table[-1:]]),)

    return Tables(
        ((*tables.terms[0], *terms),),
        joined(tables.columns[0], more / scale[:, None]),
        joined(tables.scale[0], scale),
        joined(tables.cost[0], cost),
        joined(tables.twice[0], further),
    )


def tensor(terms: list[Specification], sizes: list[int]) -> Specification:
    """Return all Q products (N, Q, m) of at most one term per parameter, without the empty product.

    terms: for each parameter, numbers of terms (N, sizes[parameter]) for each call path.
    """
    paths = terms[0].shape[0]
    columns = [[-1, *range(size)] for size in sizes]
    choices = [choice for choice in product(*columns) if any(index >= 0 for index in choice)]
    result = np.full((paths, len(choices), len(terms)), -1, dtype=np.int16)
    for number, choice in enumerate(choices):
        for parameter, index in enumerate(choice):
            if index >= 0:
                result[:, number, parameter] = terms[parameter][:, index]
    return result
