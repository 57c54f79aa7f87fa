# SPDX-License-Identifier: Apache-2.0
"""Model counts of work in blocks of some size: chunks of a loop, tiles of a matrix, full buffers.

Work per block is a·⌈n²/(64·p)⌉, which no sum of powers reproduces. The block size is unknown. For each size, the
numbers of blocks at the measured points are a function like others. A size is accepted if it reproduces whole counts
exactly, alone or with few other functions, and if the evidence of the counts beyond the former model exceeds the number
of tried sums. Sizes with the same numbers of blocks at these points are alternatives of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as combinations_of
from math import log

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    BLOCKS_LEAST,
    BLOCKS_LEAST_FREE,
    BLOCKS_LEAST_GAIN,
    BLOCKS_MOST_NUMBERS,
    BLOCKS_MOST_PARAMETERS,
    BLOCKS_MOST_SIZE,
    BLOCKS_MOST_SIZE_DOUBLED,
    BLOCKS_NEAR,
    BLOCKS_TRIED,
    EXACT,
    WHOLE_UP_TO,
)
from ..data.noise import Repetitions
from ..model import Blocks, Factor, Model, Term
from ..proposers.steps import solved
from .stepped import likeliest_model
from .unexplained import unexplained

_Flags = NDArray[np.bool_]
_Product = tuple[Factor, ...]
_Products = list[tuple[_Product, _Flags]]
_SAME = 1e-9
# Powers of the number k of blocks and of the product m that is divided into blocks.
_FAMILIES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 0),),
    ((1, 1),),
    ((1, 0), (0, 0)),
    ((1, 0), (0, 1)),
    ((1, 0), (0, 1), (0, 0)),
    ((2, 0), (1, 0)),
    ((2, 0), (1, 0), (0, 0)),
    ((1, 1), (0, 1)),
)


def by_blocks(
    models: Sequence[Model | None],
    points: FloatArray,
    values: FloatArray,
    used: _Flags,
    repetitions: Repetitions,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models with blocks for call paths whose counts they reproduce and `models` do not.

    values: (N, C) of one configuration each; used: (N, C), where a call path was measured and executed. repetitions: of
    the values; counts with different repetitions have no exact function.
    """
    result: dict[int, Model] = {}
    if not points.size or points.min() < 1.0:
        return result
    for at, former in unexplained(models, used):
        own_paths = [path for path, model in former.items() if not (model.is_constant or repetitions.differ[path])]
        paths = np.array(own_paths, dtype=np.int64)
        counts = values[paths][:, at]
        whole = ((counts == np.round(counts)) & (counts > 0.0) & (counts < WHOLE_UP_TO)).all(axis=1)
        if at.sum() <= BLOCKS_LEAST or not whole.any():
            continue
        products = _products(points[at], counts, names)
        whole &= np.any([rising for _, rising in products], axis=0)
        paths, counts = paths[whole], counts[whole]
        products = [(product, rising[whole]) for product, rising in products]
        units = np.gcd.reduce(counts.astype(np.int64), axis=1).astype(np.float64)
        fitted = np.array([former[path].evaluate(points[at]) for path in paths.tolist()])
        missed = np.log1p(2.0 * np.abs(fitted.reshape(counts.shape) - counts) / units[:, None]).sum(axis=1)
        found = _sums(points[at], counts / units[:, None], missed, names, products)
        for path, own, unit, sums in zip(paths.tolist(), counts, units.tolist(), found, strict=True):
            if sums:
                forms = [(one.score, one.constant * unit, one.terms(unit)) for one in sums]
                result[path] = likeliest_model(forms, points[at], own, names, former[path].notes)
    return result


def _sums(
    points: FloatArray, counts: FloatArray, missed: FloatArray, names: tuple[str, ...], products: _Products
) -> list[list[_Sum]]:
    """Return the sums that reproduce each of the counts (N, C) with the simplest product and the fewest functions.

    missed: (N,) evidence of the counts beyond the former models, as the logarithm of a number of possibilities.
    """
    result: list[list[_Sum]] = [[] for _ in counts]
    open_rows, tried = np.ones(len(counts), dtype=bool), np.zeros(len(counts))
    for product, rising in products:
        tried += rising
        rows = np.flatnonzero(open_rows & rising)
        rows = rows[missed[rows] > np.log(tried[rows]) + BLOCKS_LEAST_GAIN]
        if rows.size:
            table = _Table(points, names, product)
            for row, sums in zip(rows.tolist(), table.propose(counts[rows], missed[rows], tried[rows]), strict=True):
                result[row] = sums
                open_rows[row] &= not sums
    return result


