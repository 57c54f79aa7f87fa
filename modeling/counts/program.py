# SPDX-License-Identifier: Apache-2.0
"""All counts of a program together: equal vectors are modeled once, and the process grid is decided by all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..process_grid import ProcessGrid
from .distribution import Distribution
from .factors import Axes, Floats, axes_of, factors_of, hidden_of, indicators_of
from .laws import ONE, Laws, Place, exact_laws
from .products import Library
from .sums import Column, columns_of, sum_laws, terms_of

DIMENSIONS = (1, 2, 3)
_PRIOR = {1: 0.0, 2: 1.0, 3: 1.0}  # bits in favour of grids of so many dimensions, before the counts are looked at
_RULE = "balanced"
_KNOWN = 20.0  # bits in favour of a grid that the program made, or that is declared
_LIKELY = 4.0  # bits in favour of the likeliest grid of those that fit the messages
_POWERS = 5.0  # bits in favour of a grid if all numbers of ranks are squares, or cubes: somebody chose them
_SHARE = 0.3  # of what the counts of one vector say of the grid: those of one program are not independent
_FREE = 8.0  # bits by which a count may speak against a grid before it doubts the decision of all counts
_ALIKE = 3.0  # bits between laws of a count that say nothing of the grid
_MOST_BITS = 60.0
_DEAR = 45.0  # exact laws of so many bits compete with sums
_LARGEST = 2.0**53  # of counts that are known to the last digit
_EXPLAINED = 160  # counts of the program that sums may be made of


@dataclass(frozen=True, eq=False)
class Model:
    """What is known of one vector. text: the likeliest law, bits: of that."""

    program: Program
    key: bytes
    unit: float

    def at(self, point: Sequence[float]) -> Distribution:
        """Return what the count is at a point, one value per parameter."""
        return self.program.predict(self.key, tuple(map(float, point))).scaled(self.unit)

    @property
    def law(self) -> Laws:
        """The laws under the likeliest grid."""
        return self.program.leading(self.key).scaled(self.unit)


@dataclass(eq=False)
class _Grid:
    """One process grid and what it says of the vectors of a program."""

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
        self.factors, self.hidden = factors_of(self.axes), hidden_of(self.axes)
        self.indicators, terms = indicators_of(self.axes), terms_of(self.axes)
        every = [*self.factors, *self.hidden, *self.indicators, *terms]
        distinct = dict.fromkeys([ONE, *(entry.name for entry in every)])
        self.numbers = {name: number for number, name in enumerate(distinct)}
        self.columns = columns_of(terms, self.numbers)
        self.dimensions = len(self.axes.extents) if self.axes.varies(self.axes.ranks) else 0

    def library(self, support: NDArray[np.bool_]) -> Library:
        """Return the factor classes where something was counted."""
        key = support.tobytes()
        if key not in self.libraries:
            self.libraries[key] = Library(self.factors, support)
        return self.libraries[key]

    def place(self, point: tuple[float, ...]) -> Place:
        """Return the values of all factors and terms at a point."""
        if point not in self._places:
            points = np.vstack([self.points, point])
            axes = axes_of(points, self.names, self.grid, len(self.points))
            every = [*factors_of(axes), *hidden_of(axes), *indicators_of(axes), *terms_of(axes)]
            values = np.ones(len(self.numbers))
            for entry in every:
                values[self.numbers[entry.name]] = entry.values[-1]
            self._places[point] = Place(values)
        return self._places[point]


@dataclass(eq=False)
class Program:
    """The laws of all counts of a program, by grid. weights: the posterior of the grids."""

    grids: Mapping[int, _Grid]
    weights: Mapping[int, float]
    _known: dict[tuple[bytes, tuple[float, ...]], Distribution] = field(default_factory=dict)

    def predict(self, key: bytes, point: tuple[float, ...]) -> Distribution:
        """Return what a count is at a point."""
        if (key, point) not in self._known:
            shares = [(self.grids[d], weight) for d, weight in self._shares(key)]
            parts = [(weight, grid.laws[key].predict(grid.place(point))) for grid, weight in shares]
            self._known[key, point] = Distribution.mixture(parts) if len(parts) > 1 else parts[0][1]
        return self._known[key, point]

    def leading(self, key: bytes) -> Laws:
        """Return the laws of a count under the likeliest grid."""
        return self.grids[max(self._shares(key), key=lambda entry: entry[1])[0]].laws[key]

    def _shares(self, key: bytes) -> list[tuple[int, float]]:
        """Return the grids of a count and their weights: those of the program, less what this count speaks against."""
        bits = {d: grid.laws[key].bits for d, grid in self.grids.items()}
        best = min(bits.values())
        shares = {d: self.weights[d] * 2.0 ** -max(bits[d] - best - _FREE, 0.0) for d in bits}
        most = max(shares.values())
        return [(d, share) for d, share in shares.items() if share > 1e-4 * most]


def fit(
    points: Floats,
    names: Sequence[str],
    vectors: Iterable[Floats],
    ranks: str | None = "p",
    known: Sequence[ProcessGrid] = (),
) -> list[Model]:
    """Return what is known of each vector.

    points: (configurations, parameters); vectors: counts (configurations,) summed over the ranks; ranks: the parameter
    that is the number of ranks; known: what the process grid may be, the likeliest first.
    """
    points = np.asarray(points, dtype=np.float64)
    primitive = [_primitive(np.asarray(vector, dtype=np.float64)) for vector in vectors]
    distinct = {vector.tobytes(): vector for vector, _ in primitive}
    candidates = _candidates(points, names, ranks if ranks in names else None, known)
    grids = {number: _Grid(points, names, grid) for number, (grid, _) in enumerate(candidates)}
    for key, vector in distinct.items():
        for grid in grids.values():
            grid.laws[key] = _laws(vector, grid)
    for grid in grids.values():
        _combine(distinct, grid)
    program = Program(grids, _weights(grids, distinct, [bits for _, bits in candidates]))
    return [Model(program, vector.tobytes(), unit) for vector, unit in primitive]


def _primitive(vector: Floats) -> tuple[Floats, float]:
    """Return the vector divided by the greatest common divisor of its counts, and that; by 1 if they are not whole."""
    whole = np.rint(vector)
    if not whole.any() or np.abs(vector - whole).max() > 1e-6 or whole.max() > _LARGEST:
        return vector, 1.0
    unit = int(np.gcd.reduce(whole.astype(np.int64)))
    return whole / unit, float(unit)


def _laws(counts: Floats, grid: _Grid) -> Laws:
    """Return the laws of counts that are not all 0 under one grid."""
    if not counts.any():
        return Laws(1.0, "0", True, lambda place: Distribution(0.0))
    library = grid.library(counts > 0)
    exact = exact_laws(counts, library, grid.indicators, grid.dimensions, grid.hidden, grid.numbers)
    raw = float(np.log2(1.0 + counts).sum())
    if exact is not None and exact.bits < max(_DEAR, 0.3 * raw):
        return exact
    noisy = min(filter(None, (sum_laws(counts, grid.columns), _conditional(counts, grid))), key=_bits, default=None)
    if noisy is None or (exact is not None and exact.bits <= noisy.bits):
        return exact if exact is not None else _unknown(counts, raw)
    return noisy


def _bits(laws: Laws) -> float:
    return laws.bits


def _conditional(counts: Floats, grid: _Grid) -> Laws | None:
    """Return sums for what is executed under a condition of the grammar only; None if there is none that fits."""
    support = counts > 0
    fitting = [c for c in grid.indicators if not c.values[~support].any() and c.values[support].all()]
    if support.all() or not fitting:
        return None
    columns = [replace(column, values=column.values[support]) for column in grid.columns]
    laws = sum_laws(counts[support], [column for column in columns if column.values.all()])
    if laws is None:
        return None
    best = min(condition.bits for condition in fitting)
    held = [(2.0 ** (best - condition.bits), grid.numbers[condition.name]) for condition in fitting]

    def predict(place: Place) -> Distribution:
        known = laws.predict(place)
        return Distribution.mixture((weight, known.scaled(float(place.values[number]))) for weight, number in held)

    name = min(fitting, key=lambda condition: condition.bits).name
    return Laws(laws.bits + best, f"({laws.text})·{name}", laws.exact, predict, laws.noise)


def _unknown(counts: Floats, raw: float) -> Laws:
    top = float(counts.max())
    return Laws(raw + 30, "not known", False, lambda place: Distribution(np.array([0.3 * top, top, 3 * top])), 1.0)


def _combine(distinct: Mapping[bytes, Floats], grid: _Grid) -> None:
    """Explain what has no exact law by sums of counts of the program that have one."""
    explained = sorted(
        (key for key, law in grid.laws.items() if law.exact and law.bits < _MOST_BITS and distinct[key].any()),
        key=lambda key: grid.laws[key].bits,
    )[:_EXPLAINED]
    if len(explained) < 2:
        return
    more = math.log2(len(explained))
    columns = [
        Column(f"({grid.laws[key].text})", more + grid.laws[key].bits / 4, distinct[key], grid.laws[key].predict)
        for key in explained
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
    """Return the process grids that a program may have, with the bits in favour of each."""
    if ranks is None:
        return [(None, 0.0)]
    p = points[:, list(names).index(ranks)]
    if not np.ptp(p):
        return [(ProcessGrid(ranks, _RULE, 1), 0.0)]
    own = [grid for grid in known if grid.parameter == ranks]
    sure = bool(own) and bool(own[0].source)
    found: list[tuple[ProcessGrid | None, float]] = []
    for dimensions in DIMENSIONS:
        bits = _PRIOR[dimensions] + (_POWERS if dimensions > 1 and _are_powers(p, dimensions) else 0.0)
        alike = next((place for place, grid in enumerate(own) if grid.dimensions == dimensions), None)
        if alike is None:
            found.append((ProcessGrid(ranks, _RULE, dimensions), bits))
        else:
            found.append((own[alike], bits + (_KNOWN if sure and alike == 0 else _LIKELY / 2**alike)))
    return found


def _weights(grids: Mapping[int, _Grid], distinct: Mapping[bytes, Floats], prior: Sequence[float]) -> dict[int, float]:
    """Return the posterior of the grids. prior: bits in favour of each."""
    score = dict(enumerate(prior))
    for key in distinct:
        best = min(grid.laws[key].bits for grid in grids.values())
        for number, grid in grids.items():
            score[number] -= _SHARE * min(max(grid.laws[key].bits - best - _ALIKE, 0.0), 20.0)
    top = max(score.values())
    weights = {number: 2.0 ** (value - top) for number, value in score.items()}
    total = sum(weights.values())
    return {number: weight / total for number, weight in weights.items()}


def _are_powers(ranks: Floats, power: int) -> bool:
    """Whether three or more numbers of ranks are all squares, or cubes."""
    roots = np.rint(ranks ** (1 / power))
    return len(set(ranks.tolist())) > 2 and bool((roots**power == ranks).all())
