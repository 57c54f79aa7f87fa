# SPDX-License-Identifier: Apache-2.0
"""Propose functions of a process grid with given values: sums of functions that domain decomposition produces.

Few grids do not determine the function: (1,1), (2,1), (2,2) have three values for the four products of 1/px and 1/py.
Sums are ranked by the length of their description (Rissanen, Modeling by shortest data description, 1978): functions,
coefficients, and features that domains of this dimension do not have. Sums that are nearly as short are returned as
well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import LOOP_DENOMINATOR
from ..grids.calibration import (
    GRID_BITS,
    GRID_DOUBT,
    GRID_EDGE_OF_DOMAIN,
    GRID_FRACTION,
    GRID_MOST_FUNCTIONS,
    GRID_MOST_ROWS,
    GRID_MOST_SETS,
    GRID_NEGATIVE,
    GRID_PERIODIC,
    GRID_VIOLATION,
)
from .grid_functions import EVERY, SHARE, GridFunction, grid_functions


@dataclass(frozen=True)
class Domain:
    """A domain of some dimension: terms of n of order k have at least, or at most, this number of shares.

    strong: n is the size of the whole domain, not of a rank. Each dimension without a loop contributes no n, and only
    there a rank may work for itself, or for its neighbours.
    """

    dimensions: int
    strong: bool

    def length(self, grid_function: GridFunction, order: int, highest: bool) -> float:
        """Return the addition to the length for a function in the coefficient of n^order.

        It counts each dimension that differs from such a domain, and functions that only edges of the domain have.
        highest: whether the order is the highest of the call path.
        """
        if grid_function.processes is not None:
            return GRID_VIOLATION * (order > 0 and grid_function.processes[0] >= 0)
        if grid_function.is_along_rows:
            return GRID_VIOLATION * (order > 0)
        if order == 0 and (grid_function.is_share or grid_function.is_of_all_neighbours):
            return 0.0  # one rank works for all (reads input, prints), or once per neighbour
        wrong = SHARE if self.strong else EVERY
        most = max(sum(kind != wrong for kind in own) for own in grid_function.products)
        edge = highest and self.strong and 0 < order < self.dimensions and grid_function.is_share
        return GRID_VIOLATION * max(0, most - (self.dimensions - order)) + GRID_EDGE_OF_DOMAIN * edge


@dataclass(frozen=True)
class Form:
    """A sum of functions of the grid: indices of functions, and their coefficients."""

    grid_functions: tuple[int, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Forms:
    """F sums with the same values at the measured grids, the shortest description first.

    lengths: of their descriptions, (F,). beyond: their values at B larger grids, (F, B). rows: functions and
    coefficients of each sum, as arrays, because most of the hundreds of sums are never used.
    """

    lengths: FloatArray
    beyond: FloatArray
    rows: list[tuple[NDArray[np.int64], FloatArray]]

    def form(self, number: int) -> Form:
        """Return one of the sums."""
        grid_functions, coefficients = self.rows[number]
        return Form(tuple(grid_functions.tolist()), tuple(coefficients.tolist()))


class _Family:
    """Sets of k functions. sets: (S, k); design: values at G grids, (S, G, k); inverse: least squares, (S, k, G)."""

    def __init__(self, sets: NDArray[np.int64], design: FloatArray, inverse: FloatArray) -> None:
        self.sets, self.design, self.inverse = sets, design, inverse
        # any direction shows whether there is a residual
        self._direction = np.random.default_rng(1).normal(size=design.shape[1])
        self._left = ((self._direction @ design)[:, None] @ inverse)[:, 0] - self._direction
        self._most = ((np.abs(self._direction) @ np.abs(design))[:, None] @ np.abs(inverse))[:, 0]
        self._first = np.ascontiguousarray(inverse[:, 0])
        self._most_first = np.abs(self._first)

    def possible(self, values: FloatArray, tolerance: float) -> NDArray[np.int64]:
        """Return the indices of all sets that may have the values (G,), and of few others.

        Sets with fewer functions than grids rarely have these values, and other sets rarely have suitable coefficients.
        """
        size = np.abs(values)
        if self.design.shape[2] < self.design.shape[1]:
            least = tolerance * np.abs(self._direction).sum()
            return np.flatnonzero(np.abs(self._left @ values) <= least + _ROUNDING * (self._most @ size + size.sum()))
        scaled = LOOP_DENOMINATOR * (self._first @ values)
        rounding = _ROUNDING * LOOP_DENOMINATOR * (self._most_first @ size)
        return np.flatnonzero(np.abs(scaled - np.round(scaled)) <= _near(scaled, tolerance) + rounding)


class GridForms:
    """Sums of functions of the grids (G, d); beyond: larger grids, where sums are compared.

    known: the grids are known. More functions are then used, which many wrong sums contain: neighbours of all ranks
    and, in one dimension, work per other rank.
    periodic: for each dimension, whether the first and the last rank are neighbours, if known.
    """

    def __init__(
        self, grids: FloatArray, beyond: FloatArray, known: bool = False, periodic: tuple[bool, ...] = ()
    ) -> None:
        self.grids = grids
        self.grid_functions = tuple(
            replace(own, length=own.length + GRID_PERIODIC * own.is_unusual(periodic))
            for own in grid_functions(grids.shape[1], known, periodic)
        )
        self.columns, self.beyond = (
            np.stack([grid_function.evaluate(own) for grid_function in self.grid_functions]) for own in (grids, beyond)
        )
        self._single = np.array([grid_function.length for grid_function in self.grid_functions])
        self._in_domains: dict[tuple[int, bool, Domain], FloatArray] = {}

    @cached_property
    def _families(self) -> list[_Family]:
        """Sets of 1, 2, … functions with independent columns."""
        result = []
        for width in range(1, min(len(self.grids), GRID_MOST_FUNCTIONS) + 1):
            sets = self._sets(width)
            design = self.columns[sets].transpose(0, 2, 1)
            gram = design.transpose(0, 2, 1) @ design
            kept = np.linalg.cond(gram) < 1e9
            design, gram = design[kept], gram[kept]
            result.append(_Family(sets[kept], design, np.linalg.solve(gram, design.transpose(0, 2, 1))))
        return result

    def _sets(self, width: int) -> NDArray[np.int64]:
        """Return the shortest sets of `width` functions, (S, width).

        All sets may contain functions of domains. Only small sets contain functions of rows, because there are many.
        """
        every = range(len(self.grid_functions))
        of_domains = [i for i in every if not self.grid_functions[i].is_beside_domains]
        found = [list(combinations(of_domains, width))]
        if width + self.grids.shape[1] <= GRID_MOST_ROWS:
            found.append([own for own in combinations(every, width) if not set(own).issubset(of_domains)])
        single = self._single
        shortest = []
        for own in found:
            sets = np.array(own, dtype=np.int64).reshape(-1, width)
            shortest.append(sets[np.argsort(single[sets].sum(axis=1), kind="stable")[:GRID_MOST_SETS]])
        return np.concatenate(shortest)

    def propose(
        self, values: FloatArray, tolerance: float, order: int | None, highest: bool, domain: Domain | None
    ) -> Forms | None:
        """Return the sums with the values (G,) at all grids, the shortest first; None if there are none.

        If several sums have the same values at larger grids, the result has only the shortest. No sum has more
        functions than distinct values, because a table would be shorter. order: the power of n whose coefficients are
        the values, None if it is no whole power; highest: whether it is the highest power of the call path.
        """
        return _proposed(self, values.tobytes(), tolerance, order, highest, domain)

    def _proposed(
        self, values: FloatArray, tolerance: float, order: int | None, highest: bool, domain: Domain | None
    ) -> Forms | None:
        if np.abs(values).max() <= tolerance:
            return Forms(np.zeros(1), np.zeros((1, self.beyond.shape[1])), [(np.zeros(0, dtype=np.int64), np.zeros(0))])
        single = self._lengths(order, highest, domain)
        rows: list[tuple[NDArray[np.int64], FloatArray]] = []
        lengths, beyond = list[FloatArray](), list[FloatArray]()
        shortest = np.inf
        different = 1 + np.count_nonzero(np.diff(np.sort(values)) > 2.0 * tolerance)
        for family in self._families[:different]:
            sets, good = family.sets, family.possible(values, tolerance)
            coefficients = family.inverse[good] @ values
            parts, near = _loops(coefficients, tolerance)
            good, parts = good[near], parts[near]
            equal = _deviation(family.design[good], coefficients[near], values) <= tolerance
            good, parts = good[equal], parts[equal]
            if not good.size:
                continue
            length = single[sets[good]].sum(axis=1) + self._of_coefficients(parts, sets[good])
            shortest = min(shortest, float(length.min()))
            order_of = np.argsort(length, kind="stable")
            chosen = order_of[length[order_of] <= shortest + GRID_DOUBT]
            places, own = good[chosen], parts[chosen] / LOOP_DENOMINATOR
            beyond.append(np.einsum("sk,skb->sb", own, self.beyond[sets[places]]))
            lengths.append(length[chosen])
            rows += zip(sets[places], own, strict=True)
        if not rows:
            return None
        every, there = np.concatenate(lengths), np.concatenate(beyond)
        ranked = np.argsort(every, kind="stable")
        ranked = ranked[every[ranked] <= shortest + GRID_DOUBT]
        kept = ranked[_first_of_equals(there[ranked])]
        return Forms(every[kept], there[kept], [rows[i] for i in kept.tolist()])

    @cached_property
    def _is_share(self) -> NDArray[np.bool_]:
        """Return which functions are shares."""
        return np.array([grid_function.is_share for grid_function in self.grid_functions])

    def _lengths(self, order: int | None, highest: bool, domain: Domain | None) -> FloatArray:
        """Return the lengths of the descriptions of the functions, in a coefficient of n^order."""
        single = self._single
        if domain is None or order is None:
            return single
        if (order, highest, domain) in self._in_domains:
            return self._in_domains[order, highest, domain]
        added: FloatArray = single + np.array(
            [domain.length(grid_function, order, highest) for grid_function in self.grid_functions]
        )
        self._in_domains[order, highest, domain] = added
        return added

    def _of_coefficients(self, parts: FloatArray, sets: NDArray[np.int64]) -> FloatArray:
        """Return the lengths (S,) of coefficients, given as multiples (S, k) of 1/LOOP_DENOMINATOR."""
        size = np.abs(parts).astype(np.int64)
        odd = size // np.maximum(size & -size, 1)
        length = GRID_FRACTION * (size % int(LOOP_DENOMINATOR) != 0) + GRID_BITS * np.ceil(np.log2(odd + 1.0))
        result: FloatArray = (length + GRID_NEGATIVE * ((parts < 0) & ~self._is_share[sets])).sum(axis=1)
        return result


@lru_cache(maxsize=8192)
def _proposed(
    forms: GridForms, values: bytes, tolerance: float, order: int | None, highest: bool, domain: Domain | None
) -> Forms | None:
    """Return the cached result of `GridForms.propose`, because many counts of a program have equal coefficients."""
    return forms._proposed(np.frombuffer(values), tolerance, order, highest, domain)


def _deviation(design: FloatArray, coefficients: FloatArray, values: FloatArray) -> FloatArray:
    """Return for each sum of functions (S, G, K) the largest residual of the values (G,), (S,)."""
    missed: FloatArray = np.abs(np.einsum("sgk,sk->sg", design, coefficients) - values).max(axis=1)
    return missed


def _first_of_equals(new: FloatArray) -> NDArray[np.int64]:
    """Return the rows of `new` (N, B) that differ from all former rows.

    Numbers with the same 24 leading bits are equal: sums of multiples of small fractions differ by more, or only by
    rounding.
    """
    bits = np.where(np.abs(new) <= _NOTHING, 0.0, new).view(np.int64)
    leading = np.ascontiguousarray((bits + (1 << (_DROPPED - 1))) >> _DROPPED)
    kept, known = list[int](), set[bytes]()
    for number, key in enumerate(leading.view(f"V{leading.shape[1] * leading.itemsize}").ravel().tolist()):
        if key not in known:
            known.add(key)
            kept.append(number)
    return np.array(kept, dtype=np.int64)


_NOTHING = 1e-9
_ROUNDING = 1e-11  # of sums of numbers, of the sum of their sizes
_DROPPED = 29  # of the 53 bits of a number


def _loops(coefficients: FloatArray, tolerance: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return coefficients (S, k) as multiples of 1/LOOP_DENOMINATOR, and which sets only have nonzero ones."""
    scaled = LOOP_DENOMINATOR * coefficients
    parts = np.clip(np.round(scaled), -(2.0**60), 2.0**60)
    good = (parts != 0) & (np.abs(scaled - parts) <= _near(scaled, tolerance))
    return parts, np.asarray(good.all(axis=1), dtype=bool)


def _near(scaled: FloatArray, tolerance: float) -> FloatArray:
    """Return the distance of coefficients from multiples of 1/LOOP_DENOMINATOR, in these units."""
    near = np.maximum(20.0 * tolerance * LOOP_DENOMINATOR, 1e-7 * np.abs(scaled))
    return np.asarray(np.minimum(near, 0.2), dtype=np.float64)
