# SPDX-License-Identifier: Apache-2.0
"""The factors of the grammar, as columns over configurations.

A domain with an extent N in each dimension is divided into P_d parts along dimension d. A loop of one rank runs over
its part plus a constant c. Summed over the ranks, a nest of such loops is a product of linear forms N + c·P_d, whether
the parts are equal or not. So the first kind of factor is a linear form a·N + b·P_d + c. Others are the extents of the
process grid and what neighbours in it exchange, logarithms, levels of a multigrid, sizes of the largest part, powers.

The price of a factor is in bits: -log2 of how often factors of its kind and its numbers occur.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..process_grid import LETTERS, ProcessGrid

Floats = NDArray[np.float64]

PRICE = {
    "size": 2.0,  # N
    "extent": 2.5,  # P_d, and p
    "form": 4.0,  # N + b·P_d + c
    "edges": 4.0,  # P_d - 1, pairs of neighbours
    "logarithm": 5.0,
    "levels": 7.0,
    "part": 8.0,  # the largest part
    "power": 7.0,  # N^(i/j)
    "inverse": 2.0,  # more, for one over a factor
}
"""Bits of a factor of each kind, without those of its numbers."""

_SHIFTS = (-4, -3, -2, -1, 0, 1, 2, 3, 4)  # constants of linear forms
_FAR_SHIFTS = (-8, -7, -6, -5, 5, 6, 7, 8)  # the same, of sizes alone


@dataclass(frozen=True, eq=False)
class Factor:
    """A function of the parameters. values: at configurations, (configurations,).

    covers: dimensions of the process grid that it sums over. A nest of loops that all ranks execute has, for each of
    them, one factor that does.
    """

    name: str
    bits: float
    values: Floats
    covers: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Axes:
    """The parameters as columns over configurations: ranks p, extents of a process grid, sizes.

    measured: how many of the configurations, the first ones, decide which factors there are. ranks: (configurations,),
    ones without such a parameter; extents: (dimensions, configurations); sizes: by name.
    """

    measured: int
    ranks: Floats
    extents: Floats
    sizes: dict[str, Floats]

    def extent_name(self, dimension: int) -> str:
        """Return what formulas call an extent: px, py, pz, or p in a chain; (px) if a parameter has this name."""
        name = f"p{LETTERS[dimension]}" if len(self.extents) > 1 else "p"
        return f"({name})" if name in self.sizes else name

    def varies(self, values: Floats) -> bool:
        """Whether a column has different values where something was measured."""
        return bool(np.ptp(values[: self.measured]))

    @property
    def usable_sizes(self) -> dict[str, Floats]:
        """The sizes that vary and are positive."""
        found = self.sizes.items()
        return {name: size for name, size in found if self.varies(size) and size[: self.measured].min() > 0}

    @property
    def hidden(self) -> tuple[int, ...]:
        """Dimensions of the grid that no measured configuration divides."""
        if not self.varies(self.ranks):
            return ()
        return tuple(d for d, extent in enumerate(self.extents) if not self.varies(extent))


def axes_of(points: Floats, names: Sequence[str], grid: ProcessGrid | None, measured: int) -> Axes:
    """Return the columns of configurations (configurations, parameters) under a process grid; None: no ranks vary."""
    ranks = grid.parameter if grid is not None else None
    sizes = {name: points[:, column] for column, name in enumerate(names) if name != ranks}
    if grid is None:
        one = np.ones(len(points))
        return Axes(measured, one, one[None], sizes)
    p = points[:, list(names).index(grid.parameter)]
    return Axes(measured, p, grid.extents(p).T, sizes)


def _number_bits(*numbers: float) -> float:
    """Return the bits of small whole numbers: 0 costs nothing, signs and sizes do."""
    return sum(1.0 + 1.5 * math.log2(abs(number)) if number else 0.0 for number in numbers)


def factors_of(axes: Axes) -> list[Factor]:
    """Return all factors of the grammar over these columns; their probabilities 2^-bits add up to 1."""
    return normalized([*_of_grid(axes), *_of_sizes(axes)])


def normalized(factors: Sequence[Factor]) -> list[Factor]:
    """Return factors whose probabilities add up to 1: a grammar with more factors pays more for each."""
    total = math.log2(sum(2.0**-factor.bits for factor in factors)) if factors else 0.0
    return [replace(factor, bits=factor.bits + total) for factor in factors]


def _of_grid(axes: Axes) -> Iterator[Factor]:
    p, extents = axes.ranks, axes.extents
    if not axes.varies(p):
        return
    dimensions = len(extents)
    every = frozenset(range(dimensions))
    base, edges = PRICE["extent"], PRICE["edges"]
    named = [(axes.extent_name(d), extents[d], frozenset({d})) for d in range(dimensions) if d not in axes.hidden]
    if dimensions > 1:
        named.append(("p", p, every))
    for name, values, covered in named:
        yield Factor(name, base, values, covered)
        yield Factor(f"1/{name}", base + PRICE["inverse"], 1 / values)
        yield Factor(f"({name} - 1)", edges, values - 1, covered)
        yield Factor(f"({name} - 2)", edges + 3, np.maximum(values - 2, 0), covered)
        yield Factor(f"({name} + 1)", edges + 3, values + 1, covered)
        yield Factor(f"sqrt({name})", PRICE["power"], np.sqrt(values))
        yield Factor(f"log2({name})", PRICE["logarithm"], np.log2(values))
        whole = np.ceil(np.log2(values) - 1e-9)
        yield Factor(f"ceil(log2({name}))", PRICE["logarithm"] + 1, whole)
        yield Factor(f"(1 + ceil(log2({name})))", PRICE["logarithm"] + 2, 1 + whole)
    if dimensions > 1:
        inverse = 1 / extents
        yield Factor("sum(pd - 1)", edges, (extents - 1).sum(axis=0), every)
        yield Factor("sum(pd)", edges + 1, extents.sum(axis=0), every)
        yield Factor("sum(1 - 1/pd)", edges, (1 - inverse).sum(axis=0))
        yield Factor("p·sum(1 - 1/pd)", base, p * (1 - inverse).sum(axis=0), every)  # pairs of neighbours
        yield Factor("p·sum[pd > 1]", edges, p * (extents > 1).sum(axis=0), every)  # the same in a ring
        yield Factor("sum[pd > 1]", edges, (extents > 1).sum(axis=0).astype(np.float64))
        if dimensions > 2:
            pairs = sum((extents[a] * extents[b] for a, b in itertools.combinations(range(dimensions), 2)), 0 * p)
            yield Factor("sum(pd·pe)", edges + 2, pairs, every)


def hidden_of(axes: Axes) -> list[Factor]:
    """Return the extents that are the same wherever was measured."""
    return [Factor(axes.extent_name(d), PRICE["extent"], axes.extents[d], frozenset({d})) for d in axes.hidden]


def indicators_of(axes: Axes) -> list[Factor]:
    """Return conditions, 1 where they hold and else 0: what is executed by some configurations only."""
    found = []
    named = [("p", axes.ranks, 2.0)] if axes.varies(axes.ranks) else []
    if len(axes.extents) > 1:
        named += [(axes.extent_name(d), extent, 4.0) for d, extent in enumerate(axes.extents) if axes.varies(extent)]
    named += [(name, size, 6.0) for name, size in axes.sizes.items()]
    for name, values, bits in named:
        levels = sorted(set(values[: axes.measured].tolist()))
        for below, above in itertools.pairwise(levels):
            more = 0.0 if below == 1 and name.startswith("p") else 3.0
            for text, holds in ((f"[{name} > {below:g}]", values > below), (f"[{name} < {above:g}]", values < above)):
                found.append(Factor(text, bits + more, holds.astype(np.float64)))
    return found


def _of_sizes(axes: Axes) -> Iterator[Factor]:
    for name, size in axes.usable_sizes.items():
        yield from _of_size(name, size, axes.measured)
        if not axes.varies(axes.ranks):
            continue
        for d, extent in enumerate(axes.extents):
            # What a dimension that no run divides adds is a constant there: both are members of one class.
            yield from _of_parts(name, size, axes.extent_name(d), extent, frozenset({d}))
        if len(axes.extents) > 1:
            yield Factor(f"ceil({name}/p)", PRICE["part"], np.ceil(size / axes.ranks - 1e-9))
        yield Factor(f"log2({name}/p)", PRICE["logarithm"] + 1, np.log2(size / axes.ranks))


def _of_size(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield functions of one size alone."""
    form = PRICE["form"]
    yield Factor(name, PRICE["size"], size)
    yield Factor(f"1/{name}", PRICE["power"] + PRICE["inverse"], 1 / size)
    for root in (2, 3):
        yield Factor(f"{name}^(1/{root})", PRICE["power"], size ** (1 / root))
    for shift in (*_SHIFTS, *_FAR_SHIFTS):
        if shift:
            yield Factor(f"({name} {shift:+d})", form + _number_bits(shift), size + shift)
    for half in (-3, -1, 1, 3):
        yield Factor(f"({name} {half / 2:+g})", form + 4, size + half / 2)
    for power, shift in itertools.product((2, 3), (-1, 1, -2, 2, -4, 4, -8, 8)):
        bits = PRICE["levels"] + _number_bits(shift)
        yield Factor(f"({name}^{power} {shift:+d})", bits, size**power + shift)
    yield from _logarithms(name, size)
    yield from _levels(name, size, measured)


