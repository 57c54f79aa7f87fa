# SPDX-License-Identifier: Apache-2.0
"""Generate the factors of laws of counts. A factor is a function of the parameters.

The most frequent factor is a linear form a·N + b·P_d + c. Its reason: a domain with N points in each dimension is
divided into P_d parts along dimension d. A loop of one rank over its part makes one iteration for each point, and c
more. Summed over the ranks, nested loops make Π (N + c·P_d) iterations, even if the parts have different sizes.

Other factors are extents of the process grid (P_d), pairs of neighbours in the grid, logarithms, levels of a multigrid,
sizes of the largest part, and powers.

The bits of a factor are -log2 of the probability of its kind and its numbers (`prices.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..process_grid import LETTERS, ProcessGrid
from .prices import PRICES

Floats = NDArray[np.float64]

_SHIFTS = (-4, -3, -2, -1, 0, 1, 2, 3, 4)  # constants c of linear forms N + c and N·P_d + c; slopes b of N + b·P_d + c
# Further constants c of linear forms N + c.
_FAR_SHIFTS = (-32, -24, -16, -12, -10, -8, -7, -6, -5, 5, 6, 7, 8, 10, 12, 16, 24, 32)
_PAIRS = ((2, 1), (3, 2))  # (a, b) of a·N - b: the points of a row and their neighbours on one side, or on both sides
_FAR_SLOPES = (-8, -6, -5, 5, 6, 8, 10, 12, 16)  # further slopes b of linear forms N + b·P_d
_STEP = 3.0  # bits of the threshold of a condition, unless the condition distinguishes 1 from larger values
_BASES = (2, 4, 8, 16)  # bases of rounded logarithms, and of exponentials
_CALLS = (3, 5, 6, 7)  # values of c in N^log2(c): how often a function calls itself on half of N
_BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)  # values of b in N/b, rounded
_FEWEST_LEVELS = 4  # smallest number of different values of a size N for factors base^N
_MOST_DOUBLINGS = 60  # largest base-2 logarithm of a factor base^N
_NONE: frozenset[int] = frozenset()
_LINEAR = frozenset({"size form", "half form", "divided form", "joined form", "pairs"})
GRID = frozenset({"extent", "edges", "neighbours", "line", "ring", "sums"})
"""Kinds of factors that count ranks or pairs of ranks. They depend on the process grid alone."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A function of the parameters.

    - name: the factor as text, which `formulas` can parse. bits: -log2 of its prior probability.
    - values: its values at the configurations, shape (configurations,).
    - covers: the dimensions of the process grid over which the factor is a sum. Such a factor grows with the extents of
      these dimensions. The count of nested loops that all ranks execute has one such factor for each dimension.
    - basic: whether the factor may occur in sums of three products. Forms with a constant, such as N + 2, are not
      basic, because they are sums of basic factors.
    - kind: the key of its penalty in `PRICES`. number: the bits of the numbers in the factor.
    - shape: for a linear form, its text with N and P in place of the names of the size and the extent; otherwise "".
    """

    name: str
    bits: float
    values: Floats
    covers: frozenset[int] = frozenset()
    basic: bool = False
    kind: str = ""
    number: float = 0.0
    shape: str = ""

    @property
    def text(self) -> str:
        """Return the factor as text for formulas. The size n that the extent px divides is n, and not n[px]."""
        return self.name.split("[")[0] if self.kind == "divided size" else self.name


@dataclass(frozen=True, eq=False)
class Axes:
    """The values of the parameters at the configurations: ranks p, extents of a process grid, sizes.

    - measured: number of measured configurations, which come first. Only these determine which factors exist.
    - ranks: the number of ranks, shape (configurations,); 1 if no parameter is the number of ranks.
    - extents: the extents of the process grid, shape (dimensions, configurations).
    - sizes: all other parameters by name, each of shape (configurations,).
    """

    measured: int
    ranks: Floats
    extents: Floats
    sizes: dict[str, Floats]

    def extent_name(self, dimension: int) -> str:
        """Return the name of an extent in formulas: px, py, pz; p for a grid of one dimension.

        It is in parentheses, (px), if a parameter has the same name.
        """
        name = f"p{LETTERS[dimension]}" if len(self.extents) > 1 else "p"
        return f"({name})" if name in self.sizes else name

    def varies(self, values: Floats) -> bool:
        """Return whether values (configurations,) differ at the measured configurations."""
        return bool(np.ptp(values[: self.measured]))

    @property
    def usable_sizes(self) -> dict[str, Floats]:
        """Return the sizes that vary over the measured configurations."""
        return {name: size for name, size in self.sizes.items() if self.varies(size)}

    @property
    def hidden(self) -> tuple[int, ...]:
        """Return the dimensions of the grid whose extent is equal at all measured configurations (usually 1).

        Empty if the number of ranks does not vary.
        """
        if not self.varies(self.ranks):
            return ()
        return tuple(d for d, extent in enumerate(self.extents) if not self.varies(extent))


def axes_of(points: Floats, names: Sequence[str], grid: ProcessGrid | None, measured: int) -> Axes:
    """Return the parameters of points as `Axes`.

    points: shape (configurations, parameters). names: the names of the parameters. grid: the process grid; None if no
    parameter is the number of ranks. measured: as in `Axes`.
    """
    ranks = grid.parameter if grid is not None else None
    sizes = {name: points[:, column] for column, name in enumerate(names) if name != ranks}
    if grid is None:
        one = np.ones(len(points))
        return Axes(measured, one, one[None], sizes)
    p = points[:, list(names).index(grid.parameter)]
    return Axes(measured, p, grid.extents(p).T, sizes)


def _bits_of(*numbers: float) -> float:
    """Return the sum of the bits of numbers: 0 bits for 0, otherwise 1 + 1.5·log2|x| bits."""
    return sum(1.0 + 1.5 * math.log2(abs(number)) if number else 0.0 for number in numbers)


def _factor(
    kind: str, name: str, values: Floats, covers: frozenset[int] = _NONE, number: float = 0.0, basic: bool = False
) -> Factor:
    return Factor(name, PRICES[kind] + PRICES["number"] * number, values, covers, basic, kind, number)


def factors_of(axes: Axes) -> list[Factor]:
    """Return all factors of the grammar for these parameters, except hidden extents and conditions.

    Their probabilities 2^-bits sum to 1; products of `_lines` are not in this sum. Factors without a finite value at a
    measured configuration, such as logarithms of 0, are left out.
    """
    every = [*_of_grid(axes), *_of_sizes(axes)]
    found = normalized([factor for factor in every if np.isfinite(factor.values[: axes.measured]).all()])
    return [*found, *_lines(axes, found)]


def normalized(factors: Sequence[Factor]) -> list[Factor]:
    """Return the factors with a constant added to their bits, so that the probabilities 2^-bits sum to 1."""
    total = math.log2(sum(2.0**-factor.bits for factor in factors)) if factors else 0.0
    return [replace(factor, bits=factor.bits + total) for factor in factors]


def _lines(axes: Axes, factors: Sequence[Factor]) -> Iterator[Factor]:
    """Yield for each dimension the number of pairs of neighbouring ranks along it, such as (px - 1)·py.

    The bits are the bits of the product of the factors (px - 1) and py.
    """
    named = {factor.name: factor for factor in factors}
    letters = [axes.extent_name(d) for d in range(len(axes.extents))]
    for letter in letters:
        parts = [named.get(f"({letter} - 1)"), *(named.get(own) for own in letters if own != letter)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts) > 1:
            bits = sum(part.bits for part in known) + PRICES["factor"] * (len(known) - 1)
            values = np.prod([part.values for part in known], axis=0)
            name = "·".join(part.name for part in known)
            yield Factor(name, bits, values, frozenset(range(len(letters))), True, "line")


def _of_grid(axes: Axes) -> Iterator[Factor]:
    p, extents = axes.ranks, axes.extents
    if not axes.varies(p):
        return
    dimensions = len(extents)
    every = frozenset(range(dimensions))
    named = [(axes.extent_name(d), extents[d], frozenset({d})) for d in range(dimensions) if d not in axes.hidden]
    if dimensions > 1:
        named.append(("p", p, every))
    for name, values, covered in named:
        yield _factor("extent", name, values, covered, basic=True)
        yield _factor("1/extent", f"1/{name}", 1 / values)
        yield _factor("edges", f"({name} - 1)", values - 1, covered)
        yield _factor("extent form", f"max({name} - 2, 0)", np.maximum(values - 2, 0), covered)
        yield _factor("extent form", f"({name} + 1)", values + 1, covered)
        yield _factor("extent root", f"sqrt({name})", np.sqrt(values))
        yield _factor("extent logarithm", f"log2({name})", np.log2(values), basic=True)
        whole = np.ceil(np.log2(values) - 1e-9)
        yield _factor("extent steps", f"ceil(log2({name}))", whole)
        yield _factor("extent steps", f"(1 + ceil(log2({name})))", 1 + whole, number=1.0)
    if dimensions > 1:
        inverse = 1 / extents
        yield _factor("sums", "sum(pd - 1)", (extents - 1).sum(axis=0), every, basic=True)
        yield _factor("sums", "sum(pd)", extents.sum(axis=0), every, number=1.0)
        yield _factor("sums", "sum(1 - 1/pd)", (1 - inverse).sum(axis=0))
        yield _factor("neighbours", "p·sum(1 - 1/pd)", p * (1 - inverse).sum(axis=0), every, basic=True)
        # pairs of neighbouring ranks in a periodic grid
        yield _factor("ring", "p·sum[pd > 1]", p * (extents > 1).sum(axis=0), every)
        yield _factor("sums", "sum[pd > 1]", (extents > 1).sum(axis=0).astype(np.float64))
        # pairs of ranks that share a face, an edge or a corner, counted once for each rank of the pair
        around = np.prod(3 * extents - 2, axis=0) - p
        yield _factor("neighbours", "(prod(3·pd - 2) - p)", around, every, number=1.0, basic=True)
        # pairs of ranks (lower, upper), of which the upper rank is next to the lower rank or the same in each dimension
        owned = np.prod(2 * extents - 1, axis=0) - p
        yield _factor("neighbours", "(prod(2·pd - 1) - p)", owned, every, number=1.0, basic=True)
        if dimensions > 2:
            pairs = sum((extents[a] * extents[b] for a, b in itertools.combinations(range(dimensions), 2)), 0 * p)
            yield _factor("sums", "sum(pd·pe)", pairs, every, number=2.0)
            across = sum((np.prod(np.delete(extents, d, 0) - 1, axis=0) * extents[d] for d in range(dimensions)), 0 * p)
            # inner edges of the grid; at each edge, two pairs of ranks touch that share no face
            yield _factor("neighbours", "sum((pd - 1)·(pe - 1)·pf)", across, every, number=1.0, basic=True)


def hidden_of(axes: Axes) -> list[Factor]:
    """Return the extents that are equal at all measured configurations as factors."""
    return [_factor("hidden", axes.extent_name(d), axes.extents[d], frozenset({d})) for d in axes.hidden]


def indicators_of(axes: Axes) -> list[Factor]:
    """Return conditions such as [p > 1] as factors: 1 where the condition holds, otherwise 0.

    They describe code that only some configurations execute. The thresholds are measured values of the ranks, extents,
    sizes, and sizes per rank.
    """
    found = []
    named = [("p", axes.ranks, "[p]")] if axes.varies(axes.ranks) else []
    if len(axes.extents) > 1:
        extents = enumerate(axes.extents)
        named += [(axes.extent_name(d), extent, "[extent]") for d, extent in extents if axes.varies(extent)]
    named += [(name, size, "[size]") for name, size in axes.sizes.items()]
    if axes.varies(axes.ranks):
        named += [(f"{name}/p", size / axes.ranks, "[part]") for name, size in axes.usable_sizes.items()]
    for name, values, kind in named:
        levels = sorted(set(values[: axes.measured].tolist()))
        for below, above in itertools.pairwise(levels):
            one = below == 1 and kind in ("[p]", "[extent]")
            for text, holds in ((f"[{name} > {below:g}]", values > below), (f"[{name} < {above:g}]", values < above)):
                number = 0.0 if one or kind == "[part]" else _STEP
                own = "[fewer ranks]" if kind == "[p]" and not one and "<" in text else kind
                found.append(_factor(own, text, holds.astype(np.float64), number=number, basic=one))
    return found


def _of_sizes(axes: Axes) -> Iterator[Factor]:
    for name, size in axes.usable_sizes.items():
        yield from _shaped(_of_size(name, size, axes.measured), name)
        if not axes.varies(axes.ranks):
            continue
        for d, extent in enumerate(axes.extents):
            # Includes hidden dimensions. The measurements do not distinguish their factors from factors without extent.
            letter = axes.extent_name(d)
            yield from _shaped(_of_parts(name, size, letter, extent, frozenset({d})), name, letter)
        if len(axes.extents) > 1:
            yield _factor("part", f"ceil({name}/p)", np.ceil(size / axes.ranks - 1e-9))
        yield _factor("part logarithm", f"log2({name}/p)", np.log2(size / axes.ranks))


def _shaped(factors: Iterable[Factor], name: str, letter: str = "") -> Iterator[Factor]:
    """Yield the factors with their shapes (`Factor.shape`). name: name of the size. letter: name of the extent."""
    for factor in factors:
        shape = factor.name.replace(letter, "P") if letter else factor.name
        yield replace(factor, shape=shape.replace(name, "N")) if factor.kind in _LINEAR else factor


def _of_size(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield functions of one size. size: its values, shape (configurations,); measured: as in `Axes`."""
    yield _factor("size", name, size, basic=True)
    yield _factor("1/size", f"1/{name}", 1 / size)
    for root in (2, 3):
        yield _factor("size root", f"{name}^(1/{root})", size ** (1 / root))
    for shift in (*_SHIFTS, *_FAR_SHIFTS):
        if shift:
            yield _factor("size form", f"({name} {_plus(shift)})", size + shift, number=_bits_of(shift))
    for half in (-3, -1, 1, 3):
        yield _factor("half form", f"({name} {_plus(half / 2)})", size + half / 2, number=_bits_of(half))
    for width, less in _PAIRS:
        yield _factor("pairs", f"({width}·{name} - {less})", width * size - less)
    for power, shift in itertools.product((2, 3), (-1, 1, -2, 2, -4, 4, -8, 8)):
        yield _factor("power form", f"({name}^{power} {_plus(shift)})", size**power + shift, number=_bits_of(shift))
    yield from _logarithms(name, size)
    yield from _steps(name, size)
    yield from exponentials(name, size, measured)
    yield from _recursions(name, size, measured)
    yield from _blocks(name, size, measured)
    yield from _levels(name, size, measured)


