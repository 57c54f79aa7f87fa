# SPDX-License-Identifier: Apache-2.0
"""Find sums of one to three terms with an estimated relative error, for counts without a short exact law.

A term is a product of a function of the sizes and a function of the ranks, or another count of the same program that
has a law. A column holds the values of one term at the measured configurations. The search computes the errors of all
pairs of columns at once from their inner products. It then adds a third column to the best pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from .distribution import Distribution
from .factors import Axes, Factor, Floats, exponentials
from .laws import Case, Laws, Place, Predict, coefficient_bits, likeliest, mixture, plus
from .products import EXACT

SOFTNESS = 3.0  # laws with errors have the weights 2^(-bits / SOFTNESS), because errors of counts are not independent
_POWERS = {0: 0.0, 1: 1.5, 2: 1.5, 3: 1.5, 0.5: 5.0, 1.5: 5.0, 2.5: 6.0, 4: 5.0, -1: 8.0}  # power of a size: bits
_EXPONENTIAL = 8.0  # bits of 2^N
_NEGATIVE = 4.0  # bits of a negative coefficient
_WINDOW = 20.0  # laws with more bits than the best law plus this number are left out
_PAIRS = 24  # largest number of pairs of columns that become candidates
_SEEN = 3  # smallest number of configurations at which a term is not 0; fewer do not determine the form of the term
_MOST_TERMS, _MOST_SIZE_TERMS = 8000, 600  # more than all terms of five parameters
_MOST_COLUMNS = 200
_KEPT = 12  # largest number of sums that become laws
_FEWEST = {2: 2, 3: 4}  # a sum of 2 (3) terms needs more configurations than this
# Seven values (in standard deviations) and their weights, which represent a normal distribution.
_NORMAL = np.array([-1.645, -0.9, -0.4, 0.0, 0.4, 0.9, 1.645])
_WEIGHTS = np.array([0.1, 0.15, 0.15, 0.2, 0.15, 0.15, 0.1])


@dataclass(frozen=True, eq=False)
class Column:
    """A possible term of a sum.

    - bits: the bits of the term without a coefficient.
    - values: the values of the term at the measured configurations, shape (measured,).
    - predict: function that returns the distribution of the value of the term at a place.
    - cases: function that returns the possible forms of the term as laws. All forms are proportional to each other at
      the measured configurations.
    """

    name: str
    bits: float
    values: Floats
    predict: Predict
    cases: Callable[[], Sequence[Case]]


def terms_of(axes: Axes) -> list[Factor]:
    """Return the products of a function of the sizes and a function of the ranks.

    The result contains at most _MOST_TERMS products, those with the fewest bits.
    """
    pairs = list(itertools.product(_size_terms(axes), _rank_shapes(axes)))
    if len(pairs) > _MOST_TERMS:
        pairs = sorted(pairs, key=lambda pair: pair[0].bits + pair[1].bits)[:_MOST_TERMS]
    found = []
    for size, shape in pairs:
        name = "·".join(text for text in (size.name, shape.name) if text) or "1"
        found.append(Factor(name, size.bits + shape.bits, size.values * shape.values))
    return found


def columns_of(terms: Sequence[Factor], numbers: Mapping[str, int]) -> list[Column]:
    """Return terms as columns, fewest bits first, at most _MOST_COLUMNS. Proportional terms form one column.

    numbers: index of each term in `Place.values`, by name.
    """
    groups: dict[bytes, list[Factor]] = {}
    for term in terms:
        if np.isfinite(term.values).all() and np.count_nonzero(term.values) >= min(_SEEN, term.values.size):
            groups.setdefault((np.round(term.values / term.values.max(), 9) + 0.0).tobytes(), []).append(term)
    columns = [_column(members, numbers) for members in groups.values()]
    return sorted(columns, key=lambda column: column.bits)[:_MOST_COLUMNS]


def _column(members: list[Factor], numbers: Mapping[str, int]) -> Column:
    members.sort(key=lambda member: member.bits)
    lead = members[0]
    at = int(np.argmax(lead.values))
    bits = -math.log2(sum(2.0**-member.bits for member in members))
    scales = np.array([lead.values[at] / member.values[at] for member in members])
    weights = np.array([2.0 ** (lead.bits - member.bits) for member in members])
    chosen = np.array([numbers[member.name] for member in members])

    def cases() -> list[Case]:
        every = zip(weights.tolist(), scales.tolist(), members, chosen.tolist(), strict=True)
        return [Case(weight, ((scale, member.name),), partial(_value, scale, k)) for weight, scale, member, k in every]

    return Column(
        lead.name, bits, lead.values, lambda place: Distribution(place.values[chosen] * scales, weights), cases
    )


def _value(scale: float, number: int, place: Place) -> float:
    return scale * float(place.values[number])


def _size_terms(axes: Axes) -> list[Factor]:
    one = np.ones_like(axes.ranks)
    every = [Factor("", 1.0, one)]
    for name, size in axes.usable_sizes.items():
        own = [Factor(term.name, _EXPONENTIAL, term.values) for term in exponentials(name, size, axes.measured)][:1]
        logarithm = np.log2(size)
        for (power, bits), (logs, more) in itertools.product(_POWERS.items(), ((0, 0.0), (1, 3.5))):
            if power or logs:
                text = "·".join([_power_text(name, power)] * bool(power) + [f"log2({name})"] * logs)
                own.append(Factor(text, 1.0 + bits + more, size**power * logarithm**logs))
        combined = [
            Factor(f"{a.name}·{b.name}", a.bits + b.bits, a.values * b.values)
            for a, b in itertools.product(every[1:], own)
            if a.bits + b.bits < 8
        ]
        every = every + own + combined
        if len(every) > _MOST_SIZE_TERMS:
            every = [every[0], *sorted(every[1:], key=lambda term: term.bits)[: _MOST_SIZE_TERMS - 1]]
    return every


def _power_text(name: str, power: float) -> str:
    return name if power == 1 else f"{name}^{power:g}"


def _rank_shapes(axes: Axes) -> list[Factor]:
    p, extents = axes.ranks, axes.extents
    one = np.ones_like(p)
    shapes = [Factor("", 1.0, one)]
    if not axes.varies(p):
        return shapes
    shapes += [
        Factor("p", 1.5, p),
        Factor("(p - 1)", 3.5, p - 1),
        Factor("p·log2(p)", 4.5, p * np.log2(p)),
        Factor("log2(p)", 6.0, np.log2(p)),
        Factor("p^2", 7.0, p**2),
        Factor("sqrt(p)", 6.0, np.sqrt(p)),
        Factor("p^(1/3)", 7.0, p ** (1 / 3)),
        Factor("p^(2/3)", 7.0, p ** (2 / 3)),
        Factor("[p > 1]", 6.0, (p > 1).astype(np.float64)),
        Factor("p·[p > 1]", 5.0, p * (p > 1)),
        Factor("1/p", 8.0, 1 / p),
    ]
    if len(extents) > 1:
        shapes.append(Factor("sum(pd - 1)", 3.5, (extents - 1).sum(axis=0)))
        shapes.append(Factor("p·sum(1 - 1/pd)", 3.5, p * (1 - 1 / extents).sum(axis=0)))
        shapes.append(Factor("p·sum[pd > 1]", 4.5, p * (extents > 1).sum(axis=0)))
        shapes.append(Factor("sum(pd)", 5.0, extents.sum(axis=0)))
        for d, extent in enumerate(extents):
            if axes.varies(extent):
                name = axes.extent_name(d)
                shapes.append(Factor(name, 5.0, extent))
                shapes.append(Factor(f"({name} - 1)", 5.0, extent - 1))
                shapes.append(Factor(f"(1 - 1/{name})·p", 5.0, p * (1 - 1 / extent)))
                shapes.append(Factor(f"{name}·log2({name})", 8.0, extent * np.log2(extent)))
    return shapes


def sum_laws(
    counts: Floats, columns: Sequence[Column], exact_only: bool = False, errors: Floats | None = None
) -> Laws | None:
    """Return the laws that are sums of up to three columns; None if there are none.

    - counts: shape (measured,).
    - errors: relative standard errors of the counts from repetitions, shape (measured,); None if they are unknown.
    - exact_only: only return sums of two or three columns that reproduce all counts. The number of different counts
      above 0 must exceed the number of columns by at least two.
    """
    data = _Data(counts, errors)
    table = np.array([column.values for column in columns]) / data.size
    bits = np.array([column.bits for column in columns])
    found: list[Laws] = []
    for chosen in _sets(table, bits, data, exact_only):
        found += _solved(data, columns, chosen, table, exact_only)
    if not found:
        return None
    found.sort(key=lambda law: law.bits)
    kept = [law for law in found if law.bits <= found[0].bits + _WINDOW][:_KEPT]
    if kept[0].exact:
        return mixture([law for law in kept if law.exact])
    return mixture(kept, SOFTNESS)


@dataclass(frozen=True, eq=False)
class _Data:
    """Counts, and their relative standard errors from repetitions (None: unknown), each of shape (measured,)."""

    counts: Floats
    errors: Floats | None

    @cached_property
    def error(self) -> float:
        """Return the geometric mean of the relative errors; 0 if they are unknown."""
        return 0.0 if self.errors is None else float(np.exp(np.log(self.errors).mean()))

    @cached_property
    def apart(self) -> Floats:
        """Return the errors divided by their geometric mean, shape (measured,); 1 if they are unknown."""
        return np.ones(self.counts.size) if self.errors is None else self.errors / self.error

    @cached_property
    def size(self) -> Floats:
        """Return the unit in which the residual of each count is measured, shape (measured,).

        The unit is the count (at least 1) times `apart`.
        """
        return np.asarray(np.maximum(self.counts, 1.0) * self.apart)

    @cached_property
    def distinct(self) -> int:
        """Return the number of different counts above 0. Equal counts do not confirm a law."""
        return np.unique(self.counts[self.counts > 0]).size

    @cached_property
    def floor(self) -> float:
        """Return the smallest possible variance of relative errors, due to rounding and to differences between runs."""
        rounding = 0.3 * np.exp(np.mean(np.log(1.0 / self.size)))
        return float(rounding**2 + self.error**2)

    def bits(self, variance: Floats) -> Floats:
        """Return the bits of the deviations of the counts from a law, for each variance of its relative errors."""
        measured = self.counts.size
        spread = 0.5 * measured * np.log2(2 * np.pi * np.e * np.maximum(variance, self.floor))
        return np.asarray(np.maximum(float(np.log2(self.size).sum()) + spread, 0.0))


@lru_cache(8)
def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of `count` columns, as two arrays of their numbers."""
    return np.triu_indices(count, 1)


