# SPDX-License-Identifier: Apache-2.0
"""Find the functions of all parameters except the number of processes in counts, and their coefficients.

The functions come from lines of points; each line has one number of processes. If lines have too few points for a
degree of freedom, polynomials are used, which the coefficients must confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import factorial, gcd, lcm, log2

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import FEW_NOTHING
from ..criterion.exactness import exact_weights, rounding_of
from ..fit.fitter import fit, with_constant
from ..hypotheses.library import Library, SimpleTerm
from ..hypotheses.tables import Tables, make_tables, tensor
from .exact_terms import ExactLines

# Coefficients and means over ranks have smaller denominators.
_MOST_DENOMINATOR = 1 << 16

Functions = tuple[tuple[SimpleTerm | None, ...], ...]  # products of one term (or none) per other parameter


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The functions of the other parameters in a call path, with their coefficients at each process grid.

    - values: coefficients, shape (K functions, G grids).
    - tolerance: of the coefficients of each function, (K,).
    - peak: largest value of each function, (K,).
    - free: number of points minus number of coefficients, summed over the grids.

    If the first grid has no more points than functions, also:

    - whole: log2 of the number of sets of whole counts for each set of whole coefficients.
    - units: for each function, the unit of its coefficients: the greatest common divisor of all counts, or of all
      differences of counts.
    """

    functions: Functions
    values: FloatArray
    tolerance: FloatArray
    peak: FloatArray
    free: int
    whole: float = np.inf
    units: tuple[Fraction, ...] = ()

    def by_luck(self) -> float:
        """Return how unlikely it is that counts have such coefficients by coincidence: -log2 of the probability.

        If coefficients have the denominator D after division by the common divisor of the counts, one in determinant /
        D^K sets of whole counts has such coefficients. Lines at other grids count likewise if they are no multiples.
        """
        if not np.isfinite(self.whole):
            return np.inf
        own = self.values[:, 0].tolist()
        parts = [_fraction(value) / unit for value, unit in zip(own, self.units, strict=True)]
        denominator = lcm(*(part.denominator for part in parts))
        lines = int(np.linalg.matrix_rank(self.values * self.peak[:, None], tol=1e-9 * float(self.peak.max())))
        return lines * (self.whole - len(parts) * log2(denominator))

    @cached_property
    def orders(self) -> tuple[int | None, ...]:
        """Return the total exponents of the functions; None if they are no whole powers."""
        return tuple(_order(own) for own in self.functions)


def _fraction(value: float) -> Fraction:
    """Return the fraction of which a number is the rounded value."""
    return Fraction(value).limit_denominator(_MOST_DENOMINATOR)


def _unit(counts: FloatArray) -> Fraction:
    """Return the largest number that all counts are multiples of; 1 if they are 0."""
    return _divisor([_fraction(value) for value in counts.tolist()])


def _divisor(parts: Sequence[Fraction]) -> Fraction:
    """Return the largest number that all are multiples of; 1 if they are 0."""
    below = lcm(*(part.denominator for part in parts))
    return Fraction(gcd(*(int(part * below) for part in parts)) or below, below)


def _units(counts: FloatArray, functions: FloatArray, coefficients: FloatArray, constant: bool) -> tuple[Fraction, ...]:
    """Return for each function the unit of its coefficient, (K,).

    counts: (C,). functions: (K, C). constant: whether the first function is 1.
    The unit is the greatest common divisor of all counts. If a constant hides it, differences of counts determine it
    for the other coefficients, unless it already divides the functions' differences, the products of coefficients and
    functions (with even sizes, 300·n³ is a multiple of 2400), or these coefficients.
    """
    one = _unit(counts)
    if not constant or len(functions) < 2:
        return (one,) * len(functions)
    steps = functions[1:, 1:] - functions[1:, :1]
    apart, own, everywhere = _unit(counts[1:] - counts[0]), _unit(steps.ravel()), factorial(len(functions) - 1)
    products = [_fraction(value) * _unit(step) for value, step in zip(coefficients[1:].tolist(), steps, strict=True)]
    explained = apart / own
    if everywhere % explained == 0 or everywhere % (apart / _divisor(products)) == 0:
        apart = one
    elif all((_fraction(value) / explained).denominator == 1 for value in coefficients[1:].tolist()):
        apart = explained
    return (one, *(max(one, apart),) * (len(functions) - 1))


def _order(function: tuple[SimpleTerm | None, ...]) -> int | None:
    terms = [term for term in function if term is not None]
    total = sum((term.exponent for term in terms), Fraction(0))
    return int(total) if total.denominator == 1 and total >= 0 and not any(term.log for term in terms) else None


