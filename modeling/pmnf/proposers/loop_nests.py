# SPDX-License-Identifier: Apache-2.0
"""Loop nests over the part of a domain that a rank has, as functions of the size and of the process grid.

A loop over one dimension runs over the cells of a rank, with layers of ghosts or without the edges of the domain or of
the part. Other loops run once: on every rank, on ranks with a neighbour, on the first or the last rank. A nest is a
product of one of these per dimension. Its mean over the ranks is the product of the means of the dimensions, because
a grid contains every combination of a row and a column. This also holds if processes do not divide the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

import numpy as np

from ...experiment import FloatArray
from ..grids.calibration import (
    NEST_ALIKE,
    NEST_ALONE,
    NEST_CELLS,
    NEST_EDGES,
    NEST_LAYERS,
    NEST_LIKELY,
    NEST_ONE,
    NEST_OTHER_ENDS,
    NEST_SOME,
)
from .grid_forms import Domain


@dataclass(frozen=True, slots=True)
class Range:
    """The range of a loop in one dimension of x ranks: on average, cells·own + one + share/x + several·[x > 1].

    own: n/x if n is the size of the domain, n if it is the size of a rank. bits: length of the description. usual:
    whether most programs have such loops.
    """

    cells: int
    one: int
    share: int
    several: int
    bits: float
    usual: bool = True

    @property
    def is_thin(self) -> bool:
        """Return whether it does not grow with the size."""
        return self.cells == 0


def ranges(periodic: bool) -> tuple[Range, ...]:
    """Return the ranges of loops in a dimension, by whether it is periodic."""
    open_ends = NEST_OTHER_ENDS if periodic else 0.0
    found = [
        Range(1, 0, 0, 0, NEST_CELLS),
        Range(1, 2, 0, 0, NEST_LIKELY),  # a layer of ghosts on both sides
        Range(1, 1, 0, 0, NEST_LIKELY),  # faces
        Range(1, 0, -2, 0, NEST_LIKELY + open_ends, not periodic),  # without the edges of the domain
        Range(1, 4, 0, 0, NEST_LAYERS, False),  # two layers of ghosts
        Range(1, -2, 0, 0, NEST_LAYERS, False),  # what no ghost is needed for
        Range(1, -1, 0, 0, NEST_LAYERS, False),
        Range(1, 0, -1, 0, NEST_LAYERS + open_ends, False),  # without one edge of the domain
        Range(1, 0, 1, 0, NEST_LAYERS + open_ends, False),  # points between cells, shared out
        Range(1, 2, -2, 0, NEST_LAYERS + open_ends, False),  # ghosts only of neighbours
        Range(0, 1, 0, 0, NEST_ONE),
        Range(0, 1, -1, 0, NEST_SOME + open_ends, not periodic),  # ranks with a neighbour on one side
        Range(0, 0, 1, 0, NEST_EDGES + open_ends, not periodic),  # the first rank
    ]
    if periodic:
        found += [
            Range(1, -2, 0, 2, NEST_LIKELY),  # without edges where there are no neighbours
            Range(1, 0, 0, 2, NEST_LAYERS, False),  # ghosts only of neighbours
            Range(0, 0, 0, 1, NEST_SOME),  # neighbours on either side
            Range(0, 1, 0, -1, NEST_ALONE),  # none
        ]
    return tuple(found)


def _undivided() -> tuple[Range, ...]:
    """Return the ranges of loops in a dimension that is not divided: its only rank is the first and the last."""
    return tuple(own for own in ranges(False) if not own.share or (own.usual and own.cells))


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest, one range per dimension of the domain; or the sum of the same in all orders of the dimensions."""

    over: tuple[tuple[Range, ...], ...]
    bits: float

    @property
    def usual(self) -> bool:
        """Return whether most programs have such nests."""
        return all(own.usual for own in self.over[0])

    @property
    def order(self) -> int:
        """Return the power of the size with which it grows."""
        return sum(own.cells for own in self.over[0])


