"""Counts as exact polynomials in the size at each number of processes: of whole counts of all ranks, no rounding."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from ...experiment import FloatArray
from ..calibration import LOOP_DENOMINATOR

_PARTS = int(LOOP_DENOMINATOR)
# Counts of all ranks together are whole numbers up to this part, and below this number.
_WHOLE, _LARGEST = 1e-9, float(1 << 53)


class SizePolynomials:
    """Polynomials of a degree in sizes (C,) at numbers of processes (C,), with coefficients that loops have."""

    def __init__(self, sizes: FloatArray, processes: FloatArray, degree: int) -> None:
        self.processes, self.degree = processes, degree
        self.distinct = np.unique(processes)
        self._sizes = [Fraction(own) for own in sizes.tolist()]
        self._where = [np.flatnonzero(processes == p).tolist() for p in self.distinct]

    @cached_property
    def _through(self) -> list[tuple[list[int], list[list[Fraction]]]]:
        """For each number of processes as many points as coefficients, and what turns counts into coefficients."""
        found = []
        for own in self._where:
            first: dict[Fraction, int] = {}
            for i in own:
                first.setdefault(self._sizes[i], i)
            chosen = [first[size] for size in sorted(first)[: self.degree + 1]]
            found.append((chosen, _lagrange([self._sizes[i] for i in chosen])))
        return found

    def coefficients(self, values: FloatArray) -> FloatArray | None:
        """Return the coefficients (degree + 1, G) of the values (C,), means over the ranks; None if they have none."""
        totals = values * self.processes
        whole = np.round(totals)
        if np.abs(totals).max() >= _LARGEST or (np.abs(totals - whole) > _WHOLE * np.maximum(totals, 1.0)).any():
            return None
        counts = [int(own) for own in whole.tolist()]
        result = np.zeros((self.degree + 1, len(self.distinct)))
        for place, ((chosen, matrix), own) in enumerate(zip(self._through, self._where, strict=True)):
            found = [sum((a * counts[i] for a, i in zip(row, chosen, strict=True)), Fraction()) for row in matrix]
            if any((_PARTS * one).denominator > 1 for one in found):
                return None
            if any(_at(found, self._sizes[i]) != counts[i] for i in own):
                return None
            p = float(self.distinct[place])
            result[:, place] = [float(one) / p for one in found]
        return result


def _at(coefficients: list[Fraction], size: Fraction) -> Fraction:
    total = Fraction(0)
    for one in reversed(coefficients):
        total = total * size + one
    return total


def _lagrange(sizes: list[Fraction]) -> list[list[Fraction]]:
    """Return the matrix that turns values at sizes into the coefficients of their polynomial, the constant first."""
    columns: list[list[Fraction]] = []
    for place, own in enumerate(sizes):
        product = [Fraction(1)]
        for other in sizes[:place] + sizes[place + 1 :]:
            shifted = [Fraction(0), *product]
            product = [a - other * b for a, b in zip(shifted, [*product, Fraction(0)], strict=True)]
            product = [one / (own - other) for one in product]
        columns.append(product)
    return [list(row) for row in zip(*columns, strict=True)]