class OtherParameters:
    """Finds the functions of all parameters except the number of processes.

    others: the values of these parameters, (C, m-1). where: the points of each number of processes.
    """

    def __init__(self, others: FloatArray, where: Sequence[NDArray[np.int64]], library: Library) -> None:
        self.others, self.where = others, where
        self.tables = make_tables(others, library) if others.shape[1] else None

    def coefficients(self, values: FloatArray) -> list[Coefficients | None]:
        """Return for each call path the functions of its `values` (N, C), with their coefficients; None if unknown."""
        result: list[Coefficients | None] = [None] * len(values)
        if self.tables is None:
            for number, own in enumerate(values):
                centre = np.array([[own[place].mean() for place in self.where]])
                tolerance = np.array([1e-12 * np.abs(own).max()])
                result[number] = Coefficients(((),), centre, tolerance, np.ones(1), len(own))
            return result
        parameters = range(self.others.shape[1])
        lines = ExactLines(_apart(self.others, self.where), _with_place(self.tables, self.where), values)
        terms, known = zip(*(lines.propose(parameter) for parameter in parameters), strict=True)
        sizes = np.stack([(own >= 0).sum(axis=1) for own in terms], axis=1)
        all_known = np.logical_and.reduce(known)
        for shape in np.unique(sizes[all_known], axis=0).tolist():
            rows = np.flatnonzero(all_known & (sizes == shape).all(axis=1))
            for row, products in zip(rows.tolist(), tensor([own[rows] for own in terms], shape), strict=True):
                result[row] = self._fitted(values[row], products)
        powers = self._powers
        for row in [number for number, own in enumerate(result) if own is None]:
            result[row] = next((own for own in (self._fitted(values[row], one) for one in powers) if own), None)
        return result

    @cached_property
    def _of_one_size(self) -> list[tuple[list[int], NDArray[np.int64]]]:
        """Groups of P numbers of processes that have the same number c of points, with these points, (P, c)."""
        sizes = [place.size for place in self.where]
        alike = [[number for number, size in enumerate(sizes) if size == one] for one in dict.fromkeys(sizes)]
        return [(numbers, np.stack([self.where[number] for number in numbers])) for numbers in alike]

    @cached_property
    def _powers(self) -> list[NDArray[np.int16]]:
        """Return the polynomial of one parameter with as many coefficients as values, at most four.

        Its coefficients are the evidence, because lines with degrees of freedom have excluded fewer functions.
        """
        if self.tables is None or self.others.shape[1] != 1:
            return []
        number = {(t.exponent, t.log): i for i, t in enumerate(self.tables.terms[0])}
        wanted = [number[Fraction(power), 0] for power in (1, 2, 3) if (Fraction(power), 0) in number]
        least = min(np.unique(self.others[place]).size for place in self.where)
        return [np.array(wanted[: least - 1], dtype=np.int16)[:, None]] if least > 1 and wanted else []

    def _fitted(self, values: FloatArray, products: NDArray[np.int16]) -> Coefficients | None:
        """Return the coefficients of `products` (Q, m-1) at each number of processes, if they reproduce the values."""
        assert self.tables is not None
        columns = with_constant(self.tables.design(products))
        if min(place.size for place in self.where) < len(columns):
            return None
        weights = exact_weights(values[None])
        rounding = rounding_of(values[None], weights)[0]
        coefficients = np.empty((len(columns), len(self.where)))
        for numbers, places in self._of_one_size:
            found = fit(columns[:, places].transpose(1, 0, 2)[:, None], values[places], weights[0, places])
            if not (found.worst[:, 0] <= rounding).all():
                return None
            coefficients[:, numbers] = found.coefficients[:, 0].T
        scale = np.concatenate([np.ones(1), self.tables.divisor(products)])
        top = np.abs(values).max()
        used = (np.abs(coefficients).max(axis=1) * np.abs(columns * weights).max(axis=1)) > FEW_NOTHING * 1e-2
        functions = [(None,) * products.shape[1]]
        functions += [tuple(None if t < 0 else self.tables.terms[i][t] for i, t in enumerate(own)) for own in products]
        chosen = np.flatnonzero(used)
        if not chosen.size:
            return None
        tolerance = 1e-11 * top / scale[chosen]
        whole, units, first = np.inf, tuple[Fraction, ...](), self.where[0]
        if chosen.size == first.size:
            whole = float(np.linalg.slogdet(columns[chosen][:, first] * scale[chosen, None])[1] / np.log(2.0))
            of_functions = (columns[chosen] * scale[chosen, None])[:, first]
            units = _units(values[first], of_functions, coefficients[chosen, 0] / scale[chosen], bool(chosen[0] == 0))
        return Coefficients(
            tuple(functions[i] for i in chosen),
            coefficients[chosen] / scale[chosen, None],
            tolerance,
            scale[chosen],
            sum(place.size - len(columns) for place in self.where),
            whole,
            units,
        )


def _apart(others: FloatArray, where: Sequence[NDArray[np.int64]]) -> FloatArray:
    """Return the points with a further parameter, so that lines stay within one number of processes."""
    place = np.empty((len(others), 1))
    for number, own in enumerate(where):
        place[own] = number
    return np.concatenate([others, place], axis=1)


def _with_place(tables: Tables, where: Sequence[NDArray[np.int64]]) -> Tables:
    """Return the tables with a further parameter without any terms."""
    return _with_parameter(tables, sum(own.size for own in where))


@lru_cache(maxsize=64)
def _with_parameter(tables: Tables, size: int) -> Tables:
    return Tables(
        (*tables.terms, ()),
        (*tables.columns, np.ones((1, size))),
        (*tables.scale, np.ones(1)),
        (*tables.cost, np.zeros(1)),
        (*tables.twice, np.ones(1)),
    )