def _of_parts(name: str, size: Floats, letter: str, extent: Floats, covered: frozenset[int]) -> Iterator[Factor]:
    """Yield functions of a size, and of the extent of one dimension of the process grid that divides the size.

    letter: name of the extent. covered: number of the dimension, as a set.
    """
    yield _factor("divided size", f"{name}[{letter}]", size, covered, basic=True)
    for slope, shift in (*itertools.product(_SHIFTS, (0, -1, 1, -2, 2)), *((slope, 0) for slope in _FAR_SLOPES)):
        if slope:
            number = _bits_of(slope) + 2 * _bits_of(shift)
            text = f"({name} {_signed(slope, letter)}{f' {_plus(shift)}' if shift else ''})"
            yield _factor("divided form", text, size + slope * extent + shift, covered, number=number)
    for shift in _SHIFTS:  # for a parameter that is the size of the part of one rank
        if shift:
            values = size * extent + shift
            yield _factor("joined form", f"({name}·{letter} {_plus(shift)})", values, covered, number=_bits_of(shift))
    for width, less in _PAIRS:
        yield _factor("pairs", f"({width}·{name}·{letter} - {less})", width * size * extent - less, covered)
        yield _factor("pairs", f"({width}·{name} - {less}·{letter})", width * size - less * extent, covered)
    yield _factor("part", f"floor({name}/{letter})", np.floor(size / extent + 1e-9), number=1.0)
    largest = np.ceil(size / extent - 1e-9)
    for shift in _SHIFTS:
        text = f"ceil({name}/{letter})"
        yield _factor("part", f"({text} {_plus(shift)})" if shift else text, largest + shift, number=_bits_of(shift))


