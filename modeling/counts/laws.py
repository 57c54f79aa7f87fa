# SPDX-License-Identifier: Apache-2.0
"""Collect the laws (formulas) that explain one vector (one count at all configurations), with weights 2^-bits.

The bits of a law are -log2 of its prior probability, plus the bits of the deviations of the counts from the law.
"""

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

ONE = "1"  # the name of the factor 1
UNKNOWN = "?"  # the product in the terms of a count without a law; its coefficient is the largest count
NOT_KNOWN = "not known"  # the text of a count without a law
_UNKNOWN_CONDITION = 12.0  # penalty (bits) if no condition of the grammar explains where the counts are 0
_MOST_MEMBERS = 12  # largest number of factors of a class that become separate laws
_MOST_LAWS = 400
_MOST_CASES = 24  # largest number of laws that `Laws.each` returns
# Largest number of combinations of one factor per class and hidden factors (`_choices`). _FEWEST_CHOICES: smallest
# limit for the combinations of one factor per class.
_MOST_CHOICES, _FEWEST_CHOICES = 600, 12
DENOMINATORS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024])
_NO_RATIONAL = 40.0  # bits of a coefficient without a small denominator


def product_text(factors: Iterable[Factor]) -> str:
    """Return a product of factors as text, such as "(n + 2)^2·p". Equal factors are a power."""
    powers: dict[str, int] = {}
    for factor in factors:
        powers[factor.text] = powers.get(factor.text, 0) + 1
    bases = {text: f"({text})" if "^" in text else text for text in powers}
    return "·".join(
        text if power == 1 or text[0] == "[" else f"{bases[text]}^{power}" for text, power in powers.items()
    )


def structure_bits(factors: Sequence[Factor], dimensions: int) -> float:
    """Return the bits of a product of factors under a process grid of `dimensions` dimensions."""
    bits = sum(factor.bits for factor in distinct(factors)) + PRICES["factor"] * len(factors)
    return bits + sum(PRICES[name] * count for name, count in structure(factors, dimensions).items())


def distinct(factors: Sequence[Factor]) -> list[Factor]:
    """Return the factors without linear forms that repeat the shape of an earlier factor.

    For example, n + 2·py repeats the shape of n + 2·px. Such a repetition has few bits, because programs usually treat
    their dimensions alike.
    """
    return [own for k, own in enumerate(factors) if not own.shape or own.shape not in {f.shape for f in factors[:k]}]


def structure(factors: Sequence[Factor], dimensions: int) -> dict[str, int]:
    """Return how often each penalty for the structure of a product applies, by its name in `PRICES`.

    - again: number of linear forms that repeat the shape of another factor.
    - missing: number of dimensions of the grid over which no factor is a sum (`Factor.covers`).
    - twice: number of factors after the first that are sums over the same dimension, added over the dimensions.
    - alone: 1 if no factor is a sum over any dimension of the grid. It takes the place of `missing`.
    - mixed: 1 if a size is divided along some dimensions, but not along a hidden dimension.
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
    """A configuration at which laws predict, under one process grid.

    values: the values of all factors and terms at the configuration, by their numbers (`_Grid.numbers` in program.py).
    """

    values: Floats


Predict = Callable[[Place], Distribution]
Terms = tuple[tuple[float, str], ...]
"""A law as pairs (coefficient, product as text). The text of the product 1 is "1" or ""."""


@dataclass(frozen=True, eq=False)
class Case:
    """One of the laws that explain a vector.

    - weight: posterior probability, up to a factor that all laws of the vector share.
    - terms: the law as pairs (coefficient, product as text).
    - value: function that returns the count at a place.
    - noise: relative standard deviation of the counts from the law; 0 for an exact law.
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
        """Return the law of `factor` times the counts, with its weight multiplied by `weight`."""
        terms = tuple((factor * coefficient, product) for coefficient, product in self.terms)
        return Case(weight * self.weight, terms, lambda place: factor * self.value(place), self.noise)