def _sets(table: Floats, bits: Floats, data: _Data, exact_only: bool) -> list[NDArray[np.int64]]:
    """Return the sets of one, two and three columns with the fewest bits (`exact_only`: two and three).

    Each array has the shape (sets, columns of a set) and contains the numbers of the columns.

    table: the columns divided by `data.size`, shape (columns, measured). bits: shape (columns,).
    """
    measured = data.counts.size
    norm = np.sqrt((table**2).sum(axis=1))
    norm[norm == 0] = np.inf
    scaled = table / norm[:, None]
    wanted = data.counts / data.size
    first = scaled @ wanted
    square = float(wanted @ wanted)

    def price(left: Floats, terms: int) -> Floats:
        return data.bits(np.maximum(left, 0) / max(measured - terms, 1))

    sets: list[NDArray[np.int64]] = []
    if not exact_only:
        single = bits + price(square - first**2, 1) + np.where(first <= 0, np.inf, 0.0)
        best = np.argsort(single, kind="stable")[:8]
        sets.append(best[np.isfinite(single[best])][:, None])
    if measured <= _FEWEST[2] or len(bits) < 2:
        return sets
    one, two = _pairs(len(bits))
    gram = (scaled @ scaled.T)[one, two]
    apart = 1 - gram**2
    with np.errstate(all="ignore"):
        share, other = (first[one] - gram * first[two]) / apart, (first[two] - gram * first[one]) / apart
        left = square - share * first[one] - other * first[two]
        double = bits[one] + bits[two] + price(left, 2) + _NEGATIVE * ((share < 0).astype(float) + (other < 0))
    double[~(apart > 1e-8) | ~np.isfinite(double)] = np.inf
    few = np.argpartition(double, min(_PAIRS, double.size - 1))[:_PAIRS]
    few = few[np.argsort(double[few])]
    few = few[np.isfinite(double[few])]
    pairs = np.stack([one[few], two[few]], axis=1)
    sets.append(pairs)
    if measured > _FEWEST[3]:
        triples = set()
        for pair in pairs[:8].tolist():
            basis, _ = np.linalg.qr(scaled[pair].T)
            rest = scaled - (scaled @ basis) @ basis.T
            length = (rest**2).sum(axis=1)
            own = wanted - basis @ (basis.T @ wanted)
            with np.errstate(all="ignore"):
                after = np.where(length > 1e-7, own @ own - (rest @ own) ** 2 / length, np.inf)
            third = bits + price(after, 3)
            triples |= {tuple(sorted((*pair, int(k)))) for k in np.argsort(third)[:3] if int(k) not in pair}
        sets.append(np.array(sorted(triples), dtype=np.int64).reshape(-1, 3))
    return sets


