"""Proposer of functions of a process grid that have given values: sums of what domain decomposition makes.

In each dimension of the grid, the mean over the ranks of what a rank does is 1 (every rank does it), 1/x (a share of
the domain, or one rank of a row), (x-1)/x (ranks with a neighbour on one side) or [x > 1], 1 where there are several
(neighbours where the first rank and the last are such, too). Products of one of these per dimension, sums of them over
all dimensions alike, all neighbours, those at edges and corners included, p and log2(p) are the functions that are
combined.

A few grids leave freedom: (1,1), (2,1), (2,2) have three values for the four products of 1/px and 1/py. So sums are
ranked by the length of their description (Rissanen, Modeling by shortest data description, 1978): functions,
coefficients, and what domains of so many dimensions do not have. Those that are nearly as short are returned as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import LOOP_DENOMINATOR
from ..grid_calibration import (
    GRID_ALL_OTHERS,
    GRID_BITS,
    GRID_DOUBT,
    GRID_EDGE,
    GRID_EDGE_OF_DOMAIN,
    GRID_FRACTION,
    GRID_FUNCTION,
    GRID_MOST_FUNCTIONS,
    GRID_MOST_SETS,
    GRID_NEGATIVE,
    GRID_OF_PROCESSES,
    GRID_ONE_SIDED,
    GRID_PERIODIC,
    GRID_VIOLATION,
)

# What the mean over the ranks may be in one dimension of x ranks.
EVERY, SHARE, NEIGHBOUR, SEVERAL = range(4)
Product = tuple[int, ...]  # one of these per dimension


@dataclass(frozen=True)
class GridFunction:
    """A function of the grid: a sum of products, or a power and logarithm of the number of processes.

    length: of its description. processes: exponent and logarithm of p, if it is a function of p; others: that is
    multiplied with (p-1)/p. both_sides: a factor of 2 for each neighbour in a product: there is one on either side.
    """

    products: tuple[Product, ...]
    length: float
    processes: tuple[int, int] | None = None
    both_sides: bool = False
    others: bool = False

    def evaluate(self, grids: FloatArray) -> FloatArray:
        """Return the function at grids (G, d), (G,)."""
        if self.processes is not None:
            p, (exponent, log) = grids.prod(axis=1), self.processes
            result: FloatArray = (
                p ** float(exponent) * np.log2(p) ** log * (_of_dimension(NEIGHBOUR, p) if self.others else 1.0)
            )
            return result
        total = np.zeros(len(grids))
        for own in self.products:
            parts = [_of_dimension(kind, grids[:, place]) for place, kind in enumerate(own)]
            total += self.weight(own) * np.prod(parts, axis=0)
        return total

    def weight(self, own: Product) -> float:
        """Return what one of its products is multiplied with."""
        return 2.0 ** (own.count(NEIGHBOUR) + own.count(SEVERAL)) if self.both_sides else 1.0

    def is_unusual(self, periodic: tuple[bool, ...]) -> bool:
        """Whether it has neighbours on one side in a periodic dimension, or on both in another one, or unknown."""
        if not periodic:
            return any(SEVERAL in own for own in self.products)
        ends = [NEIGHBOUR if around else SEVERAL for around in periodic]
        return any(kind == end for own in self.products for kind, end in zip(own, ends, strict=True))

    @property
    def is_share(self) -> bool:
        """Whether it is the share of one rank of everything."""
        return self.processes is None and set(self.products[0]) == {SHARE}


def _of_dimension(kind: int, x: FloatArray) -> FloatArray:
    if kind == SEVERAL:
        return np.asarray(x > 1.0, dtype=np.float64)
    return np.ones_like(x) if kind == EVERY else 1.0 / x if kind == SHARE else (x - 1.0) / x


@dataclass(frozen=True)
class Domain:
    """What a domain of so many dimensions has: terms of n of order k have so many shares at least, or at most.

    strong: n is the size of the whole domain, not that of a rank. Each side of the domain that a loop does not run over
    contributes no n, and only there a rank may do something for itself, or for its neighbours.
    """

    dimensions: int
    strong: bool

    def length(self, grid_function: GridFunction, order: int, highest: bool) -> float:
        """Return what a function in the coefficient of n^order, the highest of a call path or not, adds to the length.

        That is for each dimension that is not as in such a domain, and for what only edges of the domain have.
        """
        if grid_function.processes is not None:
            return GRID_VIOLATION * (order > 0 and grid_function.processes[0] >= 0)
        wrong = SHARE if self.strong else EVERY
        most = max(sum(kind != wrong for kind in own) for own in grid_function.products)
        # what has no n at all is also what one rank does for all: it reads input, it prints
        edge = highest and self.strong and 0 < order < self.dimensions and grid_function.is_share
        return GRID_VIOLATION * max(0, most - (self.dimensions - order)) + GRID_EDGE_OF_DOMAIN * edge


@dataclass(frozen=True)
class Form:
    """A sum of functions of the grid: numbers of functions, and their coefficients."""

    grid_functions: tuple[int, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Forms:
    """F sums that have the same values, the shortest first.

    lengths: (F,) of their descriptions. beyond: (F, B), what they are at larger grids. rows: functions, coefficients of
    each; there are hundreds, of which few are looked at.
    """

    lengths: FloatArray
    beyond: FloatArray
    rows: list[tuple[NDArray[np.int64], FloatArray]]

    def form(self, number: int) -> Form:
        """Return one of the sums."""
        grid_functions, coefficients = self.rows[number]
        return Form(tuple(grid_functions.tolist()), tuple(coefficients.tolist()))


class GridForms:
    """Sums of functions of the grids (G, d); beyond: larger grids, where sums are compared.

    known: also of neighbours of all ranks, and in one dimension of what is done for each other rank, which many wrong
    sums have. periodic: for each dimension whether the first rank and the last are neighbours, if that is known.
    """

    def __init__(
        self, grids: FloatArray, beyond: FloatArray, known: bool = False, periodic: tuple[bool, ...] = ()
    ) -> None:
        self.grids = grids
        self.grid_functions = tuple(
            replace(own, length=own.length + GRID_PERIODIC * own.is_unusual(periodic))
            for own in _grid_functions(grids.shape[1], known, periodic)
        )
        self.columns, self.beyond = (
            np.stack([grid_function.evaluate(own) for grid_function in self.grid_functions]) for own in (grids, beyond)
        )

    @cached_property
    def _families(self) -> list[tuple[NDArray[np.int64], FloatArray, FloatArray]]:
        """Sets of 1, 2, … functions with independent columns (S, k), these (S, G, k), least squares (S, k, G)."""
        result = []
        for width in range(1, min(len(self.grids), GRID_MOST_FUNCTIONS) + 1):
            sets = np.array(list(combinations(range(len(self.grid_functions)), width)), dtype=np.int64)
            lengths = np.array([grid_function.length for grid_function in self.grid_functions])[sets].sum(axis=1)
            sets = sets[np.argsort(lengths, kind="stable")[:GRID_MOST_SETS]]
            design = self.columns[sets].transpose(0, 2, 1)
            gram = design.transpose(0, 2, 1) @ design
            kept = np.linalg.cond(gram) < 1e9
            design, gram = design[kept], gram[kept]
            result.append((sets[kept], design, np.linalg.solve(gram, design.transpose(0, 2, 1))))
        return result

    def propose(
        self, values: FloatArray, tolerance: float, order: int | None, highest: bool, domain: Domain | None
    ) -> Forms | None:
        """Return the sums that have the values (G,) at all grids, the shortest first; None if there are none.

        Of sums that have the same values at larger grids, too, only the shortest is there. None has more functions than
        there are different values, which would be the shorter description.
        order: which power of n the values are the coefficients of, None if it is no whole power; highest: of all.
        """
        if np.abs(values).max() <= tolerance:
            return Forms(np.zeros(1), np.zeros((1, self.beyond.shape[1])), [(np.zeros(0, dtype=np.int64), np.zeros(0))])
        single = self._lengths(order, highest, domain)
        rows: list[tuple[NDArray[np.int64], FloatArray]] = []
        lengths, beyond = list[FloatArray](), list[FloatArray]()
        shortest = np.inf
        different = 1 + np.count_nonzero(np.diff(np.sort(values)) > 2.0 * tolerance)
        for sets, design, inverse in self._families[:different]:
            coefficients = inverse @ values
            # sets with fewer functions than grids hardly ever have the values, others hardly ever such coefficients
            good = np.arange(len(sets))
            if design.shape[2] < design.shape[1]:
                good = good[_deviation(design, coefficients, values) <= tolerance]
            parts, near = _loops(coefficients[good], tolerance)
            good, parts = good[near], parts[near]
            equal = _deviation(design[good], coefficients[good], values) <= tolerance
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

    def _lengths(self, order: int | None, highest: bool, domain: Domain | None) -> FloatArray:
        """Return the lengths of the descriptions of the functions, in a coefficient of n^order."""
        single = np.array([grid_function.length for grid_function in self.grid_functions])
        if domain is None or order is None:
            return single
        added: FloatArray = single + np.array(
            [domain.length(grid_function, order, highest) for grid_function in self.grid_functions]
        )
        return added

    def _of_coefficients(self, parts: FloatArray, sets: NDArray[np.int64]) -> FloatArray:
        """Return the lengths of the descriptions of coefficients, parts (S, k) of LOOP_DENOMINATOR, of sets, (S,)."""
        size = np.abs(parts).astype(np.int64)
        odd = size // np.maximum(size & -size, 1)
        share = np.array([grid_function.is_share for grid_function in self.grid_functions])
        length = GRID_FRACTION * (size % int(LOOP_DENOMINATOR) != 0) + GRID_BITS * np.ceil(np.log2(odd + 1.0))
        result: FloatArray = (length + GRID_NEGATIVE * ((parts < 0) & ~share[sets])).sum(axis=1)
        return result


def _deviation(design: FloatArray, coefficients: FloatArray, values: FloatArray) -> FloatArray:
    """Return what sums of functions (S, G, K) with coefficients (S, K) miss the values (G,) by at most, (S,)."""
    missed: FloatArray = np.abs(np.einsum("sgk,sk->sg", design, coefficients) - values).max(axis=1)
    return missed


def _first_of_equals(new: FloatArray) -> NDArray[np.int64]:
    """Return the rows of `new` (N, B) that are like none before.

    Alike are numbers with the same 24 leading bits: sums of whole parts of small fractions differ by more, or only by
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
_DROPPED = 29  # of the 53 bits of a number


