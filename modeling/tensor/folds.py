# SPDX-License-Identifier: Apache-2.0
"""Which rows are held out: all repetitions of a configuration together, so that errors are those of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..experiment import FloatArray
from .modes import IntArray

FOLDS, FINE_FOLDS = 4, 10
"""Parts of few rows that hyper-parameters are chosen with, and that the errors of a quick model are measured with."""
MANY_ROWS, MOST_HELD = 4000, 2000
"""So many rows have one part that is held out, a fifth of them and at most so many."""
LEAST_CONFIGURATIONS = 4
"""Of fewer configurations rows are held out one by one."""
MOSTLY_SINGLE = 0.9
"""Configurations per row from which on rows are held out one by one, too: what few repetitions show hardly counts."""


def held_out_folds(
    x: FloatArray, categorical: Sequence[int] = (), parts: int = FOLDS
) -> list[tuple[IntArray, IntArray]]:
    """Return numbers of rows that train and that are held out: a part of many rows, each row once of few.

    x: rows (N, d) in random order. Rows of the same configuration are on the same side, unless all parameters are
    categorical and all their combinations were measured: then there is no other configuration.
    """
    count, group = len(x), _together(x, categorical)
    different = int(group.max(initial=-1)) + 1
    if count < MANY_ROWS:
        part = group % min(parts, different)
        return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(part.max() + 1)]
    rows_until = np.cumsum(np.bincount(group))
    last = int(np.searchsorted(rows_until, min(count // 5, MOST_HELD)))
    held = group <= last
    if 2 * rows_until[last] > count:  # a configuration with most of the rows stays on the side that trains
        held = group < last if last else group > 0
    return [(np.flatnonzero(~held), np.flatnonzero(held))]


def independent(x: FloatArray, categorical: Sequence[int] = ()) -> IntArray:
    """Return numbers of held-out rows whose errors are independent: one of each configuration."""
    return np.unique(_together(x, categorical), return_index=True)[1]


def _together(x: FloatArray, categorical: Sequence[int]) -> IntArray:
    """Return the number of the set of rows that each row is held out with, (N,)."""
    group = configurations(x)
    different = int(group.max(initial=-1)) + 1
    distinct = {column: len(np.unique(x[:, column])) for column in range(x.shape[1])}
    varied = {column for column, values in distinct.items() if values > 1}
    all_there = varied <= set(categorical) and different == prod(distinct.values())
    single = different < LEAST_CONFIGURATIONS or different > MOSTLY_SINGLE * len(x) or all_there
    return np.arange(len(x)) if single else group


def configurations(x: FloatArray) -> IntArray:
    """Return the number of the configuration of each row, (N,), in the order in which they first come."""
    if not x.shape[1]:
        return np.zeros(len(x), dtype=np.intp)
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse.ravel()])
