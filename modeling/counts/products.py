# SPDX-License-Identifier: Apache-2.0
"""Find products of factors that reproduce a vector (one count at all configurations) exactly.

The logarithm of a product is the sum of the logarithms of its factors. The search takes the logarithms of a factor at
all configurations, subtracts their mean, and projects them on one random direction. The result is one number for each
factor. A constant coefficient does not change this number. The counts have such a number, too. A product can only be
proportional to the counts if the sum of the numbers of its factors equals the number of the counts.

- One factor: comparison with the number of each factor.
- Two factors: a binary search in the sorted sums of all pairs of numbers.
- Three factors: one such search for each third factor.
- Four factors: one such search for each pair of further factors.

The search verifies each product at all configurations where the count is not 0 (the support).

Factors that are proportional to each other on the support form one class. The counts do not determine which factor of
a class is correct, so predictions keep all factors of the class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .factors import GRID, Factor, Floats

EXACT = 1e-10  # relative error up to which a law reproduces counts
WINDOW = 20.0  # laws with more bits than the best law plus this number are left out
_TOLERANCE = 1e-10  # difference up to which projections are equal
_SEED = 1
_MOST_FACTORS = 220  # number of classes in products of two and more factors; those with the fewest bits are used
_MOST_UNSEEN = 8
_MOST_FOUND = 40  # largest number of products

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FactorClass:
    """A class of factors that are proportional to each other on the support.

    - column: values of the first member on the support, shape (support,).
    - members: the factors, fewest bits first.
    - bits: -log2 of the sum of the probabilities of the members.
    """

    column: Floats
    members: tuple[Factor, ...]
    bits: float


@dataclass(eq=False)
class Library:
    """The classes of factors on one support.

    factors: all factors of the grammar. support: mask (measured,) of the configurations where a count is not 0.
    """

    factors: Sequence[Factor]
    support: NDArray[np.bool_]

    @cached_property
    def projection(self) -> Floats:
        """Return the random direction, shape (support,). Its components have the sum 0, which removes the mean."""
        count = int(self.support.sum())
        weights = np.random.default_rng(_SEED).normal(size=self.support.size)[:count]
        return np.asarray(weights - weights.mean(), dtype=np.float64)

    @cached_property
    def unseen(self) -> tuple[Factor, ...]:
        """Return functions of the process grid that are constant on the support but not elsewhere, fewest bits first.

        A law may contain them, because the counts do not exclude them.
        """
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
        """Return the classes of factors that are positive and not constant on the support, fewest bits first."""
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
        """Return the sums of the projections of all pairs of classes, ascending, and the numbers of both classes.

        A class also forms a pair with itself.
        """
        few = min(len(self.classes), _MOST_FACTORS)
        first, second = np.triu_indices(few)
        sums = self.numbers[first] + self.numbers[second]
        order = np.argsort(sums, kind="stable")
        return sums[order], first[order], second[order]

    def find(self, counts: Floats) -> list[tuple[FactorClass, ...]]:
        """Return the products of classes that are proportional to the counts (support,), fewest bits first.

        The result for constant counts is the product of no classes. Products of four classes are only searched if no
        product of fewer classes was found.
        """
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
        """Yield the numbers of `size` classes whose projections have the sum `wanted`.

        For sizes 3 and 4, the classes with the fewest bits come first.
        """
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
