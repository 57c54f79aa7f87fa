# SPDX-License-Identifier: Apache-2.0
"""Search exact models of counts if a parameter has three values.

Three values of p have no degree of freedom for a sum of two functions and a constant, so lines along p are not
informative. If the functions of the other parameters are known (for example n and n²), the counts at each p determine
their coefficients. Each coefficient is a function of p: a multiple of one function, confirmed by two further values, or
two functions, or one and a constant, confirmed by one value. For example, (n/√p + 2)² is found at p = 4, 9, 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_PAIR_COMPLEXITY, EXACT_RESOLUTION, FEW_NOTHING, FEW_TOLERANCE, FEW_VALUES
from ..criterion.criterion import Candidates
from ..data.preparation import unit_of
from ..fit.fitter import fit, with_constant
from ..hypotheses.library import SimpleTerm
from ..hypotheses.tables import Specification, Tables, tensor

_Flags = NDArray[np.bool_]
_Index = NDArray[np.int64]


# index of no function; -1 is a constant
_ABSENT = -2


@dataclass(frozen=True)
class FewValues:
    """One parameter with three values. tables: the terms at the measured points.

    parameter: its number. points: (C, m).
    """

    points: FloatArray
    tables: Tables
    parameter: int

    def propose(
        self, values: FloatArray, weights: FloatArray, rounding: FloatArray, terms: list[Specification], known: _Flags
    ) -> list[Candidates]:
        """Return hypotheses that may reproduce call paths exactly; none if the parameter does not have 3 values.

        values, weights: (N, C). rounding: (N,), the largest weighted residual. terms: by parameter (N, 3), -1 for none.
        known: (N,), where all terms of the other parameters are known and a model is wanted.
        """
        if len(terms) == 1 or len(self._places) != FEW_VALUES:
            return []
        others = [np.where(number == self.parameter, -1, found) for number, found in enumerate(terms)]
        sizes = np.stack([(found >= 0).sum(axis=1) for found in others], axis=1)
        result = []
        for shape in np.unique(sizes[known], axis=0).tolist():
            rows = np.flatnonzero(known & (sizes == shape).all(axis=1))
            products = tensor([found[rows] for found in others], shape)
            if min(place.size for place in self._places) > products.shape[1] + 1:
                result += self._sums(rows, values[rows], weights[rows], rounding[rows], products)
        return result

    def _sums(
        self, rows: _Index, values: FloatArray, weights: FloatArray, rounding: FloatArray, others: Specification
    ) -> list[Candidates]:
        """Return the simplest sums that the counts of call paths `rows` support.

        others: (N, Q, m), all products of the functions of the other parameters.
        """
        columns = with_constant(self.tables.design(others))
        fits = [fit(columns[:, None, :, place], values[:, place], weights[:, place]) for place in self._places]
        good = np.maximum.reduce([found.worst[:, 0] for found in fits]) <= rounding
        rows, values, weights, columns, others = (a[good] for a in (rows, values, weights, columns, others))
        coefficients = np.stack([found.coefficients[good, 0] for found in fits], axis=2)  # (N, 1 + Q, 3)
        share = np.abs(coefficients).max(axis=2) * np.abs(columns * weights[:, None]).max(axis=2)
        path, number = np.nonzero(share > FEW_NOTHING)
        functions = np.full((*share.shape, 2), _ABSENT)
        functions[path, number], supported = self._functions(
            coefficients[path, number], self._evidence(values, coefficients, columns)[path, number]
        )
        good = np.ones(len(rows), dtype=bool)
        good[path[~supported]] = False
        product = np.pad(others, ((0, 0), (1, 0), (0, 0)), constant_values=-1)
        terms = np.repeat(product, 2, axis=1)
        flat = functions.reshape(len(rows), terms.shape[1])
        terms[:, :, self.parameter] = flat
        constant = ((terms < 0).all(axis=2) & (flat != _ABSENT)).any(axis=1)
        real = (terms >= 0).any(axis=2) & (flat != _ABSENT)
        order = np.argsort(~real, axis=1, kind="stable")
        terms, width = np.take_along_axis(terms, order[:, :, None], axis=1), real.sum(axis=1)
        good &= (width > 0) & (width + constant < values.shape[1])
        return [
            Candidates(rows[chosen], terms[chosen, :size].astype(np.int16), with_constant)
            for size in np.unique(width[good]).tolist()
            for with_constant in (False, True)
            if (chosen := good & (width == size) & (constant == with_constant)).any()
        ]

    @cached_property
    def _places(self) -> list[_Index]:
        """The points at each of the values."""
        positions = self.points[:, self.parameter]
        return [np.flatnonzero(positions == p) for p in np.unique(positions)]

    @cached_property
    def _families(self) -> list[_Family]:
        table = self.tables.columns[self.parameter][:, [place[0] for place in self._places]]
        order = np.append(self.tables.order_of(self.parameter), 0.0)
        return [_family(sets, table, order) for sets in _sets(self.tables.terms[self.parameter])]

    def _evidence(self, values: FloatArray, coefficients: FloatArray, columns: FloatArray) -> FloatArray:
        """Return the evidence of one value, (N, Q): the logarithm of its variation over the resolution.

        The resolution of whole numbers is 1; that of others is their unit, such as a tenth for shares of 0.4 and 0.5.
        """
        whole = (values == np.round(values)).all(axis=1)
        top = np.abs(values).max(axis=1)
        resolution = np.where(whole, 1.0, unit_of(values, EXACT_RESOLUTION * np.where(top > 0, top, 1.0)))
        variation = np.ptp(coefficients, axis=2) * np.abs(columns).max(axis=2)
        result: FloatArray = np.log(np.maximum(variation / resolution[:, None], 1.0))
        return result

    def _functions(self, coefficients: FloatArray, evidence: FloatArray) -> tuple[_Index, _Flags]:
        """Return the simplest functions whose sum is `coefficients` (M, 3): numbers (M, 2); and which are confirmed."""
        tolerance = FEW_TOLERANCE * np.abs(coefficients).max(axis=1)
        result = np.full((len(coefficients), 2), _ABSENT)
        supported = np.ptp(coefficients, axis=1) <= tolerance
        result[supported, 0] = -1
        undecided, tried = np.flatnonzero(~supported), 0
        for family in self._families:
            target = coefficients[undecided]
            found = np.einsum("skt,mt->msk", family.inverse, target)
            deviation = np.abs(np.einsum("stk,msk->mst", family.design, found) - target[:, None]).max(axis=2)
            lead = np.take_along_axis(found, family.lead[None, :, None], axis=2)[:, :, 0]
            matching = (deviation <= tolerance[undecided, None]) & (lead > 0) & (family.freedom > 0)
            rows = np.flatnonzero(matching.any(axis=1))
            first = matching[rows].argmax(axis=1)
            chosen = undecided[rows]
            result[chosen, : family.sets.shape[1]] = family.sets[first]
            supported[chosen] = family.freedom[first] * evidence[chosen] >= np.log(tried + first + 1) + 1.0
            undecided, tried = np.delete(undecided, rows), tried + family.tried
        return result, supported


@dataclass(frozen=True)
class _Family:
    """Sets of K functions at the three values, simplest first, without duplicates there.

    - sets: (S, K). design: (S, 3, K). inverse: least squares, (S, K, 3).
    - lead: the function that grows fastest, (S,). freedom: number of values that confirm the set, (S,).
    - tried: number of sets.
    """

    sets: NDArray[np.int64]
    design: FloatArray
    inverse: FloatArray
    lead: NDArray[np.int64]
    freedom: NDArray[np.int64]
    tried: int


def _family(sets: NDArray[np.int64], table: FloatArray, order: FloatArray) -> _Family:
    design = table[sets].transpose(0, 2, 1)
    gram = design.transpose(0, 2, 1) @ design
    kept = np.linalg.cond(gram) < 1e12
    design, kept_sets = design[kept], sets[kept]
    inverse = np.linalg.solve(gram[kept], design.transpose(0, 2, 1))
    # if all functions are zero, as logarithms at 1, nothing confirms the set
    freedom = (design != 0).any(axis=2).sum(axis=1) - sets.shape[1]
    return _Family(kept_sets, design, inverse, order[kept_sets].argmax(axis=1), freedom, len(sets))


@lru_cache(maxsize=128)
def _sets(terms: tuple[SimpleTerm, ...]) -> tuple[NDArray[np.int64], ...]:
    """Return single functions, and sums of one and a constant (-1) or of two, simplest first, (S, 1) and (S, 2)."""
    cost = np.array([*(term.cost for term in terms), 0.0])
    cheap = [*np.flatnonzero(cost[:-1] <= EXACT_PAIR_COMPLEXITY).tolist(), -1]
    result = []
    for sets in (np.arange(len(terms))[:, None], np.array(list(combinations(cheap, 2)), dtype=np.int64).reshape(-1, 2)):
        result.append(sets[np.argsort(cost[sets].sum(axis=1), kind="stable")])
    return tuple(result)