class LoopNests:
    """All loop nests over a domain on a grid; periodic: for each dimension, whether its ends are neighbours."""

    def __init__(self, domain: Domain, periodic: tuple[bool, ...]) -> None:
        self.domain, self.dimensions = domain, len(periodic)
        own = [ranges(around) for around in periodic]
        self.ranges = [*own, *[_undivided()] * (domain.dimensions - self.dimensions)]

    @cached_property
    def nests(self) -> tuple[Nest, ...]:
        """Return all nests with at most one unusual range, or equal ranges in all dimensions."""
        found = []
        for over in product(*self.ranges):
            alike = len(set(over)) == 1
            if not alike and sum(not own.usual for own in over) > 1:
                continue
            bits = NEST_ALIKE + (over[0].bits if alike else sum(own.bits for own in over))
            found.append(Nest((over,), bits))
            if len(turned := self._turned(over)) > 1 and over == turned[0]:
                found.append(Nest(turned, bits))
        return (*found, *self._in_turn())

    def _in_turn(self) -> list[Nest]:
        """Return layers that are exchanged in one dimension after the other, with the ghosts of earlier dimensions.

        Every part has ghosts on all sides, including those that a rank gets from itself.
        """
        divided = range(self.dimensions)
        alike = [own for own in self.ranges[0] if all(own in one for one in self.ranges)]
        (cells,) = (own for own in alike if _parts(own) == (1, 0, 0, 0))
        sent = [own for own in self.ranges[0] if _parts(own) in ((0, 1, -1, 0), (0, 0, 0, 1))]
        found = []
        for to, ghosts, order in product(sent, alike, permutations(divided)):
            if self.dimensions < 2 or not ghosts.cells or ghosts.one < 2:
                continue
            over = []
            for place, now in enumerate(order):
                own = [ghosts if one in order[:place] else cells for one in divided]
                own[now] = to
                over.append((*own, *[cells] * (self.domain.dimensions - self.dimensions)))
            found.append(Nest(tuple(over), NEST_ALIKE + to.bits + ghosts.bits + cells.bits))
        return found

    def _turned(self, over: tuple[Range, ...]) -> tuple[tuple[Range, ...], ...]:
        """Return equal work at one side after the other, in all divided dimensions."""
        divided, rest = over[: self.dimensions], over[self.dimensions :]
        thin = [own for own in divided if own.is_thin]
        sides = {own for own in divided if own.share or own.several} & set(thin)
        others = [own for own in divided if own not in sides]
        if len(sides) != 1 or len(others) != self.dimensions - 1 or len(set(others)) > 1:
            return ()
        if not all({*divided} <= {*own} for own in self.ranges[: self.dimensions]):
            return ()
        return tuple((*own, *rest) for own in sorted({*permutations(divided)}, key=_order_of))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Return the indices of the work at each loop of nests, from either end of the dimensions.

        Blocks of a nest are blocks of its innermost loop, and some for each iteration of the outer loops.
        """
        number = {nest.over[0]: place for place, nest in enumerate(self.nests) if len(nest.over) == 1}
        once = Range(0, 1, 0, 0, NEST_ONE)
        found: dict[tuple[int, ...], None] = {}
        for over in product(*([own for own in one if own.usual and (own.cells or own == once)] for one in self.ranges)):
            for inward in (range(len(over)), range(len(over) - 1, -1, -1)):
                loops = [place for place in inward if over[place].cells]
                outer = [loops[:many] for many in range(len(loops), -1, -1)]
                each = (tuple(own if place in kept else once for place, own in enumerate(over)) for kept in outer)
                found[tuple(number[own] for own in each)] = None
        return tuple(found)

    def coefficients(self, nests: Sequence[Nest], grids: FloatArray) -> FloatArray:
        """Return each loop nest as a polynomial in the size: coefficients (M, D + 1, G), the constant first."""
        undivided = np.ones((len(grids), self.domain.dimensions - self.dimensions))
        extents = np.concatenate([grids, undivided], axis=1)
        number = [place for place, nest in enumerate(nests) for _ in nest.over]
        parts = np.array([[_parts(own) for own in over] for nest in nests for over in nest.over], dtype=np.float64)
        sums = np.zeros((len(number), self.domain.dimensions + 1, len(grids)))
        sums[:, 0] = 1.0
        for (cells, one, share, several), x in zip(
            parts.transpose(1, 2, 0)[:, :, :, None, None], extents.T, strict=True
        ):
            grown = (one + share / x + several * (x > 1.0)) * sums
            grown[:, 1:] += cells / (x if self.domain.strong else 1.0) * sums[:, :-1]
            sums = grown
        result = np.zeros((len(nests), *sums.shape[1:]))
        np.add.at(result, number, sums)
        return result


def _parts(own: Range) -> tuple[int, int, int, int]:
    return own.cells, own.one, own.share, own.several


def _order_of(over: tuple[Range, ...]) -> list[tuple[int, int, int, int]]:
    return [_parts(own) for own in over]
