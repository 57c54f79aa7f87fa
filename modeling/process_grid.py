# SPDX-License-Identifier: Apache-2.0
"""Process grids: the arrangement of p processes in one to three dimensions.

If a program divides a domain among its processes, counts such as the neighbours of a rank depend on the grid (such as
4 × 2), and not only on the number of processes. A rule gives the grid of a program for any number of processes. An
extent is the number of processes along one dimension of the grid.
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
# Larger numbers of processes are not factorized. All extents of their grids are the root of the number.
_LARGEST = 1 << 40
# Extents of arrays up to this size are cached.
_FEW = 1024


@lru_cache(maxsize=4096)
def balanced(processes: int, dimensions: int) -> tuple[int, ...]:
    """Return the extents of a grid as MPI_Dims_create chooses them: as close to each other as possible, largest first.

    Source: MPI 4.1, section 8.5.2, which does not define "close". Here, the extents have the smallest possible sum. If
    several grids have this sum, the first extent is the smallest possible.
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
    """Return the extents of a grid, largest first, by multiplying the smallest extent so far by each prime factor.

    The prime factors are used in descending order. This is the method of MPI_Dims_create in Open MPI before version 5
    and in SimGrid.
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


# Rules by name, the most probable first: the function of the extents, and whether the smallest extent comes first.
RULES = {
    "balanced": (balanced, False),
    "balanced, smallest first": (balanced, True),
    "prime factors in turn": (prime_factors_in_turn, False),
    "prime factors in turn, smallest first": (prime_factors_in_turn, True),
}


# A rule may have exceptions for some numbers of processes: "balanced, but 1x3 and 5x2".
_EXCEPT, _AND = ", but ", " and "


@lru_cache(maxsize=256)
def _parsed(rule: str) -> tuple[str, dict[int, tuple[int, ...]]]:
    """Return the name of the rule in `RULES`, and its exceptions by number of processes.

    Raises ValueError for an invalid rule.
    """
    base, *others = rule.split(_EXCEPT)
    if base not in RULES or len(others) > 1:
        raise ValueError(f"{rule!r} is not a rule of process grids")
    grids = [tuple(int(own) for own in text.split("x")) for text in (others[0].split(_AND) if others else [])]
    return base, {math.prod(grid): grid for grid in grids}


def is_rule(rule: str, dimensions: int) -> bool:
    """Return whether a text is a rule in `RULES`, optionally with exceptions that have this number of dimensions."""
    try:
        _, others = _parsed(rule)
    except ValueError:
        return False
    return all(len(grid) == dimensions and min(grid) > 0 for grid in others.values())


def extents(rule: str, processes: float, dimensions: int) -> tuple[float, ...]:
    """Return the extents of the grid of a number of processes by a rule (`is_rule`).

    If the number of processes is not whole or is too large, all extents are its root.
    """
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
    """Dimension number `index` (from 0) of the grids of `dimensions` dimensions that a rule gives."""

    rule: str
    dimensions: int
    index: int

    def extent(self, processes: _Floats) -> _Floats:
        """Return the extents at numbers of processes, same shape. The array may be read-only."""
        if processes.size > _FEW:
            return _extent(self, processes)
        # The result is cached, because models are evaluated many times at few sets of points.
        return _extent_of_few(self, np.asarray(processes, dtype=np.float64).tobytes()).reshape(processes.shape)

    def name(self, parameter: str) -> str:
        """Return the name of the extent in formulas: px, py, pz for p; p in a grid of one dimension."""
        return parameter if self.dimensions == 1 else parameter + LETTERS[self.index]


def _extent(axis: Axis, processes: _Floats) -> _Floats:
    distinct, place = np.unique(processes, return_inverse=True)
    found = np.array([extents(axis.rule, p, axis.dimensions)[axis.index] for p in distinct.tolist()])
    result: _Floats = found[place].reshape(processes.shape)
    return result


@lru_cache(maxsize=4096)
def _extent_of_few(axis: Axis, processes: bytes) -> _Floats:
    """Return the extents at numbers of processes as a read-only array."""
    result = _extent(axis, np.frombuffer(processes, dtype=np.float64))
    result.flags.writeable = False
    return result


@dataclass(frozen=True)
class ProcessGrid:
    """The process grids of a program for all numbers of processes.

    - parameter: the name of the parameter that is the number of processes. rule: see `is_rule`.
    - source: "MPI_Cart_create" (the program created the grid), "declared" (by the user), or "" for an assumed grid.
    - periodic: for each dimension, whether the first and the last rank are neighbours; () if unknown.
    """

    parameter: str
    rule: str
    dimensions: int
    source: str = ""
    periodic: tuple[bool, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Return all dimensions of the grid."""
        return tuple(Axis(self.rule, self.dimensions, index) for index in range(self.dimensions))

    def at(self, processes: float) -> tuple[float, ...]:
        """Return the extents of the grid of a number of processes."""
        return extents(self.rule, processes, self.dimensions)

    def extents(self, processes: _Floats) -> _Floats:
        """Return the extents (C, dimensions) of the grids of numbers of processes (C,)."""
        return np.stack([axis.extent(processes) for axis in self.axes], axis=1)

    def __str__(self) -> str:
        """Return the grid as text: "px × py, balanced", or "p, a chain" for one dimension."""
        if self.dimensions == 1:
            return f"{self.parameter}, a chain"
        return f"{' × '.join(axis.name(self.parameter) for axis in self.axes)}, {self.rule}"


def infer(parameter: str, processes: Sequence[float], measured: NDArray[np.int64], source: str) -> ProcessGrid | None:
    """Return the grid with the rule that gives most of the measured extents.

    The other measured extents become exceptions of the rule. (For example, a program that compares surfaces in floating
    point may choose 2x1x3 instead of the equivalent 1x2x3.) Returns None if at least half of the grids of two or more
    processes are exceptions.

    parameter, source: the fields of the result. processes: C numbers of processes. measured: their extents, shape (C,
    d).
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
    """Return the possible grids of a program without any information on its grid, the most probable first."""
    rules = ("balanced", "balanced, smallest first")
    chain = ProcessGrid(parameter, rules[0], 1)
    return (chain, *(ProcessGrid(parameter, rule, dimensions) for dimensions in (2, 3) for rule in rules))


def telling(grid: ProcessGrid, measured: Sequence[float], number: int = 2) -> list[int]:
    """Return at most `number` further numbers of processes to measure, so that the extents of a grid are distinguished.

    Counts depend on products that contain the factor 1 or 1/extent for each dimension. The matrix of these products has
    one row for each measured number of processes. The result contains the smallest numbers that increase the rank of
    this matrix, up to eight times the largest measured number. It is [] if the products are already linearly
    independent.
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
