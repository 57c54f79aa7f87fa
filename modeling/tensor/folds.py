"""Which rows are held out: all repetitions of a configuration together, so that errors are those of new ones."""

from __future__ import annotations

import numpy as np

from ..experiment import FloatArray
from .modes import IntArray

FOLDS, FINE_FOLDS = 4, 10
"""Parts of few rows that hyper-parameters are chosen with, and that the errors of a quick model are measured with."""
MANY_ROWS, MOST_HELD = 4000, 2000
"""So many rows have one part that is held out, a fifth of them and at most so many."""
LEAST_CONFIGURATIONS = 2 * FINE_FOLDS
"""Of fewer configurations rows are held out one by one: too little would be left to fit to."""


def held_out_folds(x: FloatArray, parts: int = FOLDS) -> list[tuple[IntArray, IntArray]]:
    """Return numbers of rows that train and that are held out: a part of many rows, each row once of few.

    x: rows (N, d) in random order. Rows of the same configuration are on the same side.
    """
    count = len(x)
    group = configurations(x)
    if group.max(initial=-1) + 1 < LEAST_CONFIGURATIONS:
        group = np.arange(count)
    if count < MANY_ROWS:
        return [(np.flatnonzero(group % parts != fold), np.flatnonzero(group % parts == fold)) for fold in range(parts)]
    rows_until = np.cumsum(np.bincount(group))
    held = group <= np.searchsorted(rows_until, min(count // 5, MOST_HELD))
    return [(np.flatnonzero(~held), np.flatnonzero(held))]


def configurations(x: FloatArray) -> IntArray:
    """Return the number of the configuration of each row, (N,), in the order in which they first come."""
    if not x.shape[1]:
        return np.zeros(len(x), dtype=np.intp)
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse.ravel()])
