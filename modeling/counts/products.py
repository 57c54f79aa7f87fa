# SPDX-License-Identifier: Apache-2.0
"""Products of factors that reproduce a vector of counts exactly.

The logarithm of a product is a sum. A random projection of the centred logarithms gives each factor one number, in
which a constant coefficient vanishes: the product of some factors is proportional to the counts only if the sum of
their numbers is that of the counts. So a product of two factors is a search in the sorted sums of pairs, one of four is
a search for each pair; no function of the parameters is special, and any set of configurations will do. What is found
is verified.

Factors that are proportional wherever counts were measured are one class with several members: the counts do not say
which of them it is, and predictions keep all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .factors import GRID, Factor, Floats

EXACT = 1e-10  # relative rounding error of counts
WINDOW = 20.0  # bits that an alternative may have more than the best
_TOLERANCE = 1e-10  # of projections
_SEED = 1
_MOST_FACTORS = 220  # classes that products of two and more are made of, the cheapest ones
_MOST_UNSEEN = 8
_MOST_FOUND = 40  # products that are kept

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FactorClass:
    """Factors that are proportional to each other on the support, the cheapest first; column: the values of that there.

    bits: of the class, -log2 of the sum over its members.
    """

    column: Floats
    members: tuple[Factor, ...]
    bits: float


@dataclass(eq=False)
class Library:
    """The factor classes on one support: the configurations (measured,) where something was counted."""

    factors: Sequence[Factor]
    support: NDArray[np.bool_]

    @cached_property
    def projection(self) -> Floats:
        """Random weights of the configurations of the support, whose sum is 0."""
        count = int(self.support.sum())
        weights = np.random.default_rng(_SEED).normal(size=self.support.size)[:count]
        return np.asarray(weights - weights.mean(), dtype=np.float64)

    @cached_property
    def unseen(self) -> tuple[Factor, ...]:
        """Functions of the process grid that are constant on the support, but not everywhere, the cheapest first."""
        found = [
            factor
            for factor in self.factors
            if factor.kind in GRID
            and np.ptp(factor.values)
            and not np.ptp(own := factor.values[self.support])
            and own[0] > 0
        ]
        return tuple(sorted(found, key=lambda factor: factor.bits)[:_MOST_UNSEEN])

    @cached_property
    def classes(self) -> tuple[FactorClass, ...]:
        """Classes of the factors that are positive on the support, the cheapest first. The constant is none."""
        groups: dict[bytes, list[Factor]] = {}
        for factor in self.factors:
            values = factor.values[self.support]
            if values.min() <= 0:
                continue
            scaled = np.round(np.log(values / values[0]), 9) + 0.0
            groups.setdefault(scaled.tobytes(), []).append(factor)
        found = []
        for members in groups.values():
            members.sort(key=lambda member: member.bits)
            column = members[0].values[self.support]
            if np.ptp(column):
                bits = -math.log2(sum(2.0**-member.bits for member in members))
                found.append(FactorClass(column, tuple(members), bits))
        return tuple(sorted(found, key=lambda entry: entry.bits))

    @cached_property
    def numbers(self) -> Floats:
        """The projection of each class, shape (classes,)."""
        return np.array([self.projection @ np.log(entry.column) for entry in self.classes])

    @cached_property
    def bits(self) -> Floats:
        """Bits of each class, shape (classes,)."""
        return np.array([entry.bits for entry in self.classes])

    @cached_property
    def pairs(self) -> tuple[Floats, Integers, Integers]:
        """Sums of the numbers of two classes, ascending, and which ones; a class may be there twice."""
        few = min(len(self.classes), _MOST_FACTORS)
        first, second = np.triu_indices(few)
        sums = self.numbers[first] + self.numbers[second]
        order = np.argsort(sums, kind="stable")
        return sums[order], first[order], second[order]

    def find(self, counts: Floats) -> list[tuple[FactorClass, ...]]:
        """Return products that are proportional to counts (support,), the cheapest first."""
        if np.ptp(counts) <= EXACT * counts.max():
            return [()]
        if not self.classes:
            return []
        wanted = float(self.projection @ np.log(counts))
        found: dict[tuple[int, ...], float] = {}
        best = np.inf
        for size in (1, 2, 3, 4):
            if size == 4 and found:
                break
            for chosen in self._candidates(wanted, size):
                bits = float(self.bits[list(chosen)].sum()) + size
                if bits > best + WINDOW or chosen in found:
                    continue
                if self._is_proportional(counts, chosen):
                    found[chosen] = bits
                    best = min(best, bits)
        ranked = sorted((bits, chosen) for chosen, bits in found.items() if bits <= best + WINDOW)
        return [tuple(self.classes[k] for k in chosen) for _, chosen in ranked[:_MOST_FOUND]]

    def _is_proportional(self, counts: Floats, chosen: tuple[int, ...]) -> bool:
        ratio = counts / np.prod([self.classes[k].column for k in chosen], axis=0)
        return bool(np.ptp(ratio) <= EXACT * ratio.max())

    def _candidates(self, wanted: float, size: int) -> Iterator[tuple[int, ...]]:
        """Yield the classes of products of so many factors whose number is the wanted one, cheap ones first."""
        if size == 1:
            near = np.flatnonzero(np.abs(self.numbers - wanted) <= _TOLERANCE)
            yield from ((int(k),) for k in near)
            return
        sums, first, second = self.pairs
        if size == 2:
            begin, end = np.searchsorted(sums, [wanted - _TOLERANCE, wanted + _TOLERANCE])
            yield from ((int(first[k]), int(second[k])) for k in range(begin, end))
            return
        few = min(len(self.classes), _MOST_FACTORS)
        rest = self.numbers[:few] if size == 3 else sums
        begin = np.searchsorted(sums, wanted - rest - _TOLERANCE)
        end = np.searchsorted(sums, wanted - rest + _TOLERANCE)
        hits: set[tuple[int, ...]] = set()
        for at in np.flatnonzero(end > begin).tolist():
            others = (at,) if size == 3 else (int(first[at]), int(second[at]))
            for k in range(int(begin[at]), int(end[at])):
                hits.add(tuple(sorted((*others, int(first[k]), int(second[k])))))
        yield from sorted(hits, key=lambda chosen: float(self.bits[list(chosen)].sum()))
