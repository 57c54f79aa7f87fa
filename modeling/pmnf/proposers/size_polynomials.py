# SPDX-License-Identifier: Apache-2.0
"""Counts as exact polynomials in the size at each number of processes, from whole sums over all ranks."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from operator import mul

import numpy as np

from ...experiment import FloatArray
from ..calibration import LOOP_DENOMINATOR

_PARTS = int(LOOP_DENOMINATOR)
# Sums of counts over all ranks are whole numbers within this relative difference, and below this number.
_WHOLE, _LARGEST = 1e-9, float(1 << 53)


class SizePolynomials:
    """Finds polynomials of a degree in the size, one per number of processes. sizes, processes: shape (C,).

    Sizes that are no whole numbers have no such polynomials.
    """

    def __init__(self, sizes: FloatArray, processes: FloatArray, degree: int) -> None:
        self.processes, self.degree = processes, degree
        self.distinct = np.unique(processes)
        self._whole = bool((sizes == np.round(sizes)).all())
        self._sizes = [int(own) for own in sizes.tolist()] if self._whole else []
        self._where = [np.flatnonzero(processes == p).tolist() for p in self.distinct]

    @cached_property
    def _through(self) -> list[tuple[list[int], tuple[tuple[int, ...], ...], int]]:
        """For each number of processes as many points as coefficients, and the conversion of counts to coefficients.

        The conversion is a matrix of whole numbers and a divisor of its products.
        """
        found = []
        for own in self._where:
            first = {self._sizes[i]: i for i in reversed(own)}
            chosen = [first[size] for size in sorted(first)[: self.degree + 1]]
            found.append((chosen, *lagrange(tuple(self._sizes[i] for i in chosen))))
        return found

    def coefficients(self, values: FloatArray) -> FloatArray | None:
        """Return the coefficients at each number of processes, (degree + 1, G); None if no polynomial fits.

        values: means over the ranks, (C,). The coefficients are multiples of 1/LOOP_DENOMINATOR.
        """
        totals = values * self.processes
        whole = np.round(totals)
        if not self._whole or np.abs(totals).max() >= _LARGEST:
            return None
        if (np.abs(totals - whole) > _WHOLE * np.maximum(totals, 1.0)).any():
            return None
        counts = [int(own) for own in whole.tolist()]
        result = np.zeros((self.degree + 1, len(self.distinct)))
        for place, ((chosen, matrix, below), own) in enumerate(zip(self._through, self._where, strict=True)):
            here = [counts[i] for i in chosen]
            divided = [divmod(_PARTS * sum(map(mul, row, here)), below) for row in matrix]
            parts = [part for part, _ in divided]
            if any(rest for _, rest in divided) or any(_at(parts, self._sizes[i]) != _PARTS * counts[i] for i in own):
                return None
            result[:, place] = [part / _PARTS / float(self.distinct[place]) for part in parts]
        return result


def _at(coefficients: list[int], size: int) -> int:
    total = 0
    for one in reversed(coefficients):
        total = total * size + one
    return total


@lru_cache(maxsize=256)
def lagrange(sizes: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Return the conversion of values at sizes to the coefficients of their polynomial, the constant first.

    It is a matrix, and the divisor of its products with the values.
    """
    columns: list[list[Fraction]] = []
    for place, own in enumerate(sizes):
        product = [Fraction(1)]
        for other in sizes[:place] + sizes[place + 1 :]:
            shifted = [Fraction(0), *product]
            product = [a - other * b for a, b in zip(shifted, [*product, Fraction(0)], strict=True)]
            product = [one / (own - other) for one in product]
        columns.append(product)
    below = lcm(*(one.denominator for column in columns for one in column))
    return tuple(tuple(int(one * below) for one in row) for row in zip(*columns, strict=True)), below