def _solved(
    data: _Data, columns: Sequence[Column], chosen: NDArray[np.int64], table: Floats, exact_only: bool
) -> list[Laws]:
    """Return the laws of the sets of columns `chosen`, shape (sets, terms). Least squares give the coefficients."""
    counts, size = data.counts, data.size
    measured, terms = counts.size, chosen.shape[1]
    if not len(chosen):
        return []
    inverses = np.linalg.pinv(table[chosen].transpose(0, 2, 1))
    solutions = inverses @ (counts / size)
    laws = (solutions[:, :, None] * table[chosen]).sum(axis=1) * size
    with np.errstate(all="ignore"):
        off = np.where(
            (laws > 0) & (counts > 0),
            np.log(np.maximum(laws, 1e-9) / np.maximum(counts, 1.0)) / data.apart,
            (laws - counts) / size,
        )
    variances = np.maximum((off**2).sum(axis=1) / max(measured - terms, 0.5), data.floor)
    reproduced = (np.abs(laws - counts).max(axis=1) <= 10 * EXACT * counts.max()) & (data.distinct > terms + 1)
    found = []
    for at in np.flatnonzero(reproduced) if exact_only else range(len(chosen)):
        members, solution, variance, exact = chosen[at].tolist(), solutions[at], variances[at], bool(reproduced[at])
        covariance = inverses[at] @ inverses[at].T * variance
        deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        price = sum(columns[k].bits for k in members) + 2.0 * terms + _NEGATIVE * int((solution < 0).sum())
        if exact:
            price += float(coefficient_bits(solution, 1e-6).sum())
        else:
            price += float(np.log2(1.0 + np.abs(solution) / deviation).sum() + data.bits(variance))
        parts = tuple((float(c), columns[k].name) for c, k in zip(solution, members, strict=True))
        noise = 0.0 if exact else math.sqrt(variance) * float(data.apart[np.argmax(counts)])
        ahead = _ahead(columns, members, solution, covariance, noise)
        found.append(Laws(price, parts, exact, ahead, noise, partial(_cases, columns, members, solution, noise)))
    return found


