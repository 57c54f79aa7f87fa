# SPDX-License-Identifier: Apache-2.0
"""Propose counts of decomposed domains from all numbers of processes at once: polynomials of shares.

A stencil in the part of a rank does a product of one linear function per dimension, such as (3n - 2/px)·(3n - 2/py)·(3n
- 2/pz) with the size n of a rank, or (N/px + 2)·(N/py + 2) with the total size N. With few sizes, the lines at each
number of processes have no more points than such a polynomial has coefficients; all points together have more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import comb

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..criterion.exactness import exact_weights, rounding_of
from ..fit.fitter import fit
from ..grids.calibration import GRID_DOUBT, GRID_FREE_POINTS, GRID_MOST_OTHERS, GRID_MOST_POWER
from ..hypotheses.library import make_term
from .grid_coefficients import Functions
from .grid_forms import Form, GridForms
from .grid_functions import EVERY, SHARE

# Sums with a smaller relative residual are fitted precisely; number of counts at a time.
_NEAR, _ROWS = 1e-6, 64
# Terms below this part of the largest count are rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Polynomial:
    """Powers of the other parameter. forms: their coefficients; length: of the description."""

    functions: Functions
    forms: tuple[Form, ...]
    length: float


class GridPolynomials:
    """Proposes polynomials. sizes: values of the other parameter, (C,); place: index of the grid in `forms`, (C,)."""

    def __init__(self, sizes: FloatArray, place: NDArray[np.int64], forms: GridForms) -> None:
        self.sizes, self.place, self.forms = sizes, place, forms

    @cached_property
    def _shares(self) -> dict[int, int]:
        """Return the indices of the sums of all products of this number of shares, by this number."""
        dimensions = self.forms.grids.shape[1]
        return {
            grid_function.products[0].count(SHARE): number
            for number, grid_function in enumerate(self.forms.grid_functions)
            if grid_function.processes is None
            and not grid_function.is_beside_domains
            and all(set(own) <= {EVERY, SHARE} for own in grid_function.products)
            and len(grid_function.products) == comb(dimensions, grid_function.products[0].count(SHARE))
        }

    @cached_property
    def _diagonals(self) -> list[list[tuple[int, int]]]:
        """Powers of the size and numbers of shares in products of 2 or 3 linear functions.

        With the size of a rank, both have the same sum in all terms; with the size of the domain, the same difference.
        """
        dimensions = self.forms.grids.shape[1]
        powers = range(GRID_MOST_POWER + 1)
        weak = [[(power, total - power) for power in powers if 0 <= total - power <= dimensions] for total in (2, 3)]
        strong = [[(power, power - less) for power in powers if 0 <= power - less <= dimensions] for less in (0, 1, 2)]
        return [own for own in (*weak, *strong) if len(own) > 1]

    @cached_property
    def _terms(self) -> list[tuple[int, int]]:
        """Powers of the size, and number of multiplied shares: of products, and of other terms."""
        return sorted({*(term for own in self._diagonals for term in own), *self._others})

    @property
    def _others(self) -> list[tuple[int, int]]:
        """Return work of every rank with any grid, and work of one rank."""
        return [*((power, 0) for power in range(GRID_MOST_POWER + 1)), (0, self.forms.grids.shape[1])]

    @cached_property
    def _columns(self) -> FloatArray:
        """The terms at the points (K, C), each at most 1."""
        scaled: FloatArray = self._unscaled / self._scale[:, None]
        return scaled

    @cached_property
    def _scale(self) -> FloatArray:
        scale: FloatArray = self._unscaled.max(axis=1)
        return scale

    @property
    def _unscaled(self) -> FloatArray:
        columns = self.forms.columns
        return np.stack([self.sizes**power * columns[self._shares[many], self.place] for power, many in self._terms])

    @cached_property
    def _families(self) -> list[tuple[NDArray[np.int64], FloatArray]]:
        """Sets of 1, 2, … independent terms, (S, k), with bases of their orthogonal complements, (S, C, C - k)."""
        result = []
        for width, chosen in sorted(self._sets().items()):
            sets = np.array(sorted(chosen), dtype=np.int64)
            vectors, singular, _ = np.linalg.svd(self._columns[sets].transpose(0, 2, 1))
            kept = singular[:, -1] > 1e-7 * singular[:, 0]
            if kept.any():
                result.append((sets[kept], vectors[kept][:, :, width:]))
        return result

    def _sets(self) -> dict[int, set[tuple[int, ...]]]:
        """Return sets of terms with degrees of freedom, by width: a product of linear functions, and others."""
        number = {term: place for place, term in enumerate(self._terms)}
        found: dict[int, set[tuple[int, ...]]] = {}
        for diagonal in self._diagonals:
            for many in range(1, len(diagonal) + 1):
                for inner, more in product(combinations(diagonal, many), range(GRID_MOST_OTHERS + 1)):
                    for added in combinations(self._others, more):
                        own = tuple(sorted({number[term] for term in (*inner, *added)}))
                        if self._leaves_freedom(own):
                            found.setdefault(len(own), set()).add(own)
        return found

    def _leaves_freedom(self, chosen: tuple[int, ...]) -> bool:
        """Return whether there are more different points than terms, and enough grids and sizes.

        There must be more grids than functions of them for each power, and more sizes than powers for each function of
        the grid. Functions whose values at two grids only differ by a factor count once.
        """
        powers, shares = zip(*(self._terms[place] for place in chosen), strict=True)
        different = len(np.unique(self._columns[list(chosen)].round(12), axis=1).T)
        of_grid = max(powers.count(power) for power in set(powers))
        of_size = max(shares.count(many) for many in set(shares))
        enough = of_grid < len(self.forms.grids) and of_size < np.unique(self.sizes).size
        return different >= len(chosen) + GRID_FREE_POINTS and enough

    def propose(self, values: FloatArray) -> list[list[Polynomial]]:
        """Return the polynomials with the fewest terms that reproduce each of the counts (N, C), the shortest first."""
        found: list[list[Polynomial]] = [[] for _ in values]
        size = np.linalg.norm(values, axis=1)
        open_rows = np.flatnonzero(self._possible(values / np.where(size > 0, size, 1.0)[:, None]) & (size > 0))
        if not open_rows.size:
            return found
        weights = exact_weights(values)
        limit = rounding_of(values, weights)
        for sets, orthogonal in self._families:
            unit = values[open_rows] / size[open_rows, None]
            for path, near in zip(open_rows.tolist(), _near(orthogonal, unit), strict=True):
                own = sets[near]
                if not len(own):
                    continue
                fitted = fit(self._columns[own], values[path][None], weights[path][None])
                coefficients = fitted.coefficients[0] / self._scale[own]
                needed = (np.abs(fitted.coefficients[0]) > _NOTHING * np.abs(values[path]).max()).all(axis=1)
                exact = np.flatnonzero((fitted.worst[0] <= limit[path]) & needed)
                sums = [self._polynomial(own[i].tolist(), coefficients[i]) for i in exact.tolist()]
                sums.sort(key=lambda one: one.length)
                found[path] = [one for one in sums if one.length <= sums[0].length + GRID_DOUBT]
            open_rows = np.array([path for path in open_rows.tolist() if not found[path]], dtype=np.int64)
            if not open_rows.size:
                break
        return found

    def _possible(self, unit: FloatArray) -> NDArray[np.bool_]:
        """Return which counts (N, C) of length 1 are sums of all tried terms together."""
        number = {term: place for place, term in enumerate(self._terms)}
        result = np.zeros(len(unit), dtype=bool)
        for diagonal in self._diagonals:
            chosen = sorted({number[term] for term in (*diagonal, *self._others)})
            vectors, singular, _ = np.linalg.svd(self._columns[chosen].T)
            beside = unit @ vectors[:, int((singular > 1e-9 * singular[0]).sum()) :]
            result |= (beside**2).sum(axis=1) <= _NEAR**2
        return result

    def _polynomial(self, chosen: Sequence[int], coefficients: FloatArray) -> Polynomial:
        parts: dict[int, list[tuple[int, float]]] = {}
        for number, coefficient in zip(chosen, coefficients.tolist(), strict=True):
            power, many = self._terms[number]
            parts.setdefault(power, []).append((self._shares[many], coefficient))
        functions = tuple((make_term(Fraction(power), 0) if power else None,) for power in parts)
        forms = tuple(Form(tuple(a for a, _ in own), tuple(c for _, c in own)) for own in parts.values())
        return Polynomial(
            functions, forms, sum(self.forms.grid_functions[a].length for own in parts.values() for a, _ in own)
        )


def _near(orthogonal: FloatArray, unit: FloatArray) -> Iterator[NDArray[np.bool_]]:
    """Yield for each of the counts (N, C) of length 1 the sets of which it nearly is a sum; orthogonal: (S, C, F)."""
    sets, points, free = orthogonal.shape
    flat = orthogonal.transpose(1, 0, 2).reshape(points, sets * free)
    for first in range(0, len(unit), _ROWS):
        beside = (unit[first : first + _ROWS] @ flat).reshape(-1, sets, free)
        yield from (beside**2).sum(axis=2) <= _NEAR**2