def _of_parts(name: str, size: Floats, letter: str, extent: Floats, covered: frozenset[int]) -> Iterator[Factor]:
    """Yield functions of a size and the extent of the grid that divides it."""
    form, part = PRICE["form"], PRICE["part"]
    yield Factor(f"{name}[{letter}]", PRICE["size"], size, covered)
    for slope, shift in itertools.product(_SHIFTS, (0, -1, 1, -2, 2)):
        if slope:
            bits = form + _number_bits(slope) + 2 * _number_bits(shift)
            text = f"({name} {_signed(slope, letter)}{f' {shift:+d}' if shift else ''})"
            yield Factor(text, bits, size + slope * extent + shift, covered)
    for shift in _SHIFTS:  # the size is that of a part
        if shift:
            bits = form + 1 + _number_bits(shift)
            yield Factor(f"({name}·{letter} {shift:+d})", bits, size * extent + shift, covered)
    yield Factor(f"floor({name}/{letter})", part, np.floor(size / extent + 1e-9))
    largest = np.ceil(size / extent - 1e-9)
    for shift in _SHIFTS:
        text = f"ceil({name}/{letter})"
        yield Factor(f"({text} {shift:+d})" if shift else text, part + _number_bits(shift), largest + shift)


def _signed(slope: int, letter: str) -> str:
    return f"{'+' if slope > 0 else '-'} {abs(slope) if abs(slope) > 1 else ''}{letter}"