def _plus(number: float) -> str:
    return f"{'+' if number > 0 else '-'} {abs(number):g}"


def _signed(slope: int, letter: str) -> str:
    return f"{'+' if slope > 0 else '-'} {f'{abs(slope)}·' if abs(slope) > 1 else ''}{letter}"


def _logarithms(name: str, size: Floats) -> Iterator[Factor]:
    logarithm = np.log2(size)
    yield _factor("logarithm", f"log2({name})", logarithm, basic=True)
    for shift in (1, -1, 2, -2, 3, -3):
        yield _factor("logarithm", f"(log2({name}) {_plus(shift)})", logarithm + shift, number=_bits_of(shift))


def _steps(name: str, size: Floats) -> Iterator[Factor]:
    """Yield the rounded logarithm k of a size, and base^k.

    Examples of k: the passes of a merge sort, the digits of a radix sort. Example of base^k: the capacity of a vector
    that doubles when it is full.
    """
    for base in _BASES:
        ratio = np.log2(size) / math.log2(base)
        for side, k in (("ceil", np.ceil(ratio - 1e-9)), ("floor", np.floor(ratio + 1e-9))):
            number, power = f"{side}(log{base}({name}))", math.log2(base) - 1
            yield _factor("steps", number, k, number=power, basic=True)
            yield _factor("doublings", f"{base}^{number}", float(base) ** k, number=power, basic=True)


