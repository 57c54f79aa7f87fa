# SPDX-License-Identifier: Apache-2.0
"""Alternatives and covariances of fitted models, converted from the arrays of a batch at their first use.

Shapes: N call paths, P hypotheses each, K products per hypothesis, m parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..crossing.hidden import Hidden, bounds
from ..hypotheses.tables import Specification, Tables
from ..model import Alternative, Deferred, Factor, Term


class Products(dict[int, tuple[Factor, ...]]):
    """The products of terms by a number, each created at its first use and shared by all models of a batch.

    Product 0 has no factors.
    """

    def __init__(self, names: Sequence[str], tables: Tables) -> None:
        super().__init__({0: ()})
        self.factors: list[list[Factor]] = [
            [term.factor(name) for term in terms] for name, terms in zip(names, tables.terms, strict=True)
        ]

    def numbers(self, specification: Specification, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the numbers (...) of products (..., m) of a specification; 0 where `real` (...) is False."""
        result = np.zeros(specification.shape[:-1], dtype=np.int64)
        for index, factors in enumerate(self.factors):
            result = result * (len(factors) + 1) + specification[..., index] + 1
        return np.where(real, result, 0)

    def __missing__(self, number: int) -> tuple[Factor, ...]:
        """Create the product with this number at its first use."""
        rest, found = number, []
        for factors in reversed(self.factors):
            rest, place = divmod(rest, len(factors) + 1)
            if place:
                found.append(factors[place - 1])
        self[number] = tuple(reversed(found))
        return self[number]

    def terms(self, numbers: Iterable[int], coefficients: Iterable[float]) -> tuple[Term, ...]:
        """Return the terms of a hypothesis from the numbers of its products and their coefficients."""
        return tuple([Term(size, self[number]) for number, size in zip(numbers, coefficients, strict=True) if number])


class Posterior:
    """The hypotheses of N call paths that are kept, the model first, and the hidden terms of the models.

    A hidden term is an additional term that the noise may hide (crossing.hidden).
    """

    def __init__(
        self,
        products: Products,
        specification: Specification,
        coefficients: FloatArray,
        real: NDArray[np.bool_],
        shares: FloatArray,
        hidden: Hidden,
    ) -> None:
        """Store hypotheses: specification (N, P, K, m), coefficients (N, P, 1 + K) with the constant first.

        real: (N, P, K), which products are terms of the hypothesis (the others are padding). shares: (N, P) posterior
        weights, 0 for hypotheses that are not kept.
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
        """Return the hypotheses of call path number `path` other than the model, with their posterior weights."""
        own = slice(self.bounds[path], self.bounds[path + 1])
        rows = self.shares[own].tolist(), self.numbers[own].tolist(), self.coefficients[own].tolist()
        return [
            Alternative(weight, constant, self.products.terms(numbers, sizes))
            for weight, numbers, (constant, *sizes) in zip(*rows, strict=True)
        ]

    def alternatives(self, path: int) -> tuple[Alternative, ...]:
        """Return all alternatives of the model of call path number `path`: other hypotheses, and hidden terms."""
        return self.hidden.alternatives(path, *self.forms[path], self.others(path))

    def deferred(self) -> list[Sequence[Alternative]]:
        """Return the alternatives of each model, which are computed at their first use; () if it has none."""
        some = np.diff(self.bounds) + np.diff(self.hidden.bounds) > 0
        return [Deferred(self.alternatives, path) if any_ else () for path, any_ in enumerate(some.tolist())]


class Covariances:
    """The covariances (N, R, R) of the models of N call paths (`Model.covariance`)."""

    def __init__(self, matrices: FloatArray, real: NDArray[np.bool_], parameters: int) -> None:
        """Store matrices (N, R, R), as `joint_covariance` returns, for this number of parameters.

        real: (N, K), which products are terms; the rows of the other products are left out.
        """
        self.matrices, self.parameters = matrices, parameters
        patterns, which = np.unique(real, axis=0, return_inverse=True)
        self.which: list[int] = which.reshape(-1).tolist()
        self.places = [self._places(pattern) for pattern in patterns]

    def _places(self, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return flat indices (R', R') of the entries of a matrix that belong to `real` (K,) products."""
        size = self.matrices.shape[1]
        block = np.concatenate([[True], real])
        blocks = np.tile(block, (size - self.parameters) // block.size)
        used = np.flatnonzero(np.concatenate([blocks, np.ones(self.parameters, dtype=bool)]))
        places: NDArray[np.int64] = size * used[:, None] + used
        return places

    def rows(self, path: int) -> tuple[tuple[float, ...], ...]:
        """Return the rows of the covariance of the model of call path number `path`."""
        return tuple(map(tuple, self.matrices[path].take(self.places[self.which[path]]).tolist()))

    def deferred(self) -> list[Sequence[tuple[float, ...]]]:
        """Return the covariance of each model, which is computed at its first use."""
        return [Deferred(self.rows, path) for path in range(len(self.matrices))]
