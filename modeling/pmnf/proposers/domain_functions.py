# SPDX-License-Identifier: Apache-2.0
"""Sums of what the parts of a decomposed domain have that come near counts: cells, faces, edges, neighbours, rows.

What particles do, or what depends on data, is no exact function of the domain, but the more of it there is the more it
is like one: so much for each cell, for each cell of a layer of ghosts, for each part. What ranks do in the columns of a
distributed matrix is so much for each of those that a rank has, in as many steps as an exchange along them takes. All
of these are costs, none is negative (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from ...experiment import FloatArray
from .grid_forms import GridForms
from .grid_functions import EVERY, NEIGHBOUR, SEVERAL, SHARE, STEPS, GridFunction

_MOST_DIMENSIONS = 3
_OF_MATRIX = 2


@dataclass(frozen=True)
class Part:
    """What is looked at of a domain.

    strong: the size is that of the domain, not that of a part. axis: neighbours in one dimension alone, None for cells,
    faces and edges of all of them alike. rows: of a matrix whose columns are divided in that dimension, the columns.
    """

    strong: bool
    axis: int | None = None
    rows: bool = False


def parts_of(dimensions: int) -> list[Part]:
    """Return what is looked at on grids of so many dimensions."""
    axes = list(range(dimensions)) if dimensions > 1 else []
    found = [Part(strong, axis) for axis in (None, *axes) for strong in (True, False)]
    return found + [Part(True, axis, rows=True) for axis in axes if dimensions == _OF_MATRIX]


class DomainFunctions:
    """What parts of a domain have, at points: sizes (C,), and place (C,), which of the grids of `forms` it is.

    nothing: the same of points where nothing is counted, so that functions which are something there have no part.
    functions: powers of the size, with the numbers of the functions of the grid; columns: (K, C).
    """

    def __init__(
        self,
        forms: GridForms,
        part: Part,
        sizes: FloatArray,
        place: NDArray[np.int64],
        nothing: tuple[FloatArray, NDArray[np.int64]],
    ) -> None:
        if part.axis is None:
            found = _of_all(forms, part.strong)
        else:
            found = _of_rows(forms, part.axis) if part.rows else _of_one(forms, part.strong, part.axis)
        self.functions = [
            (power, own)
            for power, own in sorted(found)
            if not (nothing[0] ** power * forms.columns[own, nothing[1]]).any()
        ]
        columns = [sizes**power * forms.columns[own, place] for power, own in self.functions]
        self.columns: FloatArray = np.array(columns).reshape(len(columns), len(sizes))

    def fit(
        self, counts: FloatArray, at: NDArray[np.bool_] | slice = slice(None), of: NDArray[np.bool_] | None = None
    ) -> FloatArray:
        """Return the coefficients (K,), none negative, of least relative squares of counts (C,).

        at: the points, all without it; of: the functions that may have a coefficient other than 0.
        """
        relative = self.columns[:, at] / counts[at]
        scale = np.linalg.norm(relative, axis=1)
        scale = np.where(scale > 0, scale, 1.0)
        used = np.ones(len(scale), dtype=bool) if of is None else of
        result = np.zeros(len(scale))
        if not used.any():  # which SciPy 1.17 does not survive
            return result
        result[used] = nnls((relative / scale[:, None])[used].T, np.ones(relative.shape[1]))[0] / scale[used]
        return result


def _of_all(forms: GridForms, strong: bool) -> set[tuple[int, int]]:
    """Return the powers of the size and functions of the grid that are alike in all dimensions."""
    number = {own: i for i, own in enumerate(map(_kinds, forms.grid_functions)) if own is not None}
    dimensions = forms.grids.shape[1]
    ends = [kind for kind in (NEIGHBOUR, SEVERAL) if (EVERY,) * (dimensions - 1) + (kind,) in number]
    shares = [(EVERY,) * (dimensions - many) + (SHARE,) * many for many in range(dimensions + 1)]
    wanted: list[tuple[int, tuple[int, ...]]] = []
    if strong:
        # loops over all of a dimension that is not divided are one more power
        undivided = range(2 if dimensions < _MOST_DIMENSIONS else 1)
        wanted += [(many + more, own) for many, own in enumerate(shares) for more in undivided]
        wanted += [(power, shares[-1]) for power in range(dimensions)]
        for many, more in ((many, more) for many in range(dimensions) for more in undivided):
            wanted += [(many + more, tuple(sorted((*shares[many][1:], end)))) for end in ends]
    else:
        wanted += [(power, shares[0]) for power in range(_MOST_DIMENSIONS + 1)] + [(0, shares[-1])]
        sides = [tuple(sorted((*shares[0][1:], end))) for end in ends]
        wanted += [(power, own) for power in range(_MOST_DIMENSIONS) for own in sides]
    found = {(power, number[own]) for power, own in wanted if own in number}
    return found | {(0, i) for i, own in enumerate(forms.grid_functions) if own.processes == (0, 1)}


def _of_one(forms: GridForms, strong: bool, axis: int) -> set[tuple[int, int]]:
    """Return the same of neighbours in one dimension: for each cell of the face between them, and once."""
    dimensions = forms.grids.shape[1]
    found = set()
    for number, own in enumerate(forms.grid_functions):
        if own.processes is None and len(own.products) == 1 and own.products[0][axis] in (NEIGHBOUR, SEVERAL):
            rest = {kind for place, kind in enumerate(own.products[0]) if place != axis}
            if rest <= {SHARE if strong else EVERY}:
                found.add((dimensions - 1, number))
            if rest <= {EVERY}:
                found.add((0, number))
    return found


def _of_rows(forms: GridForms, axis: int) -> set[tuple[int, int]]:
    """Return the same of columns that are divided in one dimension: of each, of those of a rank, in steps along it."""
    found = set()
    for number, own in enumerate(forms.grid_functions):
        if own.processes is not None or own.several or own.others or len(own.products) != 1:
            continue
        along, across = own.products[0][axis], own.products[0][1 - axis]
        if along in (EVERY, SHARE) and across in (EVERY, STEPS):
            found |= {(0, number), (1, number)}
        elif along == across == SHARE:
            found.add((_OF_MATRIX, number))
    return found


def _kinds(own: GridFunction) -> tuple[int, ...] | None:
    """Return what a function that is the same in all dimensions has in one of its products, in order; else None."""
    if (
        own.processes is not None
        or own.is_beside_domains
        or own.both_sides
        or set(own.products) != set(permutations(own.products[0]))
    ):
        return None
    return tuple(sorted(own.products[0]))
