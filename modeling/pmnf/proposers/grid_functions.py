# SPDX-License-Identifier: Apache-2.0
"""Functions of a process grid, from domain decomposition and from communication along its rows.

In each dimension of the grid with x ranks, the mean over the ranks of the work of a rank is 1 (every rank), 1/x (a
share of the domain, or one rank of a row), (x-1)/x (ranks with a neighbour on one side) or [x > 1] (periodic dimension
with several ranks). Functions are products of one of these per dimension, sums of such products over all dimensions,
all neighbours including edges and corners, p and log2(p). x and log2(x) of one dimension describe work per rank of a
row, and the steps of a reduction along it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from ...experiment import FloatArray
from ..grids.calibration import (
    GRID_ALL_OTHERS,
    GRID_EACH,
    GRID_EDGE,
    GRID_FUNCTION,
    GRID_OF_EXTENT,
    GRID_OF_PROCESSES,
    GRID_OF_STAGES,
    GRID_ONE_SIDED,
)

# The possible means over the ranks in one dimension of x ranks.
EVERY, SHARE, NEIGHBOUR, SEVERAL, EACH, STEPS, STEPS_OF_SHARE = range(7)
_ALONG_ROWS = (EACH, STEPS, STEPS_OF_SHARE)
Product = tuple[int, ...]  # one of these per dimension


@dataclass(frozen=True)
class GridFunction:
    """A function of the grid: a sum of products, or a power and logarithm of the number of processes.

    length: of its description. processes: exponent and logarithm of p, if it is a function of p. others, several: it is
    multiplied by (p-1)/p, or by [p > 1]. both_sides: a factor of 2 for each neighbour in a product, because there is
    one on either side.
    """

    products: tuple[Product, ...]
    length: float
    processes: tuple[int, int] | None = None
    both_sides: bool = False
    others: bool = False
    several: bool = False

    def evaluate(self, grids: FloatArray) -> FloatArray:
        """Return the values of the function at grids (G, d), shape (G,)."""
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
        if self.several or self.others:
            total *= _of_dimension(SEVERAL if self.several else NEIGHBOUR, grids.prod(axis=1))
        return total

    def weight(self, own: Product) -> float:
        """Return the factor of one of its products."""
        return 2.0 ** (own.count(NEIGHBOUR) + own.count(SEVERAL)) if self.both_sides else 1.0

    def is_unusual(self, periodic: tuple[bool, ...]) -> bool:
        """Return whether it has neighbours on one side of a periodic dimension, or on both sides of others."""
        if not periodic:
            return any(SEVERAL in own for own in self.products)
        ends = [NEIGHBOUR if around else SEVERAL for around in periodic]
        return any(kind == end for own in self.products for kind, end in zip(own, ends, strict=True))

    @property
    def is_along_rows(self) -> bool:
        """Return whether it depends on the ranks of one dimension: their number, or steps."""
        return any(kind in _ALONG_ROWS for own in self.products for kind in own)

    @property
    def is_beside_domains(self) -> bool:
        """Return whether it does not describe a domain, but rows, or all ranks that have others."""
        return self.several or self.is_along_rows or (self.others and self.processes is None)

    @property
    def is_of_all_neighbours(self) -> bool:
        """Return whether it counts all neighbours of a rank, including edges and corners, with any dimension of n."""
        kinds = {kind for own in self.products for kind in own}
        others = kinds <= {EVERY, NEIGHBOUR} or kinds <= {EVERY, SEVERAL}
        return others and len(self.products) > 1 and len(self.products) == 2 ** len(self.products[0]) - 1

    @property
    def is_share(self) -> bool:
        """Return whether it is the share of one rank."""
        return self.processes is None and set(self.products[0]) == {SHARE}


def _of_dimension(kind: int, x: FloatArray) -> FloatArray:
    if kind == SEVERAL:
        return np.asarray(x > 1.0, dtype=np.float64)
    if kind == EACH:
        return x
    if kind in (STEPS, STEPS_OF_SHARE):
        return np.asarray(np.log2(x) / (x if kind == STEPS_OF_SHARE else 1.0))
    return np.ones_like(x) if kind == EVERY else 1.0 / x if kind == SHARE else (x - 1.0) / x


def grid_functions(dimensions: int, known: bool, periodic: tuple[bool, ...]) -> tuple[GridFunction, ...]:
    """Return all functions of grids with this number of dimensions.

    known: also return functions that are likely to fit by coincidence, because the grids are known: a sum with (x-1)/x
    and [x > 1] can have any values at the extents 1, 2 and 4. periodic: as in `GridForms`.
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
            if kind == NEIGHBOUR:  # the common part of two ranks is on one of them, which sends it to the other one
                result.append(GridFunction(every_side, GRID_FUNCTION + GRID_EDGE + GRID_ONE_SIDED))
        result += _along_rows(dimensions)
    if dimensions == 1 and known:
        # work for each other rank, and the part of each other rank in the data of a rank
        result += [GridFunction((), GRID_ALL_OTHERS, (exponent, 0), others=True) for exponent in (1, -1)]
    # work if there are other ranks; in one dimension, most functions with a few more terms are a sum with it
    length = GRID_FUNCTION + GRID_EDGE + GRID_ONE_SIDED * (dimensions == 1)
    result.append(GridFunction(((EVERY,) * dimensions,), length, several=True))
    if dimensions == 1:
        # stages of a hypercube, and stages of these, possibly for the share of a rank
        result += [GridFunction((), GRID_OF_STAGES, own) for own in ((0, 1), (0, 2), (-1, 1), (-1, 2))]
        result.append(GridFunction((), GRID_OF_PROCESSES, (1, 0)))
    else:
        result += [GridFunction((), GRID_OF_PROCESSES, own) for own in ((1, 0), (0, 1))]
    return tuple(result)


def _in_turn(dimensions: int, kind: int) -> list[GridFunction]:
    """Return the sent data of an exchange in one dimension after the other, with the ghosts of earlier dimensions.

    Every part has ghosts on all sides, including those that a rank gets from itself. Faces are products of n/x + 2 for
    earlier dimensions and n/x for others; these are the terms with one ghost, in each order of the dimensions.
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


def _along_rows(dimensions: int) -> list[GridFunction]:
    """Return the work with the ranks of one dimension: with each of them, in all dimensions alike, or in steps.

    Also the work of one rank with each other one, with data as long as a rank's part in one dimension. Data may be the
    share of a rank of this dimension, or of the others.
    """
    found = []
    for kind, other in ((EACH, EVERY), (STEPS, EVERY), (STEPS, SHARE), (STEPS_OF_SHARE, EVERY)):
        each = tuple(sorted({*permutations((kind, *(other,) * (dimensions - 1)))}))
        length = GRID_OF_EXTENT + GRID_ONE_SIDED + GRID_EACH * (kind == EACH)
        found += [GridFunction((own,), length) for own in each]
        if kind == EACH:
            found.append(GridFunction(each, GRID_OF_EXTENT + GRID_EACH))
    # gather or scatter: one rank and the parts of all others
    for own in product((EVERY, SHARE), repeat=dimensions):
        if len(set(own)) > 1:
            found.append(GridFunction((own,), GRID_OF_EXTENT + GRID_ONE_SIDED, others=True))
    return found


def _periodic(dimensions: int, periodic: tuple[bool, ...]) -> list[GridFunction]:
    """Return the work with neighbours in periodic dimensions: edges of the parts.

    Edges of the whole domain and of the part of a rank; in one of the dimensions, and in all.
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