@dataclass(frozen=True, eq=False)
class Laws:
    """All laws of one vector.

    - bits: -log2 of the sum of the probabilities of the laws.
    - terms: the likeliest law, as in `Case`. exact: whether this law reproduces all counts.
    - predict: function that returns the distribution of the count at a place.
    - noise: relative standard deviation of the counts from the likeliest law, as in `Case`.
    - cases: function that returns the single laws; None if there is only one law.
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
        """Return the likeliest law as a formula."""
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
        """Return the likeliest single laws, at most _MOST_CASES, with weights that sum to 1."""
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
    """Return the product of two independent laws. Their weights are multiplied."""
    terms = tuple((a * b, "·".join(text for text in (x, y) if text)) for a, x in one.terms for b, y in other.terms)
    noise = max(one.noise, other.noise)
    return Case(one.weight * other.weight, terms, lambda place: one.value(place) * other.value(place), noise)


def plus(one: Case, other: Case) -> Case:
    """Return the sum of two independent laws. Their weights are multiplied."""
    terms, noise = one.terms + other.terms, max(one.noise, other.noise)
    return Case(one.weight * other.weight, terms, lambda place: one.value(place) + other.value(place), noise)


def formula(terms: Iterable[tuple[float, str]]) -> str:
    """Return the terms of a law as one text, with equal products added; NOT_KNOWN if a product is UNKNOWN."""
    together: dict[str, float] = {}
    for coefficient, product in terms:
        name = "" if product == ONE else product
        together[name] = together.get(name, 0.0) + coefficient
    if UNKNOWN in together:
        return NOT_KNOWN
    texts = [product if c == 1 and product else f"{c:.12g}·{product}".rstrip("·") for product, c in together.items()]
    return " + ".join(texts).replace("+ -", "- ") or "0"


def mixture(laws: Sequence[Laws], softness: float = 1.0) -> Laws:
    """Return one `Laws` with the laws of several `Laws` of the same vector.

    Each of the given `Laws` has the weight 2^(-bits / softness).
    """
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
    """Return the bits of the fraction with the fewest bits that equals each value within the relative `error`.

    The result has the shape of `values`. A value without such a fraction of small numbers has _NO_RATIONAL bits.
    """
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

    - counts: shape (measured,).
    - library: the classes of factors for the support of the counts (the configurations where they are not 0).
    - indicators: conditions such as [p > 1], for counts that are 0 at some configurations.
    - dimensions: number of dimensions of the process grid.
    - hidden: extents of the grid that are equal at all measured configurations.
    - numbers: index of each factor in `Place.values`, by name.
    - unit: greatest common divisor of the counts. A coefficient that is a simple multiple of `unit` has few bits.
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
    """Yield the products that reproduce the counts, each as coefficient, factors, and additional bits.

    The arguments are those of `exact_laws`.
    """
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
    """Return combinations of one factor of each class, each with none, one or two hidden factors.

    Hidden factors are constant at all configurations where the count is not 0, so the counts do not exclude them.
    """
    members = [entry.members[:_MOST_MEMBERS] for entry in classes]
    plain = sorted(itertools.islice(itertools.product(*members), 4096), key=lambda chosen: sum(m.bits for m in chosen))
    extras = [extra for count in range(3) for extra in itertools.combinations(hidden, count)]
    few = max(_MOST_CHOICES // len(extras), _FEWEST_CHOICES)
    return [(*chosen, *extra) for chosen in plain[:few] for extra in extras]


def _conditions(
    column: Floats, support: NDArray[np.bool_], fitting: Sequence[Factor]
) -> list[tuple[tuple[Factor, ...], float]]:
    """Return the conditions that make a product 0 where the count is 0, each as factors and additional bits.

    The product needs no condition if it is 0 there without one. If no condition fits, the result is one entry without
    factors and with _UNKNOWN_CONDITION bits.

    - column: values of the product, shape (measured,).
    - support: mask (measured,) of the configurations where the count is not 0.
    - fitting: the conditions that hold at exactly these configurations.
    """
    empty = ~support
    if not empty.any() or np.abs(column[empty]).max() <= EXACT * float(column[support].max()):
        return [((), 0.0)]
    return [((factor,), 0.0) for factor in fitting] or [((), _UNKNOWN_CONDITION)]