def _cases(columns: Sequence[Column], members: Sequence[int], solution: Floats, noise: float) -> list[Case]:
    """Return the laws of a sum of columns: the likeliest combinations of the forms of the columns."""
    found = [Case(1.0, (), lambda place: 0.0, noise)]
    for k, coefficient in zip(members, solution.tolist(), strict=True):
        own = [case.scaled(coefficient) for case in likeliest(columns[k].cases())]
        found = likeliest(plus(one, other) for one in found for other in own)
    return found


def _ahead(
    columns: Sequence[Column], members: Sequence[int], solution: Floats, covariance: Floats, noise: float
) -> Predict:
    def predict(place: Place) -> Distribution:
        parts = [columns[k].predict(place) for k in members]
        mean = parts[0].scaled(float(solution[0]))
        for coefficient, part in zip(solution[1:].tolist(), parts[1:], strict=True):
            mean = mean.plus(part.scaled(coefficient))
        if noise == 0:
            return mean
        lead = np.array([part.values @ part.weights for part in parts])
        middle = float(lead @ solution)
        spread = math.sqrt(max(float(lead @ covariance @ lead), 0.0) + (noise * middle) ** 2)
        values = np.maximum((mean.values[:, None] + spread * _NORMAL).ravel(), 0.0)
        return Distribution.mixture([(1.0, Distribution(values, (mean.weights[:, None] * _WEIGHTS).ravel()))])

    return predict
