# SPDX-License-Identifier: Apache-2.0
"""Sums of loop nests as models: their terms, and other sums with the same counts as alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ...experiment import FloatArray
from ...process_grid import Axis, ProcessGrid
from ..calibration import LEAST_WEIGHT
from ..model import Alternative, Factor, Model, Term, collect
from ..proposers.grid_forms import Domain
from ..proposers.loop_nests import Nest, Range
from ..proposers.nest_sums import NestSum
from .calibration import GRID_ALTERNATIVES, GRID_MOST_DOUBT, NEST_END, NEST_LIKELY_PART
from .terms import as_one, notes_of


@dataclass(frozen=True, eq=False)
class NestWriter:
    """Converts sums of nests over a domain whose size is the parameter `name`; processes, sizes: measured values."""

    grid: ProcessGrid
    name: str
    domain: Domain
    processes: FloatArray
    sizes: FloatArray

    def model(self, sums: Sequence[NestSum]) -> Model:
        """Return the median of sums with the same counts (the shortest first), with the others as alternatives."""
        weights = 2.0 ** (sums[0].bits - np.array([own.bits for own in sums]))
        weights /= weights.sum()
        powers = self.sizes.max() ** np.arange(self.domain.dimensions + 1)
        values = np.einsum("k,skb->sb", powers, np.stack([own.beyond for own in sums]))
        # the median of the sums that are nearly as likely as the likeliest
        likely = np.where(weights >= NEST_LIKELY_PART * weights.max(), weights, 0.0)
        order = np.argsort(values[:, 0], kind="stable")
        best = int(order[np.searchsorted(np.cumsum(likely[order]), 0.5 * likely.sum())])
        constant, terms = self._written(sums[best])
        alternatives = [
            Alternative(weight, *self._written(sums[number])) for number, weight in _kept(values, weights, best)
        ]
        model = Model((self.grid.parameter, self.name), constant, terms, alternatives=tuple(alternatives))
        return replace(model, notes=notes_of(self.grid, self.processes, model))

    def _written(self, found: NestSum) -> tuple[float, tuple[Term, ...]]:
        terms = [
            term.scaled(coefficient)
            for nest, coefficient in zip(found.nests, found.coefficients, strict=True)
            for term in self._terms(nest)
        ]
        return collect(0.0, terms)

    def _terms(self, nest: Nest) -> list[Term]:
        """Return the products of one part of the range of each dimension."""
        axes: list[Axis | None] = [*self.grid.axes, *[None] * (self.domain.dimensions - self.grid.dimensions)]
        found = []
        for over in nest.over:
            products = [Term(1.0, ())]
            for own, axis in zip(over, axes, strict=True):
                products = [left.times(right) for left in products for right in self._parts(own, axis)]
            found += products
        return [Term(own.coefficient, self._together(own.factors)) for own in found]

    def _parts(self, own: Range, axis: Axis | None) -> list[Term]:
        p, size = self.grid.parameter, Factor(self.name, Fraction(1))
        if axis is None:
            return _some([(own.cells, (size,)), (own.one + own.share, ())])
        share = Factor(p, Fraction(-1), axis=axis)
        cells = (size, share) if self.domain.strong else (size,)
        neighbours = own.one if own.one == -own.share else 0
        return _some(
            [
                (own.cells, cells),
                (neighbours, (Factor(p, shares=1, axis=axis),)),
                (own.one - neighbours, ()),
                (own.share + neighbours, (share,)),
                (own.several, (Factor(p, several=True, axis=axis),)),
            ]
        )

    def _together(self, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
        of_grid = tuple(own for own in factors if own.axis is not None)
        return (*as_one(of_grid, self.grid), *(own for own in factors if own.axis is None))


def _some(parts: Sequence[tuple[int, tuple[Factor, ...]]]) -> list[Term]:
    return [Term(float(coefficient), factors) for coefficient, factors in parts if coefficient]


def _kept(values: FloatArray, weights: FloatArray, best: int) -> list[tuple[int, float]]:
    """Return the indices and weights of the alternatives that are kept. values: (S, B).

    These are the lowest and the highest at the first and the last of the larger grids, with enough weight to be in the
    interval, and the likeliest.
    """
    ends = {int(pick(values[:, place])) for place in (0, -1) for pick in (np.argmin, np.argmax)}
    ends = {own for own in ends if not np.allclose(values[own], values[best], rtol=1e-9)}
    likeliest = [own for own in np.argsort(-weights, kind="stable").tolist() if own != best and own not in ends]
    chosen = [*sorted(ends), *likeliest[: GRID_ALTERNATIVES - len(ends)]]
    if not chosen:
        return []
    own_part = weights[chosen] / weights[chosen].sum() * min(GRID_MOST_DOUBT, 1.0 - weights[best])
    least = np.where(np.arange(len(chosen)) < len(ends), NEST_END, 0.0)
    raised = np.maximum(own_part, least)
    # weights above the smallest are reduced
    room = (GRID_MOST_DOUBT - least.sum()) / max(float((raised - least).sum()), GRID_MOST_DOUBT - least.sum())
    kept = least + (raised - least) * room
    return [(own, float(weight)) for own, weight in zip(chosen, kept, strict=True) if weight >= LEAST_WEIGHT]
