# SPDX-License-Identifier: Apache-2.0
"""The library of hypotheses: functions of one parameter, and their combinations for several parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from ...errors import ModelingError
from ...experiment import FloatArray
from ..calibration import (
    DENOMINATOR_COMPLEXITY,
    LOG_COMPLEXITY,
    LOG_PRODUCT_COMPLEXITY,
    NEGATIVE_COMPLEXITY,
    OTHER_DENOMINATOR_COMPLEXITY,
    POWER_COMPLEXITY,
    RECURSION_COMPLEXITY,
    SQUARED_LOG_COMPLEXITY,
    SQUARED_LOG_PRODUCT_COMPLEXITY,
)
from ..model import Exponents, Factor, recursion_of


def _fractions(text: str) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, text.split()))


# The sets I and J of the noise-resilient priors paper, equation (2), which are also the preset of Extra-P.
EXPONENTS = _fractions("0 1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3")
LOGARITHMS = (0, 1, 2)
# Strong scaling: shared work falls like 1/x or, for surfaces of blocks, like x^(-2/3).
NEGATIVE = _fractions("-1/3 -1/2 -2/3 -1 -4/3 -3/2 -2 -3")


@dataclass(frozen=True, slots=True)
class SimpleTerm:
    """x^exponent · log2^log(x) of one parameter, with its complexity (`cost`)."""

    exponent: Fraction
    log: int
    cost: float = field(compare=False)
    power: float = field(compare=False)  # the exponent as a number

    def factor(self, parameter: str) -> Factor:
        """Return the factor of a term of `parameter`."""
        return Factor(parameter, self.exponent, self.log)

    @property
    def exponents(self) -> Exponents:
        """Return the pair (i, j)."""
        return self.exponent, self.log

    @property
    def order(self) -> float:
        """Return the growth: the exponent plus a tenth per logarithm."""
        return self.power + 0.1 * self.log


def make_term(exponent: Fraction, log: int) -> SimpleTerm:
    """Return the term with its cost."""
    cost = DENOMINATOR_COMPLEXITY.get(exponent.denominator, OTHER_DENOMINATOR_COMPLEXITY)
    if recursion_of(exponent):
        cost = RECURSION_COMPLEXITY
    if log == 1:
        cost += LOG_COMPLEXITY if exponent in (0, 1) else LOG_PRODUCT_COMPLEXITY
    elif log:
        cost += SQUARED_LOG_COMPLEXITY if exponent == 0 else SQUARED_LOG_PRODUCT_COMPLEXITY
    if exponent < 0:
        cost += NEGATIVE_COMPLEXITY + log
    elif exponent > 1 and exponent.denominator == 1:
        cost += POWER_COMPLEXITY * float(exponent)
    return SimpleTerm(exponent, log, cost, float(exponent))


# The work of each process for its share, and per step of a tree of processes (merging runs) or of a sorting network,
# which has log2(p)·(log2(p) + 1)/2 steps.
SHARED: tuple[Exponents, ...] = ((Fraction(-1), 0), (Fraction(-1), 1), (Fraction(-1), 2))


@dataclass(frozen=True)
class Library:
    """The available terms; the default is the set of Extra-P with some negative exponents.

    products: whether powers are multiplied with logarithms, or each stands alone.
    """

    exponents: tuple[Fraction, ...] = EXPONENTS
    logarithms: tuple[int, ...] = LOGARITHMS
    negative: tuple[Fraction, ...] = NEGATIVE
    products: bool = True

    def __post_init__(self) -> None:
        """Raise an error for empty sets."""
        if not self.exponents or not self.logarithms:
            raise ModelingError("the library of hypotheses needs at least one exponent and one logarithm")
        if any(log < 0 for log in self.logarithms):
            raise ModelingError("exponents of logarithms must not be negative")

    def __hash__(self) -> int:
        """Return the hash of all fields, computed once, because hashes of fractions are slow."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.exponents, self.logarithms, self.negative, self.products))

    def terms(self, values: FloatArray) -> tuple[SimpleTerm, ...]:
        """Return the terms that are defined and distinct at the parameter values `values`.

        Logarithms are left out if a value is below 1, where they change their sign (as in Extra-P).
        """
        low = float(values.min()) if values.size else 1.0
        return _terms(self, low >= 1.0, low > 0.0)


# For parameters without further constraints: constant, logarithm, and powers up to 1.
SLOW_GROWTH = Library(_fractions("0 1/3 1/2 2/3 1"), (0, 1), (), False)


@lru_cache(maxsize=64)
def _terms(library: Library, with_logs: bool, with_negative: bool) -> tuple[SimpleTerm, ...]:
    logs = library.logarithms if with_logs else tuple(j for j in library.logarithms if j == 0) or (0,)
    pairs: list[Exponents] = [(i, j) for i in library.exponents for j in logs]
    if with_negative:
        pairs += [(i, j) for i in library.negative for j in logs if j < 2 or (i, j) in SHARED]
    terms = [make_term(i, j) for i, j in pairs if (i or j) and (library.products or not (i and j))]
    return tuple(dict.fromkeys(terms))


def term_columns(terms: Sequence[SimpleTerm], values: FloatArray) -> FloatArray:
    """Return the terms at `values`, shape (len(values), terms)."""
    exponents = np.array([term.power for term in terms])
    logarithms = np.array([term.log for term in terms])
    columns: FloatArray = values[:, None] ** exponents
    if logarithms.any():
        columns *= np.log2(values)[:, None] ** logarithms
    return columns


Form = tuple[tuple[int, ...], ...]  # a sum of products; each product a sorted tuple of parameter numbers


@lru_cache(maxsize=32)
def forms(parameters: int) -> tuple[Form, ...]:
    """Return the ways to combine one function per parameter: sums of products of subsets, without the constant.

    These are all partitions of all subsets (every parameter at most once: a·b, a+b, a+b·c …), and all pairs of
    different products such as a + a·b. For two parameters: {}, a, b, a·b, a+b, a+ab, b+ab and a+b+ab.
    """
    names = tuple(range(parameters))
    found: dict[Form, None] = {}
    for size in range(parameters + 1):
        for subset in combinations(names, size):
            for partition in _partitions(subset):
                found[tuple(sorted(partition))] = None
    products = [c for size in range(1, parameters + 1) for c in combinations(names, size)]
    if parameters <= 4:
        for pair in combinations(products, 2):
            found[tuple(sorted(pair))] = None
    if parameters == 2:
        found[tuple(sorted(products))] = None
    return tuple(sorted(found, key=lambda form: (len(form), sum(map(len, form)), form)))


def _partitions(items: tuple[int, ...]) -> Iterable[Form]:
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for partition in _partitions(rest):
        yield ((first,), *partition)
        for index, block in enumerate(partition):
            yield (*partition[:index], tuple(sorted((first, *block))), *partition[index + 1 :])
