# SPDX-License-Identifier: Apache-2.0
"""Find polynomials that reproduce all counts.

A call path may contain many loops. The sum of their laws then has more terms than a search for sums can find. However,
the possible terms are known. Nested loops over the parts of a domain with N points per dimension make, summed over the
ranks, this number of iterations:

    Π (N + c·P_d) = Σ c^b · N^(D-b) · e_b

D is the number of dimensions of the process grid, and P_d are its extents. e_b is the elementary symmetric function of
the extents: the sum of all products of b different extents. The terms N^(D-b) · e_b are a family of terms. One system
of equations determines all coefficients of a family.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .distribution import Distribution
from .factors import Axes, Factor, Floats
from .laws import DENOMINATORS, Case, Laws, Place, coefficient_bits, likeliest, plus, times
from .products import Integers

_DEGREES = (1, 2, 3)
_MOST_TERMS = 20
_MONOMIAL = 4.0  # bits of a term
_NEGATIVE = 3.0  # bits of a negative coefficient
_EXACT = 1e-9  # relative error up to which a polynomial reproduces the counts
_DEPENDENT = 1e-7  # terms are linearly dependent if their smallest relative singular value is below this
_SIMPLE = 1e-5  # relative error up to which a coefficient is replaced by a fraction
_SPARE = 2  # the number of different counts must exceed the number of coefficients by at least this


def monomials_of(axes: Axes) -> dict[tuple[tuple[int, ...], int], Factor]:
    """Return the terms of all families by their keys: the powers of the sizes, and the index b of e_b."""
    one = np.ones_like(axes.ranks)
    sizes = axes.usable_sizes
    symmetric = _symmetric(axes)
    found = {}
    largest = max(_degrees(axes), default=0)
    for chosen in itertools.chain.from_iterable(
        itertools.combinations_with_replacement(range(len(sizes)), degree) for degree in range(largest + 1)
    ):
        powers = tuple(map(chosen.count, range(len(sizes))))
        names = [name if power == 1 else f"{name}^{power}" for name, power in zip(sizes, powers, strict=True) if power]
        column = math.prod((size**power for size, power in zip(sizes.values(), powers, strict=True)), start=one)
        for index, (text, values) in enumerate(symmetric):
            name = "·".join([*names, text] if text else names) or "1"
            found[powers, index] = Factor(name, _MONOMIAL, column * values)
    return found


def _degrees(axes: Axes) -> list[int]:
    """Return the degrees for which a polynomial in the sizes has at most `_MOST_TERMS` terms."""
    sizes = len(axes.usable_sizes)
    return [degree for degree in _DEGREES if sizes and math.comb(sizes + degree, degree) <= _MOST_TERMS]


def _symmetric(axes: Axes) -> list[tuple[str, Floats]]:
    """Return the names and values of the elementary symmetric functions e_0 = 1, e_1, … of the extents."""
    extents = list(axes.extents) if axes.varies(axes.ranks) else []
    names = {0: "", 1: "sum(pd)", 2: "sum(pd·pe)"} | {len(extents): "p" if extents else ""}
    result = []
    for count in range(len(extents) + 1):
        chosen = [math.prod(some) for some in itertools.combinations(extents, count)]
        result.append((names[count], sum(chosen) if count else np.ones_like(axes.ranks)))
    return result


@dataclass(eq=False)
class Polynomials:
    """The families of terms of polynomials under one process grid.

    axes: the parameters at the measured configurations. numbers: index of each term in `Place.values`, by name.
    """

    axes: Axes
    numbers: Mapping[str, int]
    _bases: dict[int, list[tuple[list[Factor], Floats]]] = field(default_factory=dict)

    @property
    def families(self) -> Iterator[list[Factor]]:
        """Yield the families of terms that the measured values of the parameters can confirm.

        A family with k powers of a size needs k + 1 different values of the size. A family with k functions of the
        ranks needs k + 1 different numbers of ranks, unless the power of the size determines the function of the ranks
        (loops over a domain that the ranks share).
        """
        terms = monomials_of(self.axes)
        last = len(_symmetric(self.axes)) - 1
        ranks = np.unique(self.axes.ranks).size
        sizes = min((np.unique(size).size for size in self.axes.usable_sizes.values()), default=0)
        for degree in (degree for degree in _degrees(self.axes) if degree + 1 < sizes):
            small = {key: term for key, term in terms.items() if sum(key[0]) <= degree}
            yield [term for (_, b), term in small.items() if not b]  # only one rank does the work
            if last:
                yield [term for (_, b), term in small.items() if b == last]  # each rank does the same work
                if degree <= last:  # the ranks share the work on a domain
                    yield [term for (powers, b), term in small.items() if b == last - min(sum(powers), last)]
                if last + 1 < ranks:
                    yield list(small.values())

    def find(self, counts: Floats, unit: float) -> Laws | None:
        """Return the polynomial that reproduces the counts as a law; None if there is none, or if a count is 0.

        counts: shape (measured,). unit: greatest common divisor of the counts. A coefficient that is a simple multiple
        of `unit` has few bits.
        """
        if not counts.all():
            return None
        for terms, basis in self._usable(np.unique(counts).size - _SPARE):
            if np.abs(counts - basis @ (basis.T @ counts)).max() <= _EXACT * counts.max():
                found = _solved(counts, np.stack([term.values for term in terms]), unit)
                if found is not None:
                    return self._laws(terms, found, unit)
        return None

    def find_with(self, counts: Floats, at: Integers, other: Floats, law: Callable[[], Laws]) -> Laws | None:
        """Return laws of the form polynomial + polynomial · other count; None if none reproduces the counts.

        - counts, other: the count to explain and the other count, shape (rows,).
        - at: the index of the configuration of each row, shape (rows,).
        - law: function that returns the laws of the other count.
        """
        if not counts.all():
            return None
        distinct = np.unique(counts).size
        for terms, _ in self._usable((distinct - _SPARE) // 2):
            columns = np.stack([term.values[at] for term in terms])
            columns = np.concatenate([columns, columns * other])
            found = _solved(counts, columns, 1.0)
            if found is not None and found[len(terms) :].any():
                return self._with_other(terms, found, law)
        return None

    def _usable(self, most: int) -> list[tuple[list[Factor], Floats]]:
        """Return the families of two to `most` terms that are linearly independent, smallest first.

        Each family is a pair: its terms, and an orthonormal basis of their columns, shape (configurations, terms).
        """
        if most not in self._bases:
            found = []
            for terms in sorted(self.families, key=len):
                if 1 < len(terms) <= min(most, _MOST_TERMS):
                    table = np.stack([term.values / np.abs(term.values).max() for term in terms], axis=1)
                    left, singular, _ = np.linalg.svd(table, full_matrices=False)
                    if singular[-1] > _DEPENDENT * singular[0]:
                        found.append((terms, left))
            self._bases[most] = found
        return self._bases[most]

    def _laws(self, terms: Sequence[Factor], solution: Floats, unit: float = 1.0) -> Laws:
        own = [(term, value) for term, value in zip(terms, solution.tolist(), strict=True) if value]
        kept = np.array([value for _, value in own])
        simple = np.minimum(coefficient_bits(kept, 1e-7), coefficient_bits(kept / unit, 1e-7))
        bits = float(simple.sum()) + _MONOMIAL * len(own) + _NEGATIVE * int((kept < 0).sum())
        places = np.array([self.numbers[term.name] for term, _ in own], dtype=np.int64)

        def predict(place: Place) -> Distribution:
            return Distribution(max(float(kept @ place.values[places]), 0.0))

        return Laws(bits, tuple((value, term.name) for term, value in own), True, predict)

    def _with_other(self, terms: Sequence[Factor], solution: Floats, law: Callable[[], Laws]) -> Laws:
        alone, each = (self._laws(terms, part) for part in np.split(solution, 2))

        def predict(place: Place) -> Distribution:
            return law().at(place).times(each.predict(place)).plus(alone.predict(place))

        def cases() -> list[Case]:
            own = likeliest(alone.each())[0]
            return [plus(own, times(each.each()[0], other)) for other in law().each()]

        texts = [(value, f"{product}·({law().text})".removeprefix("1·")) for value, product in each.terms]
        return Laws(alone.bits + each.bits, (*alone.terms, *texts), False, predict, law().noise, cases)


def _solved(counts: Floats, columns: Floats, unit: float) -> Floats | None:
    """Return the coefficients with which a sum of columns reproduces the counts, shape (terms,); None without any.

    The coefficients are simple fractions, or simple fractions times `unit`. Unnecessary terms have the coefficient 0.

    columns: shape (terms, rows).
    """
    table = (columns / counts).T
    solution, *_ = np.linalg.lstsq(table, np.ones(len(counts)), rcond=None)
    if np.abs(table @ solution - 1.0).max() > _EXACT:
        return None
    for scale in (1.0, unit):
        tried = solution[:, None] / scale * DENOMINATORS
        near = np.rint(tried)
        fits = np.abs(tried - near) <= _SIMPLE * np.maximum(np.abs(near), 1.0)
        if fits.any(axis=1).all():
            first = fits.argmax(axis=1)
            result = near[np.arange(len(near)), first] / DENOMINATORS[first] * scale
            if np.abs(table @ result - 1.0).max() <= _EXACT:
                return np.asarray(result, dtype=np.float64)
    return None