def _products(points: FloatArray, counts: FloatArray, names: tuple[str, ...]) -> _Products:
    """Return products of powers of parameters, the simplest first, and along which parameters counts (N, C) grow (N,).

    They have powers up to the third, and may be shares: n, n², n/p, n²/p.
    """
    found: _Products = []
    varies = np.ptp(points, axis=0) > 0.0
    powers_of_one = (0, 1, 2, 3, -1) if varies.sum() <= BLOCKS_MOST_PARAMETERS else (0, 1, -1)
    choices = [powers_of_one if own else (0,) for own in varies.tolist()]
    logs = np.log(points)
    for powers in sorted(combinations_of(*choices), key=lambda own: (sum(map(abs, own)), own)):
        if max(powers) > 0:
            size = logs @ np.array(powers)
            order = np.argsort(size)
            rise = np.diff(counts[:, order], axis=1)
            rising = np.asarray((rise >= 0.0).all(axis=1), dtype=bool)
            rising &= ~rise[:, np.diff(size[order]) <= _SAME].any(axis=1)
            factors = zip(names, powers, strict=True)
            found.append((tuple(Factor(name, Fraction(power)) for name, power in factors if power), rising))
    return found


@dataclass(frozen=True)
class _Sum:
    """A sum that reproduces counts: blocks, and coefficients with the powers of their number and of the product."""

    blocks: Blocks
    parts: tuple[tuple[float, tuple[int, int]], ...]

    @property
    def constant(self) -> float:
        return sum(size for size, powers in self.parts if powers == (0, 0))

    @property
    def score(self) -> float:
        """Return -2 log of the prior probability: few functions, no negative coefficients, sizes that programs use."""
        negative = sum(value < 0 for value, _ in self.parts)
        return EXACT.coefficient * len(self.parts) + EXACT.negative * negative + 2.0 * _unlikeliness(self.blocks.size)

    def terms(self, unit: float) -> tuple[Term, ...]:
        """Return the terms of a model of counts in this unit."""
        return tuple(self._term(unit * value, powers) for value, powers in self.parts if powers != (0, 0))

    def _term(self, value: float, powers: tuple[int, int]) -> Term:
        number, plain = powers
        whole, size = self.blocks.product, float(self.blocks.size) ** number
        term = Term(value / size, ())
        for _ in range(number + plain):
            term = term.times(Term(1.0, whole))
        if not number:
            return term
        blocks = Blocks(self.blocks.size, whole, number)
        return Term(term.coefficient, (*term.factors, Factor(whole[0].parameter, blocks=blocks)))


def _of_loops(family: Sequence[tuple[int, int]], coefficients: Sequence[float]) -> bool:
    """Return whether each block has positive work, and at most one block less is counted: a loop ends earlier."""
    others = [size for size, powers in zip(coefficients, family, strict=True) if powers != (0, 0)]
    return others[0] > 0.0 and min(others) >= 0.0 and min(coefficients) >= -max(others)


def _unlikeliness(size: int) -> float:
    """Return -log of the prior probability of a block size, up to a constant.

    Programs use powers of two and small multiples of these, or 1, 2 and 5 times powers of ten.
    """
    shift = (size & -size).bit_length() - 1
    likely = [(size >> shift) ** 2 * (1 + shift)]
    digits = len(str(size))
    if size in (10 ** (digits - 1), 2 * 10 ** (digits - 1), 5 * 10 ** (digits - 1)):
        likely.append(2 * 3 * digits)
    return log(min(likely))


