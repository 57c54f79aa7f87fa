"""What stays open of fitted models, in the arrays of a batch until somebody asks: alternatives and covariance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .hidden import Hidden
from .hypotheses.tables import Specification, Tables
from .model import Alternative, Deferred, Factor, Term


class Products(dict[int, tuple[Factor, ...]]):
    """The products of hypotheses by numbers of their own, 0 for none; all models of a batch share them."""

    def __init__(self, names: Sequence[str], tables: Tables) -> None:
        super().__init__({0: ()})
        self.names, self.tables = names, tables

    def numbers(self, specification: Specification, real: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the numbers of products (..., m), 0 for those that are not `real` (...)."""
        result = np.zeros(specification.shape[:-1], dtype=np.int64)
        for index, terms in enumerate(self.tables.terms):
            result = result * (len(terms) + 1) + specification[..., index] + 1
        return np.where(real, result, 0)

    def __missing__(self, number: int) -> tuple[Factor, ...]:
        """Make the factors of a product that nobody has asked for yet."""
        rest, found = number, []
        for name, terms in zip(reversed(self.names), reversed(self.tables.terms), strict=True):
            rest, place = divmod(rest, len(terms) + 1)
            if place:
                found.append(terms[place - 1].factor(name))
        self[number] = tuple(reversed(found))
        return self[number]

    def terms(self, numbers: Iterable[int], coefficients: Iterable[float]) -> tuple[Term, ...]:
        """Return the terms of a hypothesis."""
        return tuple([Term(size, self[number]) for number, size in zip(numbers, coefficients, strict=True) if number])


@dataclass(frozen=True, eq=False)
class Posterior:
    """The hypotheses of N call paths, that of the model first.

    numbers: (N, P, K) of `products`; coefficients: (N, P, 1 + K); shares: (N, P) posterior weights, 0 of those that are
    not kept. hidden: what may hide beside the models.
    """

    products: Products
    numbers: NDArray[np.int64]
    coefficients: FloatArray
    shares: FloatArray
    hidden: Hidden

    def forms(self) -> list[tuple[float, tuple[Term, ...]]]:
        """Return the constants and the terms of the models."""
        rows = zip(self.numbers[:, 0].tolist(), self.coefficients[:, 0].tolist(), strict=True)
        return [(constant, self.products.terms(numbers, sizes)) for numbers, (constant, *sizes) in rows]

    def others(self, path: int) -> list[Alternative]:
        """Return the hypotheses of a call path beside that of the model, with their weights."""
        kept = 1 + np.flatnonzero(self.shares[path, 1:])
        rows = (array[path, kept].tolist() for array in (self.shares, self.numbers, self.coefficients))
        return [
            Alternative(weight, constant, self.products.terms(numbers, sizes))
            for weight, numbers, (constant, *sizes) in zip(*rows, strict=True)
        ]

    def alternatives(self, path: int) -> tuple[Alternative, ...]:
        """Return all alternatives of the model of a call path: other hypotheses, and terms that may hide beside it."""
        constant, *sizes = self.coefficients[path, 0].tolist()
        terms = self.products.terms(self.numbers[path, 0].tolist(), sizes)
        return self.hidden.alternatives(path, constant, terms, self.others(path))

    def deferred(self) -> list[Sequence[Alternative]]:
        """Return the alternatives of all models, to be made when they are asked for."""
        none = (self.shares[:, 1:] == 0.0).all(axis=1) & (self.hidden.weights == 0.0).all(axis=1)
        flags: list[bool] = np.asarray(none).tolist()
        return [() if alone else Deferred(self.alternatives, path) for path, alone in enumerate(flags)]


@dataclass(frozen=True, eq=False)
class Covariances:
    """The covariance (N, R, R) of the models of N call paths (`Model.covariance`).

    real: (N, K) which products are terms, the rows of the others are left out; exact: (N,) models that have none.
    """

    matrices: FloatArray
    real: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    parameters: int

    def rows(self, path: int) -> tuple[tuple[float, ...], ...]:
        """Return the covariance of one model."""
        width = 1 + self.real.shape[1]
        block = np.concatenate([[True], self.real[path]])
        used = np.concatenate(
            [np.tile(block, (self.matrices.shape[1] - self.parameters) // width), [True] * self.parameters]
        )
        return tuple(map(tuple, self.matrices[path][used][:, used].tolist()))

    def deferred(self) -> list[Sequence[tuple[float, ...]]]:
        """Return the covariances of all models, to be made when they are asked for."""
        return [() if exact else Deferred(self.rows, path) for path, exact in enumerate(self.exact.tolist())]
