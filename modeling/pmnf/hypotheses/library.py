# SPDX-License-Identifier: Apache-2.0
"""The library of hypotheses: terms, which are functions of one parameter, and their combinations.

A product has at most one term per parameter. A hypothesis is a sum of products, with or without a constant.
"""

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


# The sets I and J in equation (2) of de Morais et al., Denoising Application Performance Models with Noise-Resilient
# Priors, which are also the preset of Extra-P.
EXPONENTS = _fractions("0 1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3")
LOGARITHMS = (0, 1, 2)
# Strong scaling: the work per process falls like 1/x, or like x^(-2/3) if it is on the surface of a block.
NEGATIVE = _fractions("-1/3 -1/2 -2/3 -1 -4/3 -3/2 -2 -3")


@dataclass(frozen=True, slots=True)
class SimpleTerm:
    """The term x^exponent · log2(x)^log of one parameter x.

    cost: the complexity, which criteria count as a penalty (`make_term`). power: the exponent as a float.
    """

    exponent: Fraction
    log: int
    cost: float = field(compare=False)
    power: float = field(compare=False)

    def factor(self, parameter: str) -> Factor:
        """Return this term as a factor with the name of its parameter."""
        return Factor(parameter, self.exponent, self.log)

    @property
    def exponents(self) -> Exponents:
        """Return the pair (exponent, log)."""
        return self.exponent, self.log

    @property
    def order(self) -> float:
        """Return a number by which terms are ordered by growth: the exponent plus 0.1 per logarithm."""
        return self.power + 0.1 * self.log


def make_term(exponent: Fraction, log: int) -> SimpleTerm:
    """Return the term x^exponent · log2(x)^log with its complexity, from the constants in calibration."""
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


# The work of a process for its share 1/p of a total; the same in each of log2(p) steps of a tree of processes; the same
# in each of the log2(p)·(log2(p) + 1)/2 steps of a sorting network.
SHARED: tuple[Exponents, ...] = ((Fraction(-1), 0), (Fraction(-1), 1), (Fraction(-1), 2))


@dataclass(frozen=True)
class Library:
    """The available terms; the default is the set of Extra-P and some negative exponents.

    exponents, logarithms: the powers i of x and j of log2(x). negative: exponents below 0. products: whether terms
    contain both a power and a logarithm, x^i·log2(x)^j.
    """

    exponents: tuple[Fraction, ...] = EXPONENTS
    logarithms: tuple[int, ...] = LOGARITHMS
    negative: tuple[Fraction, ...] = NEGATIVE
    products: bool = True

    def __post_init__(self) -> None:
        """Raise ModelingError if there are no exponents or logarithms, or for a negative power of a logarithm."""
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
        """Return the terms that can be used at these values of a parameter.

        If a value is below 1, where logarithms are negative, terms with logarithms are left out (as in Extra-P).
        Negative exponents are left out if a value is 0.
        """
        low = float(values.min()) if values.size else 1.0
        return _terms(self, low >= 1.0, low > 0.0)


# For growth that nothing else confirms: only a logarithm, and powers up to 1.
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
    """Return the terms at the parameter values `values` (V,), shape (V, terms)."""
    exponents = np.array([term.power for term in terms])
    logarithms = np.array([term.log for term in terms])
    columns: FloatArray = values[:, None] ** exponents
    if logarithms.any():
        columns *= np.log2(values)[:, None] ** logarithms
    return columns


Form = tuple[tuple[int, ...], ...]  # a sum of products; each product is the sorted numbers of its parameters


@lru_cache(maxsize=32)
def forms(parameters: int) -> tuple[Form, ...]:
    """Return the forms: the ways to combine one function per parameter to a sum of products, without the constant.

    There are two kinds. In the first, each parameter occurs at most once: a·b, a+b, a+b·c (all partitions of all
    subsets). The second, for up to four parameters, are the sums of two different products, such as a + a·b. For two
    parameters a and b, the forms are: none, a, b, a·b, a+b, a+ab, b+ab and a+b+ab.
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
