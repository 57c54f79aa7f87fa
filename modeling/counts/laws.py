# SPDX-License-Identifier: Apache-2.0
"""Collect the laws (formulas) that explain one count at all configurations, with weights by their bits."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from .distribution import Distribution
from .factors import Factor, Floats
from .prices import PRICES
from .products import EXACT, WINDOW, FactorClass, Library

ONE = "1"  # the name of the factor that changes nothing
UNKNOWN = "?"  # the product of a count without a law; its value is the largest count
NOT_KNOWN = "not known"
_UNKNOWN_CONDITION = 12.0  # bits of zeros that no condition of the grammar explains
_MOST_MEMBERS = 12  # members of a class that become separate laws
_MOST_LAWS = 400
_MOST_CASES = 24  # laws of a vector that `Laws.each` returns
_MOST_CHOICES, _FEWEST_CHOICES = 600, 12  # combinations of class members; fewer if there are many hidden factors
DENOMINATORS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024])
_NO_RATIONAL = 40.0  # bits of a coefficient without a small denominator


def product_text(factors: Iterable[Factor]) -> str:
    """Return a product of factors as text."""
    powers: dict[str, int] = {}
    for factor in factors:
        powers[factor.text] = powers.get(factor.text, 0) + 1
    bases = {text: f"({text})" if "^" in text else text for text in powers}
    return "·".join(
        text if power == 1 or text[0] == "[" else f"{bases[text]}^{power}" for text, power in powers.items()
    )


def structure_bits(factors: Sequence[Factor], dimensions: int) -> float:
    """Return the bits of a product of factors under a process grid of so many dimensions."""
    bits = sum(factor.bits for factor in distinct(factors)) + PRICES["factor"] * len(factors)
    return bits + sum(PRICES[name] * count for name, count in structure(factors, dimensions).items())


def distinct(factors: Sequence[Factor]) -> list[Factor]:
    """Return the factors, with equal linear forms only once, because programs treat their dimensions alike."""
    return [own for k, own in enumerate(factors) if not own.shape or own.shape not in {f.shape for f in factors[:k]}]


def structure(factors: Sequence[Factor], dimensions: int) -> dict[str, int]:
    """Return the penalties of a product beyond the penalties of its factors: name in `PRICES`, and multiplicity.

    - again: linear forms that repeat the form of another factor.
    - missing: dimensions of the grid that no factor sums over.
    - twice: dimensions that several factors sum over.
    - alone: 1 if no factor sums over a dimension.
    - mixed: 1 if a size is divided along some dimensions only.
    """
    again = len(factors) - len(distinct(factors))
    covered = [d for factor in factors for d in factor.covers]
    if not covered:
        return {"again": again, "alone": min(dimensions, 1)}
    counts = [covered.count(d) for d in range(dimensions)]
    kinds = {factor.kind for factor in factors}
    mixed = int("hidden" in kinds and not kinds.isdisjoint(("divided size", "divided form")))
    twice = sum(max(count - 1, 0) for count in counts)
    return {"again": again, "missing": counts.count(0), "twice": twice, "mixed": mixed}


@dataclass(frozen=True, eq=False)
class Place:
    """A configuration at which to predict, under one process grid. values: of all factors and terms, by number."""

    values: Floats


Predict = Callable[[Place], Distribution]
Terms = tuple[tuple[float, str], ...]
"""Coefficients and products; a product that is 1 has no text."""


@dataclass(frozen=True, eq=False)
class Case:
    """One of the laws that explain a vector.

    weight: posterior probability; the weights of a vector sum to 1. noise: relative error of the counts.
    """

    weight: float
    terms: Terms
    value: Callable[[Place], float]
    noise: float = 0.0

    @property
    def text(self) -> str:
        """Return the law as a formula."""
        return formula(self.terms)

    def scaled(self, factor: float, weight: float = 1.0) -> Case:
        """Return the law of `factor` times the counts. Its weight is multiplied by `weight`."""
        terms = tuple((factor * coefficient, product) for coefficient, product in self.terms)
        return Case(weight * self.weight, terms, lambda place: factor * self.value(place), self.noise)


@dataclass(frozen=True, eq=False)
class Laws:
    """All laws of one vector: their combined description length in bits, and their prediction at a target.

    terms: the terms of the likeliest law. cases: returns the individual laws; None if there is only one.
    """

    bits: float
    terms: Terms
    exact: bool
    predict: Predict
    noise: float = 0.0
    cases: Callable[[], Sequence[Case]] | None = None
    _known: dict[Place, Distribution] = field(default_factory=dict)

    def at(self, place: Place) -> Distribution:
        """Return the prediction of the laws at a place. The result is cached."""
        if place not in self._known:
            self._known[place] = self.predict(place)
        return self._known[place]

    @property
    def text(self) -> str:
        """The likeliest law as a formula."""
        return formula(self.terms)

    def scaled(self, factor: float) -> Laws:
        """Return the laws of a multiple of the counts."""
        if factor == 1:
            return self
        terms = tuple((factor * coefficient, product) for coefficient, product in self.terms)
        return Laws(
            self.bits,
            terms,
            self.exact,
            lambda place: self.predict(place).scaled(factor),
            self.noise,
            lambda: [case.scaled(factor) for case in self.each()],
        )

    def each(self) -> Sequence[Case]:
        """Return the likeliest of the single laws."""
        return self._each

    @cached_property
    def _each(self) -> Sequence[Case]:
        if self.cases is None:
            return [Case(1.0, self.terms, lambda place: self.predict(place).quantile(0.5), self.noise)]
        return likeliest(self.cases())


def likeliest(cases: Iterable[Case]) -> list[Case]:
    """Return the `_MOST_CASES` likeliest laws, with weights that sum to 1."""
    kept = sorted(cases, key=lambda case: -case.weight)[:_MOST_CASES]
    total = sum(case.weight for case in kept)
    return [replace(case, weight=case.weight / total) for case in kept]


def times(one: Case, other: Case) -> Case:
    """Return the product of two laws that are independent."""
    terms = tuple((a * b, "·".join(text for text in (x, y) if text)) for a, x in one.terms for b, y in other.terms)
    noise = max(one.noise, other.noise)
    return Case(one.weight * other.weight, terms, lambda place: one.value(place) * other.value(place), noise)


def plus(one: Case, other: Case) -> Case:
    """Return the sum of two independent laws."""
    terms, noise = one.terms + other.terms, max(one.noise, other.noise)
    return Case(one.weight * other.weight, terms, lambda place: one.value(place) + other.value(place), noise)


def formula(terms: Iterable[tuple[float, str]]) -> str:
    """Return a sum of multiples of products as text."""
    together: dict[str, float] = {}
    for coefficient, product in terms:
        name = "" if product == ONE else product
        together[name] = together.get(name, 0.0) + coefficient
    if UNKNOWN in together:
        return NOT_KNOWN
    texts = [product if c == 1 and product else f"{c:.12g}·{product}".rstrip("·") for product, c in together.items()]
    return " + ".join(texts).replace("+ -", "- ") or "0"


def mixture(laws: Sequence[Laws], softness: float = 1.0) -> Laws:
    """Return several laws as one: weights are 2^(-bits / softness)."""
    best = min(laws, key=lambda entry: entry.bits)
    if len(laws) == 1:
        return best
    parts = [(2.0 ** ((best.bits - entry.bits) / softness), entry) for entry in laws]
    parts = [(weight, entry) for weight, entry in parts if weight > 1e-4]
    bits = best.bits - math.log2(sum(weight for weight, _ in parts))

    def predict(place: Place) -> Distribution:
        return Distribution.mixture((weight, entry.predict(place)) for weight, entry in parts)

    def cases() -> list[Case]:
        return [case.scaled(1.0, weight) for weight, entry in parts for case in entry.each()]

    return Laws(bits, best.terms, best.exact, predict, best.noise, cases)


def coefficient_bits(values: Floats, error: float = 1e-9) -> Floats:
    """Return for each value the bits of the simplest rational number within a relative `error` of the value."""
    scaled = np.abs(values)[..., None] * DENOMINATORS
    near = np.rint(scaled)
    fits = (near > 0) & (np.abs(scaled - near) <= error * scaled) & (near < 1e9)
    price = 1.0 + 1.5 * np.log2(1.0 + near) + 2.0 * np.log2(DENOMINATORS)
    return np.asarray(np.where(fits, price, _NO_RATIONAL).min(axis=-1))


def exact_laws(
    counts: Floats,
    library: Library,
    indicators: Sequence[Factor],
    dimensions: int,
    hidden: Sequence[Factor],
    numbers: Mapping[str, int],
    unit: float = 1.0,
) -> Laws | None:
    """Return the laws that are products of factors and reproduce the counts; None if there are none.

    counts: shape (measured,). indicators: conditions, for counts that are 0 at some configurations. dimensions: number
    of dimensions of the process grid. hidden: extents of dimensions that no measured configuration divides. numbers:
    index of each factor in `Place.values`, by name. unit: coefficients may be simple multiples of it.
    """
    structure: list[float] = []
    laws: list[tuple[float, tuple[Factor, ...]]] = []
    for coefficient, members, more in alternatives(counts, library, indicators, hidden):
        structure.append(structure_bits(members, dimensions) + more)
        laws.append((coefficient, members))
    if not laws:
        return None
    every = np.array([coefficient for coefficient, _ in laws])
    simple = np.minimum(coefficient_bits(every), coefficient_bits(every / unit))
    bits = np.array(structure) + PRICES["coefficient"] * simple
    order = np.argsort(bits, kind="stable")[:_MOST_LAWS]
    ranked = bits[order]
    keep = order[ranked <= ranked[0] + WINDOW].tolist()
    weights = 2.0 ** (ranked[0] - bits[keep])
    width = max(len(laws[k][1]) for k in keep)
    chosen = np.full((len(keep), width), numbers[ONE])
    for row, k in enumerate(keep):
        chosen[row, : len(laws[k][1])] = [numbers[factor.name] for factor in laws[k][1]]
    coefficients = np.array([laws[k][0] for k in keep])
    total = float(ranked[0] - math.log2(weights.sum()))

    def predict(place: Place) -> Distribution:
        values = coefficients * place.values[chosen].prod(axis=1)
        return Distribution.mixture([(1.0, Distribution(values, weights))])

    def value(row: int, place: Place) -> float:
        return float(coefficients[row] * place.values[chosen[row]].prod())

    def terms(k: int) -> Terms:
        coefficient, members = laws[k]
        return ((coefficient, product_text(members)),)

    def cases() -> list[Case]:
        return [
            Case(float(weight), terms(k), partial(value, row))
            for row, (weight, k) in enumerate(zip(weights, keep, strict=True))
        ]

    return Laws(total, terms(keep[0]), True, predict, cases=cases)


def alternatives(
    counts: Floats, library: Library, indicators: Sequence[Factor], hidden: Sequence[Factor]
) -> Iterator[tuple[float, tuple[Factor, ...], float]]:
    """Yield all products that reproduce the counts: coefficient, factors, and additional bits."""
    support = library.support
    one = np.ones(support.size)
    fitting = [factor for factor in indicators if np.array_equal(factor.values != 0, support)]
    for classes in library.find(counts[support]):
        for members in _choices(classes, (*hidden, *library.unseen)):
            column = np.prod([member.values for member in members], axis=0) if members else one
            coefficient = float(counts[support][0] / column[support][0])
            for condition, more in _conditions(column, support, fitting):
                yield coefficient, (*members, *condition), more


def _choices(classes: tuple[FactorClass, ...], hidden: Sequence[Factor]) -> list[tuple[Factor, ...]]:
    """Return combinations of one member of each class, with up to two hidden factors.

    Hidden factors are constant at all measured configurations, so that the counts do not exclude them.
    """
    members = [entry.members[:_MOST_MEMBERS] for entry in classes]
    plain = sorted(itertools.islice(itertools.product(*members), 4096), key=lambda chosen: sum(m.bits for m in chosen))
    extras = [extra for count in range(3) for extra in itertools.combinations(hidden, count)]
    few = max(_MOST_CHOICES // len(extras), _FEWEST_CHOICES)
    return [(*chosen, *extra) for chosen in plain[:few] for extra in extras]


def _conditions(
    column: Floats, support: NDArray[np.bool_], fitting: Sequence[Factor]
) -> list[tuple[tuple[Factor, ...], float]]:
    """Return conditions that make a product 0 exactly where nothing was counted, with their additional bits.

    Without a matching condition the result is an empty one with `_UNKNOWN_CONDITION` bits. fitting: conditions that
    hold where something was counted, and nowhere else.
    """
    empty = ~support
    if not empty.any() or np.abs(column[empty]).max() <= EXACT * float(column[support].max()):
        return [((), 0.0)]
    return [((factor,), 0.0) for factor in fitting] or [((), _UNKNOWN_CONDITION)]
