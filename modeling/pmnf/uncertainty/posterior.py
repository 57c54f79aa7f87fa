# SPDX-License-Identifier: Apache-2.0
"""The uncertainty of fitted models, kept in the arrays of a batch until its first use: alternatives and covariance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..crossing.hidden import Hidden, bounds
from ..hypotheses.tables import Specification, Tables
from ..model import Alternative, Deferred, Factor, Term


class Products(dict[int, tuple[Factor, ...]]):
    """The products of hypotheses by an index, 0 for none, common to all models of a batch."""

    def __init__(self, names: Sequence[str], tables: Tables) -> None:
        super().__init__({0: ()})
        self.factors: list[list[Factor]] = [
            [term.factor(name) for term in terms] for name, terms in zip(names, tables.terms, strict=True)
        ]

    def numbers(self, specification: Specification, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the indices of products (..., m), 0 for those that are not `real` (...)."""
        result = np.zeros(specification.shape[:-1], dtype=np.int64)
        for index, factors in enumerate(self.factors):
            result = result * (len(factors) + 1) + specification[..., index] + 1
        return np.where(real, result, 0)

    def __missing__(self, number: int) -> tuple[Factor, ...]:
        """Create a product at its first use."""
        rest, found = number, []
        for factors in reversed(self.factors):
            rest, place = divmod(rest, len(factors) + 1)
            if place:
                found.append(factors[place - 1])
        self[number] = tuple(reversed(found))
        return self[number]

    def terms(self, numbers: Iterable[int], coefficients: Iterable[float]) -> tuple[Term, ...]:
        """Return the terms of a hypothesis."""
        return tuple([Term(size, self[number]) for number, size in zip(numbers, coefficients, strict=True) if number])


class Posterior:
    """The kept hypotheses of N call paths, the model first, and the hidden terms of the models."""

    def __init__(
        self,
        products: Products,
        specification: Specification,
        coefficients: FloatArray,
        real: NDArray[np.bool_],
        shares: FloatArray,
        hidden: Hidden,
    ) -> None:
        """Store hypotheses (N, P, K, m) with coefficients (N, P, 1 + K), of which `real` (N, P, K) products are terms.

        shares: (N, P) posterior weights, 0 for hypotheses that are not kept.
        """
        self.products, self.hidden = products, hidden
        path, rank = np.nonzero(shares[:, 1:])
        rank += 1
        self.bounds = bounds(path, len(shares))
        self.numbers = products.numbers(specification[path, rank], real[path, rank])
        self.coefficients, self.shares = coefficients[path, rank], shares[path, rank]
        first = products.numbers(specification[:, 0], real[:, 0]).tolist(), coefficients[:, 0].tolist()
        rows = zip(*first, strict=True)
        self.forms = [(constant, products.terms(numbers, sizes)) for numbers, (constant, *sizes) in rows]

    def others(self, path: int) -> list[Alternative]:
        """Return the hypotheses of a call path other than the model, with their weights."""
        own = slice(self.bounds[path], self.bounds[path + 1])
        rows = self.shares[own].tolist(), self.numbers[own].tolist(), self.coefficients[own].tolist()
        return [
            Alternative(weight, constant, self.products.terms(numbers, sizes))
            for weight, numbers, (constant, *sizes) in zip(*rows, strict=True)
        ]

    def alternatives(self, path: int) -> tuple[Alternative, ...]:
        """Return all alternatives of the model of a call path: other hypotheses, and hidden terms."""
        return self.hidden.alternatives(path, *self.forms[path], self.others(path))

    def deferred(self) -> list[Sequence[Alternative]]:
        """Return the alternatives of all models, to be computed at their first use."""
        some = np.diff(self.bounds) + np.diff(self.hidden.bounds) > 0
        return [Deferred(self.alternatives, path) if any_ else () for path, any_ in enumerate(some.tolist())]


class Covariances:
    """The covariances (N, R, R) of the models of N call paths (`Model.covariance`)."""

    def __init__(self, matrices: FloatArray, real: NDArray[np.bool_], parameters: int) -> None:
        """Store covariances for this number of parameters. real: (N, K) which products are terms."""
        self.matrices, self.parameters = matrices, parameters
        patterns, which = np.unique(real, axis=0, return_inverse=True)
        self.which: list[int] = which.reshape(-1).tolist()
        self.places = [self._places(pattern) for pattern in patterns]

    def _places(self, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the places (R', R') of a matrix that are kept, as flat indices."""
        size = self.matrices.shape[1]
        block = np.concatenate([[True], real])
        blocks = np.tile(block, (size - self.parameters) // block.size)
        used = np.flatnonzero(np.concatenate([blocks, np.ones(self.parameters, dtype=bool)]))
        places: NDArray[np.int64] = size * used[:, None] + used
        return places

    def rows(self, path: int) -> tuple[tuple[float, ...], ...]:
        """Return the covariance of one model."""
        return tuple(map(tuple, self.matrices[path].take(self.places[self.which[path]]).tolist()))

    def deferred(self) -> list[Sequence[tuple[float, ...]]]:
        """Return the covariances of all models, to be computed at their first use."""
        return [Deferred(self.rows, path) for path in range(len(self.matrices))]
