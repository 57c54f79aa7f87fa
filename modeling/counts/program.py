# SPDX-License-Identifier: Apache-2.0
"""Model all counts of a program together.

A vector is one count of a call path at all configurations, summed over the ranks. Vectors that are equal up to a factor
are modeled once. All vectors depend on the same process grid. The grid of a program is usually not known. Several grids
therefore have weights (posterior probabilities).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..process_grid import ProcessGrid
from .distribution import Distribution
from .exact_sums import Terms as SumTerms
from .exact_sums import exact_sums
from .factors import Axes, Floats, axes_of, factors_of, hidden_of, indicators_of
from .followed import follow
from .laws import ONE, UNKNOWN, Case, Laws, Place, Terms, exact_laws, formula, mixture, times
from .polynomials import Polynomials, monomials_of
from .products import WINDOW, Library
from .sums import Column, columns_of, sum_laws, terms_of

DIMENSIONS = (1, 2, 3)
_PRIOR = {1: 0.0, 2: 1.0, 3: 1.0}  # prior bits in favour of a grid, by its number of dimensions
_RULE = "balanced"
_KNOWN = 20.0  # bits in favour of a grid that the program created or the user declared
_LIKELY = 2.0  # bits in favour of any other known grid, such as a grid that fits the messages
_POWERS = 5.0  # bits in favour of 2 (3) dimensions if all numbers of ranks are squares (cubes)
_SHARE = 0.3  # weight of the evidence of one vector for a grid; it is below 1 because vectors are not independent
# If a vector has this many bits more under a grid than under its best grid, sums with this vector give the grid a
# smaller weight.
_FREE = 8.0
_ALIKE = 3.0  # smaller differences of bits between grids are no evidence for a grid
_TURNED = 2.0  # bits against a grid with ascending extents, such as 2x3, and px1 for prime p
_MOST_BITS = 60.0  # exact laws with fewer bits are tried as terms of sums
_CHEAP = 12.0  # if products explain a vector with fewer bits, no exact sums are searched
_DEAR = 45.0  # exact laws with more bits compete with sums
_LAWLESS = 16.0  # additional bits of a vector that no law describes
_LARGEST = 2.0**53  # largest count that a floating-point number represents exactly
_SPREADS = (0.0, -0.25, -0.5, -0.75)  # powers of the mean to which relative standard errors may be proportional
_MOST_CASES = 20  # largest number of laws of a sum of vectors under one grid (`Model.cases`)
_EXPLAINED = 160  # largest number of vectors with exact laws that are tried as terms of sums


@dataclass(frozen=True, eq=False)
class Alternative:
    """One law of a sum of vectors under one process grid. weight: its weight. parts: the law of each vector."""

    weight: float
    grid: ProcessGrid | None
    parts: tuple[Case, ...]


class _Ordered:
    """The laws of `factor` times a vector, in the order of their values at a place.

    reached: for each law, the sum of the weights up to and including it.
    """

    def __init__(self, cases: Sequence[Case], factor: float, place: Place) -> None:
        order = sorted(cases, key=lambda case: case.value(place))
        self.cases = [case.scaled(factor) for case in order]
        self.reached = np.cumsum([case.weight for case in order])

    def at(self, share: float) -> Case:
        """Return the first law for which the sum of the weights up to this law reaches `share`."""
        return self.cases[min(int(np.searchsorted(self.reached, share)), len(self.cases) - 1)]


@dataclass(frozen=True, eq=False)
class Model:
    """The model of a count, which is a sum Σ factor · vector. parts: pairs (key of the vector, factor)."""

    program: Program
    parts: tuple[tuple[bytes, float], ...]

    def at(self, point: Sequence[float]) -> Distribution:
        """Return the distribution of the count at a point (one value per parameter), summed over the ranks."""
        return self.program.predict(self.parts, tuple(map(float, point)))

    @property
    def exact(self) -> bool:
        """Return whether the likeliest law of each vector reproduces all counts."""
        return all(law.exact for law, _ in self._laws)

    @property
    def text(self) -> str:
        """Return the sum of the likeliest laws of the vectors as a formula."""
        return formula(self.terms)

    @property
    def known(self) -> bool:
        """Return whether all vectors have a law. A vector without a law has only a guessed prediction."""
        return all(product != UNKNOWN for _, product in self.terms)

    @property
    def terms(self) -> Terms:
        """Return the terms of the likeliest laws of all vectors, under the likeliest process grid."""
        return tuple(term for law, factor in self._laws for term in law.scaled(factor).terms)

    def cases(self, point: Sequence[float]) -> list[Alternative]:
        """Return laws of the sum whose values at a point are the quantiles of the prediction there.

        The dependence between the laws of different vectors is not known. Each law of the sum therefore combines the
        laws at the same quantile of each vector, as `Distribution.together` combines values.

        point: one value per parameter.
        """
        found = []
        for number, share in self.program.shares(self.parts):
            grid = self.program.grids[number]
            place = grid.place(tuple(map(float, point)))
            each = [_Ordered(grid.laws[key].each(), factor, place) for key, factor in self.parts]
            reached = np.unique(np.round(np.concatenate([[1.0], *(own.reached for own in each)]), 9))
            if len(reached) > _MOST_CASES:
                reached = np.arange(1, _MOST_CASES + 1) / _MOST_CASES
            for low, high in itertools.pairwise([0.0, *reached.tolist()]):
                cases = tuple(own.at((low + high) / 2) for own in each)
                found.append(Alternative(share * (high - low), grid.grid, cases))
        return found

    @property
    def _laws(self) -> list[tuple[Laws, float]]:
        grid = self.program.leading(self.parts)
        return [(grid.laws[key], factor) for key, factor in self.parts]

    @staticmethod
    def total(parts: Iterable[tuple[float, Model]]) -> Model:
        """Return the sum of factor · model over pairs (factor, model). All models belong to one program."""
        found: dict[bytes, float] = {}
        for factor, model in parts:
            program = model.program
            for key, own in model.parts:
                found[key] = found.get(key, 0.0) + factor * own
        return Model(program, tuple((key, factor) for key, factor in found.items() if factor))


@dataclass(eq=False)
class _Grid:
    """One process grid, and the laws of the vectors of a program under this grid.

    - points: the measured configurations, shape (configurations, parameters). names: the names of the parameters.
    - grid: the process grid; None if no parameter is the number of ranks.
    - numbers: index of each factor and term in `Place.values`, by name.
    - columns: possible terms of sums with errors. libraries: classes of factors, by support.
    - laws: the laws of each vector, by its key.
    """

    points: Floats
    names: Sequence[str]
    grid: ProcessGrid | None
    dimensions: int = field(init=False)
    axes: Axes = field(init=False)
    numbers: dict[str, int] = field(init=False)
    columns: list[Column] = field(init=False)
    libraries: dict[bytes, Library] = field(default_factory=dict)
    laws: dict[bytes, Laws] = field(default_factory=dict)
    _places: dict[tuple[float, ...], Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        measured = len(self.points)
        self.axes = axes_of(self.points, self.names, self.grid, measured)
        with np.errstate(all="ignore"):  # factors without a finite value at a measured configuration are left out
            self.factors, self.hidden = factors_of(self.axes), hidden_of(self.axes)
            self.indicators, terms = indicators_of(self.axes), terms_of(self.axes)
            monomials = monomials_of(self.axes).values()
        every = [*self.factors, *self.hidden, *self.indicators, *terms, *monomials]
        distinct = dict.fromkeys([ONE, *(entry.name for entry in every)])
        self.numbers = {name: number for number, name in enumerate(distinct)}
        self.columns = columns_of(terms, self.numbers)
        self.dimensions = len(self.axes.extents) if self.axes.varies(self.axes.ranks) else 0
        self.polynomials = Polynomials(self.axes, self.numbers)
        self.terms = SumTerms([*self.factors, *self.indicators], self.hidden, self.dimensions, measured)

    @property
    def visible(self) -> bytes:
        """Return a key of the extents that vary over the measured configurations, to compare grids."""
        extents = self.axes.extents
        return np.array([extent for extent in extents if self.axes.varies(extent)]).tobytes()

    def library(self, support: NDArray[np.bool_]) -> Library:
        """Return the classes of factors for a support: a mask (configurations,) of where the count is not 0."""
        key = support.tobytes()
        if key not in self.libraries:
            self.libraries[key] = Library(self.factors, support)
        return self.libraries[key]

    def predict(self, key: bytes, point: tuple[float, ...]) -> Distribution:
        """Return the distribution of the count of a vector at a point under this grid."""
        return self.laws[key].at(self.place(point))

    def place(self, point: tuple[float, ...]) -> Place:
        """Return the values of all factors and terms at a point."""
        if point not in self._places:
            points = np.vstack([self.points, point])
            axes = axes_of(points, self.names, self.grid, len(self.points))
            with np.errstate(all="ignore"):
                every = [*factors_of(axes), *hidden_of(axes), *indicators_of(axes), *terms_of(axes)]
                every += monomials_of(axes).values()
            values = np.ones(len(self.numbers))
            for entry in every:
                values[self.numbers[entry.name]] = entry.values[-1]
            self._places[point] = Place(values)
        return self._places[point]


@dataclass(eq=False)
class Program:
    """The laws of all counts of a program.

    grids: the possible process grids with their laws, by number. weights: the posterior probabilities of the grids.
    """

    grids: Mapping[int, _Grid]
    weights: Mapping[int, float]
    _known: dict[tuple[tuple[tuple[bytes, float], ...], tuple[float, ...]], Distribution] = field(default_factory=dict)

    def predict(self, parts: Sequence[tuple[bytes, float]], point: tuple[float, ...]) -> Distribution:
        """Return the distribution of Σ factor · vector at a point. parts: pairs (key of the vector, factor)."""
        asked = (tuple(parts), point)
        if asked not in self._known:
            shares = [(self.grids[d], weight) for d, weight in self.shares(parts)]
            found = [
                (weight, Distribution.together((factor, grid.predict(key, point)) for key, factor in parts))
                for grid, weight in shares
            ]
            self._known[asked] = Distribution.mixture(found) if len(found) > 1 else found[0][1]
        return self._known[asked]

    def leading(self, parts: Sequence[tuple[bytes, float]]) -> _Grid:
        """Return the likeliest grid of a sum of vectors."""
        return self.grids[max(self.shares(parts), key=lambda entry: entry[1])[0]]

    def shares(self, parts: Sequence[tuple[bytes, float]]) -> list[tuple[int, float]]:
        """Return pairs (number of the grid, weight) for a sum of vectors, without grids of very small weight.

        The weight of a grid is its posterior probability, reduced if a vector of the sum has many more bits under this
        grid than under the best grid of the vector. The weights do not sum to 1.
        """
        against = dict.fromkeys(self.grids, 0.0)
        for key, _ in parts:
            bits = {d: grid.laws[key].bits for d, grid in self.grids.items()}
            best = min(bits.values())
            for d, own in bits.items():
                against[d] = max(against[d], own - best - _FREE)
        shares = {d: self.weights[d] * 2.0 ** -min(against[d], 60.0) for d in self.grids}
        most = max(shares.values())
        return [(d, share) for d, share in shares.items() if share > 1e-4 * most]


def fit(
    points: Floats,
    names: Sequence[str],
    vectors: Iterable[Floats],
    ranks: str | None = "p",
    known: Sequence[ProcessGrid] = (),
    within: Sequence[Sequence[int]] = (),
    runs: Mapping[int, Floats] = MappingProxyType({}),
) -> list[Model]:
    """Return the model of each vector.

    - points: the configurations, shape (configurations, parameters), all above 0. names: the names of the parameters.
    - vectors: counts summed over the ranks, each of shape (configurations,).
    - ranks: name of the parameter that is the number of ranks; None if there is none.
    - known: possible process grids, likeliest first.
    - within: for each vector, the indices of vectors that may explain it, such as the visits of callers.
    - runs: for some vectors, by index: the value of each run, shape (configurations, repetitions); NaN if missing.
    """
    points = np.asarray(points, dtype=np.float64)
    primitive = [_primitive(np.asarray(vector, dtype=np.float64)) for vector in vectors]
    units: dict[bytes, float] = {}
    for vector, unit in primitive:
        units[vector.tobytes()] = min(unit, units.get(vector.tobytes(), math.inf))
    distinct = {vector.tobytes(): vector * units[vector.tobytes()] for vector, _ in primitive}
    single = {
        primitive[number][0].tobytes(): own * (units[primitive[number][0].tobytes()] / primitive[number][1])
        for number, own in runs.items()
    }
    errors = {key: _standard_errors(own) for key, own in single.items()}
    candidates = _candidates(points, names, ranks if ranks in names else None, known)
    grids = {number: _Grid(points, names, grid) for number, (grid, _) in enumerate(candidates)}
    for key, vector in distinct.items():
        for grid in grids.values():
            grid.laws[key] = _laws(vector, grid, units[key], errors.get(key))
    around: dict[bytes, dict[bytes, None]] = {}
    for (vector, _), others in zip(primitive, within, strict=False):
        around.setdefault(vector.tobytes(), {}).update(dict.fromkeys(primitive[other][0].tobytes() for other in others))
    for grid in grids.values():
        follow(distinct, single, around, grid, partial(_exact, grid), _DEAR)
        _combine(distinct, grid)
    program = Program(grids, _weights(grids, distinct, [bits for _, bits in candidates]))
    return [Model(program, ((vector.tobytes(), unit / units[vector.tobytes()]),)) for vector, unit in primitive]


def _primitive(vector: Floats) -> tuple[Floats, float]:
    """Return the vector divided by the greatest common divisor of its counts, and this divisor.

    The divisor is 1 if a count is no integer or is above _LARGEST, or if all counts are 0.
    """
    whole = np.rint(vector)
    if not whole.any() or np.abs(vector - whole).max() > 1e-6 or whole.max() > _LARGEST:
        return vector, 1.0
    unit = int(np.gcd.reduce(whole.astype(np.int64)))
    return whole / unit, float(unit)


def _standard_errors(runs: Floats) -> Floats | None:
    """Return the relative standard errors of the means over runs, shape (configurations,); None if no runs differ.

    The errors are proportional to a power of the mean: the power in _SPREADS with the largest likelihood. Power 0 is a
    constant relative error. Power -1/2 is the error of counts of independent random events.

    runs: the value of each run, shape (configurations, repetitions); NaN if missing.
    """
    number = np.isfinite(runs).sum(axis=1)
    mean = np.nansum(runs, axis=1) / np.maximum(number, 1)
    square = np.nansum((runs - mean[:, None]) ** 2, axis=1)
    known = (number > 1) & (mean > 0)
    if not square[known].any():
        return None
    free, size = number[known] - 1, np.maximum(mean, 1.0)
    found = []
    for power in _SPREADS:
        shape = size ** (2 * power)
        level = float((square[known] / mean[known] ** 2 / shape[known]).sum() / free.sum())
        found.append((float((free * np.log(level * shape[known])).sum()), power, level))
    _, power, level = min(found)
    return np.asarray(np.sqrt(level / np.maximum(number, 1)) * size**power)


def _laws(counts: Floats, grid: _Grid, unit: float, errors: Floats | None) -> Laws:
    """Return the laws of one vector under one grid.

    counts: the vector, shape (configurations,). unit: greatest common divisor of the counts. errors: relative standard
    errors of the counts, same shape; None if they are unknown.
    """
    if not counts.any():
        return Laws(1.0, (), True, lambda place: Distribution(0.0))
    raw = float(np.log2(1.0 + counts).sum())
    exact = _exact(grid, counts, unit)
    # The bits of a description without a law, which lists all counts. The counts are divided by their common divisor,
    # because the divisor is no evidence for a law.
    alone = float(np.log2(1.0 + counts / unit).sum()) + _LAWLESS
    if exact is not None and exact.bits < min(alone - WINDOW / 2, max(_DEAR, 0.3 * raw)):
        return exact
    noisy = min(
        filter(None, (sum_laws(counts, grid.columns, errors=errors), _conditional(counts, grid, errors))),
        key=_bits,
        default=None,
    )
    if noisy is None:
        return exact if exact is not None else _unknown(counts, raw)
    lawless = replace(noisy, bits=min(noisy.bits, alone))
    if exact is None or exact.bits > max(_DEAR, 0.3 * raw, noisy.bits):
        return lawless
    return mixture([exact, replace(noisy, bits=alone)])


def _exact(grid: _Grid, counts: Floats, unit: float) -> Laws | None:
    """Return the exact laws of a vector: products of factors, sums of products and polynomials; None without any."""
    library = grid.library(counts > 0)
    found = exact_laws(counts, library, grid.indicators, grid.dimensions, grid.hidden, grid.numbers, unit)
    if found is not None and found.bits < _CHEAP:
        return found
    sums = exact_sums(counts, grid.terms, grid.numbers, unit) or grid.polynomials.find(counts, unit)
    laws = list(filter(None, (found, sums)))
    return mixture(laws) if laws else None


def _bits(laws: Laws) -> float:
    return laws.bits


def _conditional(counts: Floats, grid: _Grid, errors: Floats | None) -> Laws | None:
    """Return laws of the form sum · condition, for code that only some configurations execute.

    An example of a condition is [p > 1]. Returns None if no count is 0, or if no condition or no sum fits.
    """
    support = counts > 0
    fitting = [c for c in grid.indicators if not c.values[~support].any() and c.values[support].all()]
    if support.all() or not fitting:
        return None
    columns = [replace(column, values=column.values[support]) for column in grid.columns]
    own = None if errors is None else errors[support]
    laws = sum_laws(counts[support], [column for column in columns if column.values.all()], errors=own)
    if laws is None:
        return None
    best = min(condition.bits for condition in fitting)
    held = [(2.0 ** (best - condition.bits), grid.numbers[condition.name]) for condition in fitting]

    def predict(place: Place) -> Distribution:
        known = laws.predict(place)
        return Distribution.mixture((weight, known.scaled(float(place.values[number]))) for weight, number in held)

    def cases() -> list[Case]:
        return [
            times(case, Case(weight, ((1.0, condition.name),), partial(_condition, grid.numbers[condition.name])))
            for case in laws.each()
            for condition, (weight, _) in zip(fitting, held, strict=True)
        ]

    name = min(fitting, key=lambda condition: condition.bits).name
    terms = tuple((coefficient, f"{product}·{name}".lstrip("·")) for coefficient, product in laws.terms)
    return Laws(laws.bits + best, terms, laws.exact, predict, laws.noise, cases)


def _condition(number: int, place: Place) -> float:
    return float(place.values[number])


def _unknown(counts: Floats, raw: float) -> Laws:
    top = float(counts.max())
    return Laws(
        raw + 30, ((top, UNKNOWN),), False, lambda place: Distribution(np.array([0.3 * top, top, 3 * top])), 1.0
    )


def _combine(distinct: Mapping[bytes, Floats], grid: _Grid) -> None:
    """Replace laws in `grid.laws` by exact sums of vectors with exact laws, if such a sum has fewer bits."""
    explained = sorted(
        (key for key, law in grid.laws.items() if law.exact and law.bits < _MOST_BITS and distinct[key].any()),
        key=lambda key: grid.laws[key].bits,
    )[:_EXPLAINED]
    if len(explained) < 2:
        return
    more = math.log2(len(explained))
    columns = [
        Column(f"({law.text})", more + law.bits / 4, distinct[key], law.predict, law.each)
        for key, law in ((key, grid.laws[key]) for key in explained)
    ]
    for key, vector in distinct.items():
        law = grid.laws[key]
        if law.exact and law.bits < _DEAR:
            continue
        found = sum_laws(vector, columns, exact_only=True)
        if found is not None and found.bits < law.bits:
            grid.laws[key] = found


def _candidates(
    points: Floats, names: Sequence[str], ranks: str | None, known: Sequence[ProcessGrid]
) -> list[tuple[ProcessGrid | None, float]]:
    """Return the possible process grids of a program as pairs (grid, prior bits in favour of the grid).

    - ranks: name of the parameter that is the number of ranks. Without this name, the only grid is None. If the number
      of ranks does not vary, the only grid has one dimension.
    - known: grids that the program created, that the user declared, or that fit the messages.
    """
    if ranks is None:
        return [(None, 0.0)]
    p = points[:, list(names).index(ranks)]
    if not np.ptp(p):
        return [(ProcessGrid(ranks, _RULE, 1), 0.0)]
    own = [grid for grid in known if grid.parameter == ranks]
    sure = bool(own) and bool(own[0].source) and len({grid.dimensions for grid in own}) == 1
    found: list[tuple[ProcessGrid | None, float]] = []
    for dimensions in DIMENSIONS:
        bits = _PRIOR[dimensions] + (_POWERS if dimensions > 1 and _are_powers(p, dimensions) else 0.0)
        alike = next((place for place, grid in enumerate(own) if grid.dimensions == dimensions), None)
        if alike is None:
            found.append((ProcessGrid(ranks, _RULE, dimensions), bits))
        else:
            found.append((own[alike], bits + (_KNOWN if sure and alike == 0 else _LIKELY)))
    plane, bits = found[1]
    if len(own) != 1 and plane is not None and (rule := _turned(plane, p)):
        found.append((ProcessGrid(ranks, rule, 2), bits - _TURNED))
    return found


def _turned(grid: ProcessGrid, ranks: Floats) -> str | None:
    """Return the rule of grids with ascending extents, such as 2x3, except px1 for prime p.

    Some programs create such grids: they divide the longer side of a domain until each part is at most as wide as high.

    Returns None if no measured number of ranks is prime, if the rule of `grid` is not "balanced", or if `grid` has the
    same extents at all measured numbers of ranks. The order of the dimensions does not matter.
    """
    numbers = sorted({int(p) for p in ranks.tolist() if float(p).is_integer()})
    primes = [p for p in numbers if p > 1 and all(p % d for d in range(2, math.isqrt(p) + 1))]
    rule = ", but ".join(("balanced, smallest first", " and ".join(f"{p}x1" for p in primes)))
    if not primes or not grid.rule.startswith("balanced"):
        return None
    both = (grid.extents(ranks), ProcessGrid(grid.parameter, rule, 2).extents(ranks))
    return None if np.array_equal(*both) or np.array_equal(both[0], both[1][:, ::-1]) else rule


def _weights(grids: Mapping[int, _Grid], distinct: Mapping[bytes, Floats], prior: Sequence[float]) -> dict[int, float]:
    """Return the posterior probabilities of the grids by number. prior: bits in favour of each grid."""
    score = dict(enumerate(prior))
    seen = {number: grid.visible for number, grid in grids.items()}
    for key in distinct:
        bits = {number: grid.laws[key].bits for number, grid in grids.items()}
        # Only exact laws distinguish grids whose varying extents are equal at all measured configurations.
        for number, grid in grids.items():
            if not grid.laws[key].exact:
                bits[number] = min(bits[other] for other in grids if seen[other] == seen[number])
        best = min(bits.values())
        for number in grids:
            score[number] -= _SHARE * min(max(bits[number] - best - _ALIKE, 0.0), 20.0)
    top = max(score.values())
    weights = {number: 2.0 ** (value - top) for number, value in score.items()}
    total = sum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


def _are_powers(ranks: Floats, power: int) -> bool:
    """Return whether there are at least three numbers of ranks, and all are squares (power 2) or cubes (power 3)."""
    roots = np.rint(ranks ** (1 / power))
    return len(set(ranks.tolist())) > 2 and bool((roots**power == ranks).all())