class _Table:
    """The numbers of blocks of a product at points (C, m), for all sizes."""

    def __init__(self, points: FloatArray, names: tuple[str, ...], product: _Product) -> None:
        self.product = product
        self.whole = Blocks(2, product).whole(dict(zip(names, points.T, strict=True)))
        doubled = 2 ** np.arange(BLOCKS_MOST_SIZE_DOUBLED + 1)
        most = min(BLOCKS_MOST_SIZE, BLOCKS_MOST_NUMBERS // len(points))
        sizes = np.concatenate([np.arange(2, most + 1), doubled[doubled > most]])
        sizes = sizes[2 * sizes <= self.whole.max()]
        numbers = np.ceil(self.whole / sizes[:, None])
        levels = (np.diff(numbers[:, np.argsort(self.whole)], axis=1) > 0).sum(axis=1) + 1
        useful = (levels >= BLOCKS_LEAST) & (np.ptp(numbers / self.whole * sizes[:, None], axis=1) > _SAME)
        sizes, numbers = sizes[useful], numbers[useful]
        first = np.flatnonzero(np.r_[True, (np.diff(numbers, axis=0) != 0).any(axis=1)][: len(sizes)])
        self.numbers = numbers[first]
        self.classes = [own.tolist() for own in np.split(sizes, first[1:])] if first.size else []

    def propose(self, counts: FloatArray, missed: FloatArray, products: FloatArray) -> list[list[_Sum]]:
        """Return the sums that reproduce each of the counts (N, C) with the fewest functions, the likeliest first.

        missed: as in _sums; products: (N,) number of tried products, including this one.
        """
        result: list[list[_Sum]] = [[] for _ in counts]
        for tried, family in enumerate(_FAMILIES if len(self.numbers) else (), 1):
            free = counts.shape[1] - len(family)
            gain = missed * free / counts.shape[1] - np.log(products * tried) - BLOCKS_LEAST_GAIN
            rows = np.flatnonzero((gain >= 0.0) & [not found for found in result])
            if free < BLOCKS_LEAST_FREE or not rows.size:
                continue
            left = self._left(family, counts[rows])
            limit = (BLOCKS_NEAR * counts[rows].max(axis=1)) ** 2 * counts.shape[1]
            for row, squares, most in zip(rows.tolist(), left, limit.tolist(), strict=True):
                near = np.flatnonzero(squares <= most)
                near = near[np.argsort(squares[near], kind="stable")][:BLOCKS_TRIED]
                sums = [own for one in near.tolist() for own in self._exact(one, family, counts[row])]
                if any(_unlikeliness(own.blocks.size) <= gain[row] for own in sums):
                    result[row] = sorted(sums, key=lambda own: own.score)
        return result

    def _column(self, number: FloatArray, powers: tuple[int, int]) -> FloatArray:
        result: FloatArray = number ** powers[0] * self.whole ** powers[1]
        return result

    def _left(self, family: Sequence[tuple[int, int]], counts: FloatArray) -> FloatArray:
        """Return the squared residuals (N, classes) of the counts (N, C) for the functions of a family."""
        left: FloatArray = np.broadcast_to((counts**2).sum(axis=1)[:, None], (len(counts), len(self.numbers)))
        columns: list[FloatArray] = []
        for powers in reversed(family):
            column = self._column(self.numbers, powers)
            column = column / np.abs(column).max(axis=1, keepdims=True)
            for other in columns * 2:
                column = column - np.einsum("bc,bc->b", column, other)[:, None] * other
            size = np.sqrt(np.einsum("bc,bc->b", column, column))[:, None]
            column = np.where(size > _SAME, column / np.where(size > _SAME, size, 1.0), 0.0)
            left = left - (counts @ column.T) ** 2
            columns.append(column)
        return left

    def _exact(self, row: int, family: Sequence[tuple[int, int]], counts: FloatArray) -> list[_Sum]:
        """Return the sums of a class of sizes that reproduce the counts, one for each size."""
        columns = np.array([self._column(self.numbers[row], powers) for powers in family])
        coefficients = solved(columns, np.ones(len(columns)), counts)
        if coefficients is None or not _of_loops(family, coefficients):
            return []
        parts = tuple((size, powers) for size, powers in zip(coefficients, family, strict=True) if size)
        return [_Sum(Blocks(size, self.product), parts) for size in self.classes[row]]
