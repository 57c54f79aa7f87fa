# SPDX-License-Identifier: Apache-2.0
"""Find sums of two or three products that reproduce a vector of counts exactly.

A column holds the values of one product at all configurations. Let v be the vector of counts, and A and B two columns.
Remove from A and from B their projection on v. If v = c·A + d·B, the remainders have the same or opposite directions.

- Two terms: the search looks for pairs of columns with equal directions. Two random projections turn each direction
  into two numbers, so sorting these numbers finds the pairs among thousands of columns.
- Three terms: for each likely third column, the search removes the projections on this column, too, and repeats the
  search for pairs.

The search verifies each sum at all configurations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from .distribution import Distribution
from .factors import Factor, Floats
from .laws import ONE, Case, Laws, Place, coefficient_bits, product_text, structure_bits
from .prices import PRICES
from .products import WINDOW

# Limits of the search. "Cheapest" means: with the fewest bits.
_MOST_FACTORS = 90  # number of cheapest factors that products of two factors contain
_MOST_CUBIC = 24  # number of cheapest factors that products of three factors contain
_MOST_TERMS = 6000  # number of cheapest terms that are searched
_MOST_THIRD = 40  # number of cheapest terms that are tried as third term
_MOST_OF_THREE = 1200  # number of cheapest basic terms that sums of three contain
_ALTERNATIVES = 16  # number of products of a class that become separate laws
_MOST_TRIED = 5000  # number of sets with equal directions that are verified
_COMBINATIONS = 256  # number of combinations of products of the classes in a sum
_MOST_SUMS = 60  # number of verified sums that are used
_MOST_LAWS = 400
_NEGATIVE = 3.0  # bits of a negative coefficient
_TERM = 2.0  # bits of each term after the first
_EXACT = 1e-9  # relative error up to which a sum reproduces the counts
_ALIKE = 1e-8  # difference up to which directions are equal
_NEARLY = 1e-6  # relative error up to which a sum is a candidate, before least squares determine its coefficients
_FEWEST = {2: 3, 3: 5}  # smallest number of different counts above 0 for a sum of 2 (3) terms
_SEED = 2


@dataclass(eq=False)
class Term:
    """A class of products that are proportional to each other at all measured configurations.

    - column: values of the product with the fewest bits, shape (measured,).
    - bits: -log2 of the sum of the probabilities of the products.
    - alternatives: for each product its bits, its factors, and a scale: scale × values of the product = `column`.
    """

    column: Floats
    bits: float
    alternatives: tuple[tuple[float, tuple[Factor, ...], float], ...]

    @cached_property
    def basic(self) -> bool:
        """Return whether the first product consists of basic factors only (`Factor.basic`).

        Sums of three terms only contain such terms, because every other factor is a sum of basic factors.
        """
        return all(factor.basic for factor in self.alternatives[0][1])


@dataclass(eq=False)
class Terms:
    """The terms under one process grid.

    - factors: all factors and conditions of the grammar.
    - hidden: extents of the grid that are equal at all measured configurations.
    - dimensions: number of dimensions of the grid. measured: number of measured configurations.
    """

    factors: Sequence[Factor]
    hidden: Sequence[Factor]
    dimensions: int
    measured: int
    _tables: dict[bytes, tuple[list[Term], Floats, NDArray[np.bool_]]] = field(default_factory=dict)

    @cached_property
    def every(self) -> list[Term]:
        """Return all terms, fewest bits first, at most _MOST_TERMS."""
        one = np.ones(self.measured)
        usable = [f for f in self.factors if f.values.min() >= 0 and f.values.max() > 0]
        groups: dict[bytes, list[tuple[float, tuple[Factor, ...], Floats]]] = {}
        for chosen in _products(sorted(usable, key=lambda factor: factor.bits)):
            column = np.prod([factor.values for factor in chosen], axis=0) if chosen else one
            top = column.max()
            if top > 0:
                key = (np.round(column / top, 10) + 0.0).tobytes()
                groups.setdefault(key, []).append((structure_bits(chosen, self.dimensions), chosen, column))
        terms = []
        for members in groups.values():
            members.sort(key=lambda member: member[0])
            lead = members[0][2]
            at = int(np.argmax(lead))
            kept = [(bits, chosen, float(lead[at] / column[at])) for bits, chosen, column in members[:_ALTERNATIVES]]
            more = [
                (
                    structure_bits((*chosen, *some), self.dimensions),
                    (*chosen, *some),
                    scale / math.prod(extra.values[0] for extra in some),
                )
                for (_, chosen, scale), some in itertools.product(kept, self._extras)
            ]
            more.sort(key=lambda entry: entry[0])
            total = more[0][0] - math.log2(sum(2.0 ** (more[0][0] - bits) for bits, _, _ in more))
            terms.append(Term(lead, total, tuple(more[:_ALTERNATIVES])))
        return sorted(terms, key=lambda term: term.bits)[:_MOST_TERMS]

    @cached_property
    def _extras(self) -> list[tuple[Factor, ...]]:
        counts = range(len(self.hidden) + 1)
        return [some for count in counts for some in itertools.combinations(self.hidden, count)]

    @cached_property
    def _columns(self) -> Floats:
        return np.array([term.column for term in self.every]).reshape(len(self.every), self.measured)

    @cached_property
    def _basic(self) -> NDArray[np.bool_]:
        return np.array([term.basic for term in self.every], dtype=bool)

    def on(self, support: NDArray[np.bool_]) -> tuple[list[Term], Floats, NDArray[np.bool_]]:
        """Return the terms that are 0 outside of `support`, their columns, and a mask of the basic terms.

        support: mask (measured,) of the configurations with counts above 0. The columns have the shape (terms,
        configurations of the support), the mask has the shape (terms,).
        """
        key = support.tobytes()
        if key not in self._tables:
            rows = np.flatnonzero(~self._columns[:, ~support].any(axis=1))
            chosen = [self.every[row] for row in rows.tolist()]
            self._tables[key] = chosen, self._columns[np.ix_(rows, support)], self._basic[rows]
        return self._tables[key]


def _products(factors: Sequence[Factor]) -> Iterator[tuple[Factor, ...]]:
    yield ()
    yield from ((factor,) for factor in factors)
    yield from itertools.combinations_with_replacement(factors[:_MOST_FACTORS], 2)
    yield from itertools.combinations_with_replacement(factors[:_MOST_CUBIC], 3)


def exact_sums(counts: Floats, terms: Terms, numbers: Mapping[str, int], unit: float) -> Laws | None:
    """Return the laws that are sums of two or three terms and reproduce the counts; None if there are none.

    - counts: shape (measured,).
    - numbers: index of each factor in `Place.values`, by name.
    - unit: greatest common divisor of the counts. A coefficient that is a simple multiple of `unit` has few bits.
    """
    support = counts > 0
    chosen, table, basic = terms.on(support)
    distinct = len(set(counts[support].tolist()))
    if len(chosen) < 2 or distinct < _FEWEST[2]:
        return None
    scaled = table / counts[support]
    found = _parallel(scaled, scaled[:0])
    if not len(found) and distinct >= _FEWEST[3]:
        own = np.flatnonzero(basic)[:_MOST_OF_THREE]
        few = scaled[own]
        found = own[_parallel(few, few[:_MOST_THIRD])]
    laws: list[tuple[float, tuple[float, ...], tuple[tuple[Factor, ...], ...]]] = []
    for members in {tuple(sorted(members)) for members in found.tolist()}:
        laws += _weighed([chosen[k] for k in members], scaled[list(members)], unit)
    if not laws:
        return None
    laws.sort(key=lambda law: law[0])
    kept = [law for law in laws[:_MOST_LAWS] if law[0] <= laws[0][0] + WINDOW]
    weights = np.array([2.0 ** (kept[0][0] - law[0]) for law in kept])
    count = max(len(law[1]) for law in kept)
    width = max(len(factors) for law in kept for factors in law[2])
    coefficients = np.zeros((len(kept), count))
    places = np.full((len(kept), count, width), numbers[ONE])
    for row, (_, solution, products) in enumerate(kept):
        coefficients[row, : len(solution)] = solution
        for number, factors in enumerate(products):
            places[row, number, : len(factors)] = [numbers[factor.name] for factor in factors]

    def predict(place: Place) -> Distribution:
        values = (coefficients * place.values[places].prod(axis=2)).sum(axis=1)
        return Distribution.mixture([(1.0, Distribution(np.maximum(values, 0.0), weights))])

    def value(row: int, place: Place) -> float:
        return float(coefficients[row] @ place.values[places[row]].prod(axis=1))

    def terms_of(row: int) -> tuple[tuple[float, str], ...]:
        _, solution, products = kept[row]
        return tuple((c, product_text(own)) for c, own in zip(solution, products, strict=True))

    def cases() -> list[Case]:
        return [Case(float(weight), terms_of(row), partial(value, row)) for row, weight in enumerate(weights)]

    return Laws(kept[0][0] - math.log2(weights.sum()), terms_of(0), True, predict, cases=cases)


def _parallel(scaled: Floats, thirds: Floats) -> NDArray[np.int64]:
    """Return sets of two or three columns with a linear combination that is 1 everywhere, as indices (sets, 2 or 3).

    - scaled: columns divided by the counts, shape (terms, support).
    - thirds: the first rows of `scaled`, which are tried as third column; if empty, sets have two columns.
    """
    measured = scaled.shape[1]
    left = scaled - scaled.mean(axis=1, keepdims=True)
    other = thirds - thirds.mean(axis=1, keepdims=True) if len(thirds) else np.zeros((1, measured))
    size = np.sqrt((other**2).sum(axis=1))
    other = np.where(size > 1e-6, other.T / np.maximum(size, 1e-6), 0.0)
    weights = np.random.default_rng(_SEED).normal(size=(measured, 2))
    share = left @ other
    square = (left**2).sum(axis=1)[:, None]
    after = square - share**2
    usable = (after > 1e-7 * square) & (square > 1e-12 * (scaled**2).sum(axis=1)[:, None])
    length = np.sqrt(np.where(usable, after, 1.0))
    first, second = (((left @ w)[:, None] - share * (other.T @ w)) / length for w in weights.T)
    second = np.where(first < 0, -second, second)
    turned = np.where(first < 0, -length, length)
    first = np.where(usable, np.abs(first), np.arange(len(left))[:, None] + 10.0 * math.sqrt(measured))
    order = np.argsort(first, axis=0, kind="stable")
    first, second = np.take_along_axis(first, order, 0), np.take_along_axis(second, order, 0)
    found = []
    for step in (1, 2, 3, 4):
        near = (first[step:] - first[:-step] <= _ALIKE) & (np.abs(second[step:] - second[:-step]) <= _ALIKE)
        row, third = np.nonzero(near)
        found.append(np.stack([order[row, third], order[row + step, third], third], axis=1))
    sets = np.concatenate(found)
    sets = sets[np.argsort(sets.sum(axis=1), kind="stable")][:_MOST_TRIED]
    one, two, third = sets.T
    # With the first two coefficients, the remainders of the two columns cancel. The third coefficient follows.
    solution = np.zeros((len(sets), 3))
    solution[:, 0], solution[:, 1] = 1.0 / turned[one, third], -1.0 / turned[two, third]
    both = solution[:, 0] * share[one, third] + solution[:, 1] * share[two, third]
    solution[:, 2] = -both / np.maximum(size[third], 1e-6)
    columns = np.stack([scaled[one], scaled[two], thirds[third] if len(thirds) else 0.0 * scaled[one]], axis=1)
    parts = solution[:, :, None] * columns
    with np.errstate(all="ignore"):
        parts = parts / parts.sum(axis=1).mean(axis=1)[:, None, None]
        # Proportional columns have equal directions, too, but no combination of them is constant.
        right = np.abs(parts.sum(axis=1) - 1.0).max(axis=1) <= _NEARLY
    return np.asarray(sets[right][:_MOST_SUMS, : 3 if len(thirds) else 2], dtype=np.int64)


def _weighed(
    terms: Sequence[Term], table: Floats, unit: float
) -> Iterator[tuple[float, tuple[float, ...], tuple[tuple[Factor, ...], ...]]]:
    """Yield bits, coefficients and products of each law of a sum of terms, if the sum reproduces the counts.

    Each law contains one product of the class of each term.

    terms: two or three classes of products. table: their columns divided by the counts, shape (terms, support). unit:
    as in `exact_sums`.
    """
    solution, *_ = np.linalg.lstsq(table.T, np.ones(table.shape[1]), rcond=None)
    shares = np.abs(solution[:, None] * table).max(axis=1)
    if np.abs(solution @ table - 1.0).max() > _EXACT or shares.min() <= _EXACT:
        return
    priced = []
    for coefficient, term in zip(solution.tolist(), terms, strict=True):
        own = coefficient * np.array([scale for _, _, scale in term.alternatives])
        simple = np.minimum(coefficient_bits(own, 1e-7), coefficient_bits(own / unit, 1e-7))
        price = simple + _NEGATIVE * (own < 0) + np.array([bits for bits, _, _ in term.alternatives])
        entries = zip(price.tolist(), own.tolist(), (factors for _, factors, _ in term.alternatives), strict=True)
        likely = sorted((entry for entry in entries if entry[0] <= price.min() + WINDOW), key=lambda entry: entry[0])
        priced.append(likely[: round(_COMBINATIONS ** (1 / len(terms)))])
    for some in itertools.product(*priced):
        products = tuple(factors for _, _, factors in some)
        shared = sum(f.bits + PRICES["factor"] for f in set(products[0]).intersection(*products[1:]))
        bits = sum(price for price, _, _ in some) + (len(some) - 1) * (_TERM - shared)
        yield bits, tuple(own for _, own, _ in some), products
