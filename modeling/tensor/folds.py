# SPDX-License-Identifier: Apache-2.0
"""Select held-out rows: all repetitions of a configuration together, so that errors apply to new configurations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..experiment import FloatArray
from .modes import IntArray

FOLDS, FINE_FOLDS = 4, 10
"""Number of folds of few rows for the choice of hyper-parameters, and for the errors of a simple model."""
MANY_ROWS, MOST_HELD = 4000, 2000
"""From this number of rows on there is one held-out part: a fifth of the rows, and at most the second number."""
LEAST_CONFIGURATIONS = 4
"""With fewer configurations, rows are held out individually."""
MOSTLY_SINGLE = 0.9
"""Rows are also held out individually if there are at least this many configurations per row (few repetitions)."""


def held_out_folds(
    x: FloatArray, categorical: Sequence[int] = (), parts: int = FOLDS
) -> list[tuple[IntArray, IntArray]]:
    """Return indices of training rows and held-out rows: one pair for many rows, cross-validation folds for few.

    x: rows (N, d) in random order. Rows of the same configuration are on the same side, unless all parameters are
    categorical and all their combinations were measured, so that there are no new configurations.
    """
    count, group = len(x), _together(x, categorical)
    different = int(group.max(initial=-1)) + 1
    if count < MANY_ROWS:
        part = group % min(parts, different)
        return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(part.max() + 1)]
    rows_until = np.cumsum(np.bincount(group))
    last = int(np.searchsorted(rows_until, min(count // 5, MOST_HELD)))
    held = group <= last
    if 2 * rows_until[last] > count:  # a configuration with most of the rows stays in the training rows
        held = group < last if last else group > 0
    return [(np.flatnonzero(~held), np.flatnonzero(held))]


def independent(x: FloatArray, categorical: Sequence[int] = ()) -> IntArray:
    """Return indices of held-out rows with independent errors: one row of each configuration."""
    return np.unique(_together(x, categorical), return_index=True)[1]


def _together(x: FloatArray, categorical: Sequence[int]) -> IntArray:
    """Return for each row the number of its set of rows that are held out together, shape (N,)."""
    group = configurations(x)
    different = int(group.max(initial=-1)) + 1
    distinct = {column: len(np.unique(x[:, column])) for column in range(x.shape[1])}
    varied = {column for column, values in distinct.items() if values > 1}
    all_there = varied <= set(categorical) and different == prod(distinct.values())
    single = different < LEAST_CONFIGURATIONS or different > MOSTLY_SINGLE * len(x) or all_there
    return np.arange(len(x)) if single else group


def configurations(x: FloatArray) -> IntArray:
    """Return the number of the configuration of each row, shape (N,), in order of first occurrence."""
    if not x.shape[1]:
        return np.zeros(len(x), dtype=np.intp)
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse.ravel()])
