# SPDX-License-Identifier: Apache-2.0
"""Process grids: how programs arrange p processes in one to three dimensions.

Counts of decomposed domains (neighbours of a rank, its share of a boundary) depend on the grid, 4 × 2, and not on its
number of processes. A rule says which grid a program takes for any number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

LETTERS = "xyzuvw"
MOST_DIMENSIONS = 3
# Larger numbers are not factorized: the extents of their grids are roots.
_LARGEST = 1 << 40
# Extents at so many numbers of processes are kept.
_FEW = 1024


@lru_cache(maxsize=4096)
def balanced(processes: int, dimensions: int) -> tuple[int, ...]:
    """Return the extents of a grid as MPI_Dims_create chooses them: as near to each other as possible, largest first.

    MPI 4.1, section 8.5.2; where several factorizations have the same sum, the one with the smallest first extent.
    """
    if dimensions == 1:
        return (processes,)
    best: tuple[int, ...] = (processes, *(1,) * (dimensions - 1))
    for first in _divisors(processes):
        rest = balanced(processes // first, dimensions - 1)
        if rest[0] <= first and (sum(rest) + first, first) < (sum(best), best[0]):
            best = (first, *rest)
    return best


@lru_cache(maxsize=4096)
def prime_factors_in_turn(processes: int, dimensions: int) -> tuple[int, ...]:
    """Return the extents that come of giving the prime factors, largest first, to the smallest extent each.

    So MPI_Dims_create works in Open MPI before version 5 and in SimGrid; largest first.
    """
    extents = [1] * dimensions
    for factor in _prime_factors(processes):
        extents[extents.index(min(extents))] *= factor
    return tuple(sorted(extents, reverse=True))


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return small + [number // divisor for divisor in reversed(small) if divisor * divisor != number]


def _prime_factors(number: int) -> list[int]:
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return sorted([*found, number] if number > 1 else found, reverse=True)


# By name, whether the smallest extent comes first, and who chooses the extents. The first ones are likelier.
RULES = {
    "balanced": (balanced, False),
    "balanced, smallest first": (balanced, True),
    "prime factors in turn": (prime_factors_in_turn, False),
    "prime factors in turn, smallest first": (prime_factors_in_turn, True),
}


# What follows a rule that a program does not follow everywhere: "balanced, but 1x3 and 5x2".
_EXCEPT, _AND = ", but ", " and "


@lru_cache(maxsize=256)
def _parsed(rule: str) -> tuple[str, dict[int, tuple[int, ...]]]:
    """Return a rule of `RULES`, and the grids that are others by number of processes; ValueError if it is none."""
    base, *others = rule.split(_EXCEPT)
    if base not in RULES or len(others) > 1:
        raise ValueError(f"{rule!r} is no rule of process grids")
    grids = [tuple(int(own) for own in text.split("x")) for text in (others[0].split(_AND) if others else [])]
    return base, {math.prod(grid): grid for grid in grids}


def is_rule(rule: str, dimensions: int) -> bool:
    """Whether a text is a rule of grids of so many dimensions: one of `RULES`, perhaps with grids that are others."""
    try:
        _, others = _parsed(rule)
    except ValueError:
        return False
    return all(len(grid) == dimensions and min(grid) > 0 for grid in others.values())


def extents(rule: str, processes: float, dimensions: int) -> tuple[float, ...]:
    """Return the grid of a number of processes by a rule (`is_rule`); roots where the number is not whole."""
    if not float(processes).is_integer() or not 1 <= processes <= _LARGEST:
        return (float(processes ** (1.0 / dimensions)),) * dimensions
    base, others = _parsed(rule)
    if int(processes) in others:
        return tuple(map(float, others[int(processes)]))
    choose, smallest_first = RULES[base]
    found = choose(int(processes), dimensions)
    return tuple(map(float, reversed(found) if smallest_first else found))


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the grid of so many dimensions that a rule gives; index: from 0."""

    rule: str
    dimensions: int
    index: int

    def extent(self, processes: _Floats) -> _Floats:
        """Return the extent at numbers of processes; same shape, perhaps for reading only."""
        if processes.size > _FEW:
            return _extent(self, processes)
        # models are evaluated at few sets of points, many times
        return _extent_of_few(self, np.asarray(processes, dtype=np.float64).tobytes()).reshape(processes.shape)

    def name(self, parameter: str) -> str:
        """Return how the extent is called in formulas: px, py, pz of p; p itself in a chain."""
        return parameter if self.dimensions == 1 else parameter + LETTERS[self.index]


