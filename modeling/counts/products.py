# SPDX-License-Identifier: Apache-2.0
"""Find products of factors that reproduce a vector (one count at all configurations) exactly.

The logarithm of a product is a sum. A random projection of the centred logarithms turns each factor into one number,
and constant coefficients vanish. A product of factors is proportional to the counts only if the sum of their numbers is
the number of the counts. A product of two factors is therefore a search in the sorted sums of pairs, and a product of
four is one search per pair. The search treats all functions alike and supports any set of configurations. Each product
that is found is verified.

Factors that are proportional at all configurations with a count form one class. The counts do not determine which
member is correct, so predictions keep all members.
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
WINDOW = 20.0  # bits by which an alternative may exceed the best product
_TOLERANCE = 1e-10  # tolerance of projections
_SEED = 1
_MOST_FACTORS = 220  # cheapest classes, for products of two and more factors
_MOST_UNSEEN = 8
_MOST_FOUND = 40  # most products

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FactorClass:
    """A class of factors that are proportional on the support, cheapest first.

    column: values of the cheapest factor on the support; bits: -log2 of the sum of the probabilities of the members.
    """

    column: Floats
    members: tuple[Factor, ...]
    bits: float


@dataclass(eq=False)
class Library:
    """The classes of factors on one support: the configurations where a count is not 0. support: shape (measured,)."""

    factors: Sequence[Factor]
    support: NDArray[np.bool_]

    @cached_property
    def projection(self) -> Floats:
        """Return random weights of the configurations of the support. Their sum is 0."""
        count = int(self.support.sum())
        weights = np.random.default_rng(_SEED).normal(size=self.support.size)[:count]
        return np.asarray(weights - weights.mean(), dtype=np.float64)

    @cached_property
    def unseen(self) -> tuple[Factor, ...]:
        """Return functions of the process grid that are constant on the support but not everywhere, cheapest first."""
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
        """Return the classes of factors that are positive on the support, cheapest first, without the constant."""
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
        """Return the projection of each class, shape (classes,)."""
        return np.array([self.projection @ np.log(entry.column) for entry in self.classes])

    @cached_property
    def bits(self) -> Floats:
        """Return the bits of each class, shape (classes,)."""
        return np.array([entry.bits for entry in self.classes])

    @cached_property
    def pairs(self) -> tuple[Floats, Integers, Integers]:
        """Return the sums of the projections of two classes, ascending, and these classes. A class may occur twice."""
        few = min(len(self.classes), _MOST_FACTORS)
        first, second = np.triu_indices(few)
        sums = self.numbers[first] + self.numbers[second]
        order = np.argsort(sums, kind="stable")
        return sums[order], first[order], second[order]

    def find(self, counts: Floats) -> list[tuple[FactorClass, ...]]:
        """Return products that are proportional to the counts, shape (support,), cheapest first."""
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
        """Yield the classes of products of `size` factors whose projection is the wanted number, cheapest first."""
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