def exponentials(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield base^size, for a size that is itself a logarithm, such as the number of levels or the scale of a graph.

    The measured sizes must be consecutive whole numbers. Otherwise, base^size is much larger at the largest size than
    at all others, and could explain any deviation there.
    """
    values = np.unique(size[:measured])
    if values.size < _FEWEST_LEVELS or not (np.diff(values) == 1).all():
        return
    for base in _BASES:
        if size[:measured].max() * math.log2(base) <= _MOST_DOUBLINGS:
            number = math.log2(base) - 1
            yield _factor("exponential", f"{base}^{name}", float(base) ** size, number=number, basic=True)


def _recursions(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield n^log2(c), the work of a function that calls itself c times on half of n.

    Yields nothing unless each measured size is the smallest size times a power of two.
    """
    doublings = np.log2(size[:measured] / size[:measured].min())
    if not np.array_equal(doublings, np.rint(doublings)):
        return
    for calls in _CALLS:
        yield _factor("recursion", f"{name}^log2({calls})", size ** math.log2(calls), basic=True)


def _blocks(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield the number of blocks, rounded up or down, for blocks that do not divide all measured sizes."""
    for block in _BLOCKS:
        for side, number in (("ceil", np.ceil(size / block)), ("floor", np.floor(size / block))):
            if number[:measured].min() > 0 and (number * block != size)[:measured].any():
                yield _factor("blocks", f"{side}({name}/{block})", number, number=math.log2(block), basic=True)


def _levels(name: str, size: Floats, measured: int) -> Iterator[Factor]:
    """Yield sums of (m + c)^k over the levels of a multigrid, if all measured sizes are powers of two.

    The levels have the sizes m = 2^l, …, size/2, size.
    """
    if size[:measured].min() <= 0:
        return
    top = np.log2(size)
    if np.abs(top - np.rint(top))[:measured].max() > 1e-9:
        return
    for first, power, shift in itertools.product((0, 1, 2), (1, 2, 3), (-2, -1, 0, 1, 2, 4)):
        values = np.zeros_like(size)
        for level in range(first, int(top.max()) + 1):
            m = size / 2.0 ** (np.floor(top + 1e-9) - level)
            values += np.where(top >= level, np.maximum(m + shift, 0.0) ** power, 0.0)
        number = first + power + _bits_of(shift)
        yield _factor("levels", f"levels(m={2**first}..{name}, (m {_plus(shift)})^{power})", values, number=number)