def _extent(axis: Axis, processes: _Floats) -> _Floats:
    distinct, place = np.unique(processes, return_inverse=True)
    found = np.array([extents(axis.rule, p, axis.dimensions)[axis.index] for p in distinct.tolist()])
    result: _Floats = found[place].reshape(processes.shape)
    return result


@lru_cache(maxsize=4096)
def _extent_of_few(axis: Axis, processes: bytes) -> _Floats:
    """Return the extents at numbers of processes, for reading only."""
    result = _extent(axis, np.frombuffer(processes, dtype=np.float64))
    result.flags.writeable = False
    return result


@dataclass(frozen=True)
class ProcessGrid:
    """The grids of a program: the parameter that is the number of processes, and the rule (`is_rule`).

    source: how it is known: "MPI_Cart_create", "declared"; empty if it is assumed. periodic: for each dimension whether
    the first rank and the last are neighbours; empty if that is not known.
    """

    parameter: str
    rule: str
    dimensions: int
    source: str = ""
    periodic: tuple[bool, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All dimensions."""
        return tuple(Axis(self.rule, self.dimensions, index) for index in range(self.dimensions))

    def at(self, processes: float) -> tuple[float, ...]:
        """Return the grid of a number of processes."""
        return extents(self.rule, processes, self.dimensions)

    def extents(self, processes: _Floats) -> _Floats:
        """Return the grids of numbers of processes (C,), (C, dimensions)."""
        return np.stack([axis.extent(processes) for axis in self.axes], axis=1)

    def __str__(self) -> str:
        """Say which grid it is: "px × py, balanced", "p, a chain"."""
        if self.dimensions == 1:
            return f"{self.parameter}, a chain"
        return f"{' × '.join(axis.name(self.parameter) for axis in self.axes)}, {self.rule}"


def infer(parameter: str, processes: Sequence[float], measured: NDArray[np.int64], source: str) -> ProcessGrid | None:
    """Return the rule that gives most of the measured extents (C, d) of numbers of processes, the first of equals.

    What else was measured are exceptions to it (a program that compares surfaces in floating point takes 2x1x3 where
    1x2x3 is as good). None if no rule gives more grids of several processes than there are exceptions.
    """
    dimensions = measured.shape[1]
    grids = dict(zip(map(int, processes), (tuple(own) for own in measured.tolist()), strict=True))
    wrong = {
        rule: {p: own for p, own in grids.items() if extents(rule, p, dimensions) != tuple(map(float, own))}
        for rule in RULES
    }
    rule = min(wrong, key=lambda name: len(wrong[name]))
    others = wrong[rule]
    if 2 * len(others) >= sum(p > 1 for p in grids) and others:
        return None
    said = _EXCEPT + _AND.join("x".join(map(str, own)) for own in others.values()) if others else ""
    return ProcessGrid(parameter, rule + said, dimensions, source)


def assumed(parameter: str) -> tuple[ProcessGrid, ...]:
    """Return the grids that a program may have of which nothing is known, the likeliest first."""
    rules = ("balanced", "balanced, smallest first")
    chain = ProcessGrid(parameter, rules[0], 1)
    return (chain, *(ProcessGrid(parameter, rule, dimensions) for dimensions in (2, 3) for rule in rules))


def telling(grid: ProcessGrid, measured: Sequence[float], number: int = 2) -> list[int]:
    """Return the next numbers of processes to measure so that the extents of a grid can be distinguished.

    These are the smallest numbers, up to eight times the largest measured one, that raise the rank of the products of 1
    and 1/x over all dimensions; none if these products are linearly independent already.
    """
    known = sorted({int(p) for p in measured})
    found: list[int] = []
    for p in range(max(2, min(known, default=1)), 8 * max(known, default=1) + 1):
        if p in known:
            continue
        if len(found) == number or _rank(grid, known) == 2**grid.dimensions:
            break
        if _rank(grid, [*known, p]) > _rank(grid, known):
            found.append(p)
            known.append(p)
    return found


def _rank(grid: ProcessGrid, processes: Sequence[int]) -> int:
    shares = 1.0 / grid.extents(np.array(processes, dtype=np.float64))
    columns = np.ones((len(processes), 1))
    for share in shares.T:
        columns = np.concatenate([columns, columns * share[:, None]], axis=1)
    return int(np.linalg.matrix_rank(columns))