def _logarithms(name: str, size: Floats) -> Iterator[Factor]:
    logarithm = np.log2(size)
    yield Factor(f"log2({name})", PRICE["logarithm"], logarithm)
    yield Factor(f"(1 + log2({name}))", PRICE["logarithm"] + 2, 1 + logarithm)
    yield Factor(f"(log2({name}) - 1)", PRICE["logarithm"] + 2, logarithm - 1)
    yield Factor(f"(log2({name}) - 2)", PRICE["logarithm"] + 3, logarithm - 2)
    yield Factor(f"ceil(log2({name}))", PRICE["logarithm"] + 1, np.ceil(logarithm - 1e-9))
    yield Factor(f"floor(log2({name}))", PRICE["logarithm"] + 1, np.floor(logarithm + 1e-9))


def _levels(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Sums over the levels m = 2^l, ..., size/2, size of a multigrid: of (m + c)^k."""
    top = np.log2(size)
    if np.abs(top - np.rint(top))[:measured].max() > 1e-9:
        return
    for first, power, shift in itertools.product((0, 1, 2), (1, 2, 3), (-2, -1, 0, 1, 2, 4)):
        values = np.zeros_like(size)
        for level in range(first, int(top.max()) + 1):
            m = size / 2.0 ** (np.floor(top + 1e-9) - level)
            values += np.where(top >= level, np.maximum(m + shift, 0.0) ** power, 0.0)
        bits = PRICE["levels"] + first + power + _number_bits(shift)
        yield Factor(f"levels(m={2**first}..{name}, (m {shift:+d})^{power})", bits, values)
