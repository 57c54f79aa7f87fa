# SPDX-License-Identifier: Apache-2.0
"""All counts of a program together: equal vectors are modeled once, and the process grid is decided by all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .distribution import Distribution
from .factors import Axes, Floats, axes_of, factors_of, hidden_of, indicators_of
from .laws import ONE, Laws, Place, exact_laws
from .products import Library
from .sums import Column, columns_of, sum_laws, terms_of

DIMENSIONS = (1, 2, 3)
_PRIOR = {1: 0.0, 2: 1.0, 3: 1.0}  # bits in favour of grids of so many dimensions, before the counts are looked at
_HINT = 6.0  # bits in favour of a grid that the archives name
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
    ranks: str | None
    dimensions: int
    axes: Axes = field(init=False)
    numbers: dict[str, int] = field(init=False)
    columns: list[Column] = field(init=False)
    libraries: dict[bytes, Library] = field(default_factory=dict)
    laws: dict[bytes, Laws] = field(default_factory=dict)
    _places: dict[tuple[float, ...], Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        measured = len(self.points)
        self.axes = axes_of(self.points, self.names, self.ranks, self.dimensions, measured)
        self.factors, self.hidden = factors_of(self.axes), hidden_of(self.axes)
        self.indicators, terms = indicators_of(self.axes), terms_of(self.axes)
        every = [*self.factors, *self.hidden, *self.indicators, *terms]
        distinct = dict.fromkeys([ONE, *(entry.name for entry in every)])
        self.numbers = {name: number for number, name in enumerate(distinct)}
        self.columns = columns_of(terms, self.numbers)
        if not self.axes.varies(self.axes.ranks):
            self.dimensions = 0

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
            axes = axes_of(points, self.names, self.ranks, len(self.axes.extents), len(self.points))
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
    hints: Collection[int] = (),
) -> list[Model]:
    """Return what is known of each vector.

    points: (configurations, parameters); vectors: counts (configurations,) summed over the ranks; ranks: the parameter
    that is the number of ranks; hints: dimensions of process grids that the archives name.
    """
    points = np.asarray(points, dtype=np.float64)
    ranks = ranks if ranks in names else None
    primitive = [_primitive(np.asarray(vector, dtype=np.float64)) for vector in vectors]
    distinct = {vector.tobytes(): vector for vector, _ in primitive}
    several = ranks is not None and len(set(points[:, list(names).index(ranks)].tolist())) > 1
    grids = {d: _Grid(points, names, ranks, d) for d in (DIMENSIONS if several else (1,))}
    for key, vector in distinct.items():
        for grid in grids.values():
            grid.laws[key] = _laws(vector, grid)
    for grid in grids.values():
        _combine(distinct, grid)
    program = Program(grids, _weights(grids, distinct, hints))
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
    noisy = sum_laws(counts, grid.columns)
    if noisy is None or (exact is not None and exact.bits <= noisy.bits):
        return exact if exact is not None else _unknown(counts, raw)
    return noisy


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


def _weights(grids: Mapping[int, _Grid], distinct: Mapping[bytes, Floats], hints: Collection[int]) -> dict[int, float]:
    """Return the posterior of the grids."""
    score = {d: _PRIOR[d] + (_HINT if d in hints else 0.0) for d in grids}
    for d in (2, 3):
        if d in score and _are_powers(next(iter(grids.values())).axes.ranks, d):
            score[d] += _POWERS
    for key in distinct:
        best = min(grid.laws[key].bits for grid in grids.values())
        for dimensions, grid in grids.items():
            score[dimensions] -= _SHARE * min(max(grid.laws[key].bits - best - _ALIKE, 0.0), 20.0)
    top = max(score.values())
    weights = {dimensions: 2.0 ** (value - top) for dimensions, value in score.items()}
    total = sum(weights.values())
    return {dimensions: weight / total for dimensions, weight in weights.items()}


def _are_powers(ranks: Floats, power: int) -> bool:
    """Whether three or more numbers of ranks are all squares, or cubes."""
    roots = np.rint(ranks ** (1 / power))
    return len(set(ranks.tolist())) > 2 and bool((roots**power == ranks).all())