def _loops(coefficients: FloatArray, tolerance: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return coefficients (S, k) as whole parts of LOOP_DENOMINATOR, and which sets have only such that are not 0."""
    scaled = LOOP_DENOMINATOR * coefficients
    parts = np.clip(np.round(scaled), -(2.0**60), 2.0**60)
    near = np.maximum(20.0 * tolerance * LOOP_DENOMINATOR, 1e-7 * np.abs(scaled))
    good = (parts != 0) & (np.abs(scaled - parts) <= np.minimum(near, 0.2))
    return parts, np.asarray(good.all(axis=1), dtype=bool)


def _grid_functions(dimensions: int, known: bool, periodic: tuple[bool, ...]) -> tuple[GridFunction, ...]:
    """Return all functions of grids of so many dimensions; of grids that are known those that others have by luck, too.

    With (x-1)/x and [x > 1], any function of the extents 1, 2 and 4 is a sum. periodic: as in `GridForms`.
    """
    around = known and (not periodic or any(periodic))
    result = []
    for own in product((EVERY, SHARE, NEIGHBOUR), repeat=dimensions):
        length = GRID_FUNCTION + GRID_EDGE * own.count(NEIGHBOUR)
        result.append(GridFunction((own,), length + GRID_ONE_SIDED * (len(set(own)) > 1)))
        alike = tuple(sorted(set(permutations(own))))
        if len(alike) > 1 and own == alike[0]:
            result.append(GridFunction(alike, length))
    if around:
        result += _periodic(dimensions, periodic)
    if known and dimensions > 2:
        result += [own for kind in (NEIGHBOUR, *(SEVERAL,) * around) for own in _in_turn(dimensions, kind)]
    if dimensions > 1:
        for kind in (NEIGHBOUR, SEVERAL) if around else (NEIGHBOUR,):
            every_side = tuple(own for own in product((EVERY, kind), repeat=dimensions) if kind in own)
            result.append(GridFunction(every_side, GRID_FUNCTION + GRID_EDGE, both_sides=True))
            if kind == NEIGHBOUR:  # what two ranks have in common is with one of them, which the other one sends it to
                result.append(GridFunction(every_side, GRID_FUNCTION + GRID_EDGE + GRID_ONE_SIDED))
    if dimensions == 1 and known:
        # something for each other rank, and for each of them its part of what a rank has
        result += [GridFunction((), GRID_ALL_OTHERS, (exponent, 0), others=True) for exponent in (1, -1)]
    result += [GridFunction((), GRID_OF_PROCESSES, (1, 0)), GridFunction((), GRID_OF_PROCESSES, (0, 1))]
    return tuple(result)


def _in_turn(dimensions: int, kind: int) -> list[GridFunction]:
    """Return what ranks send that exchange layers in one dimension after the other, with the ghosts of those before.

    Every part has ghosts on all sides, those that a rank gets from itself included. So faces are products of n/x + 2
    for dimensions that were exchanged before and of n/x for others; these are the terms with one ghost, in each order
    of the dimensions.
    """
    found = set()
    for order in permutations(range(dimensions)):
        turns = []
        for place, sent in enumerate(order):
            for ghosts in order[:place]:
                kinds = [SHARE] * dimensions
                kinds[sent], kinds[ghosts] = kind, EVERY
                turns.append(tuple(kinds))
        found.add(tuple(sorted(turns)))
    return [GridFunction(own, GRID_FUNCTION + GRID_EDGE) for own in sorted(found)]


def _periodic(dimensions: int, periodic: tuple[bool, ...]) -> list[GridFunction]:
    """Return what ranks do with neighbours in dimensions whose first and last ranks are such: edges of their parts.

    Both of the whole domain and of what a rank has; in one of the dimensions, in all alike, and in each as it is.
    """
    result = []
    for other in (EVERY, SHARE) if dimensions > 1 else (EVERY,):
        each = tuple(sorted({*permutations((SEVERAL, *(other,) * (dimensions - 1)))}))
        length = GRID_FUNCTION + GRID_EDGE
        result += [GridFunction((own,), length + GRID_ONE_SIDED * (dimensions > 1)) for own in each]
        if dimensions > 1:
            result.append(GridFunction(each, length))
        if len(set(periodic)) > 1:
            kinds = [SEVERAL if around else NEIGHBOUR for around in periodic]
            mixed = [
                tuple(kind if at == place else other for at in range(dimensions)) for place, kind in enumerate(kinds)
            ]
            result.append(GridFunction(tuple(mixed), length))
    return result
