# SPDX-License-Identifier: Apache-2.0
"""Select the rows that are held out from a fit to measure the error of the model.

All repetitions of a configuration are held out together, so that the error is that of new configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..experiment import FloatArray
from .modes import IntArray

FOLDS, FINE_FOLDS = 4, 10
"""Number of folds of cross-validation for the choice of hyper-parameters, and for the errors of log-additive models."""
MANY_ROWS, MOST_HELD = 4000, 2000
"""From the first number of rows on, there is no cross-validation, but one held-out part: a fifth of the rows, at most
the second number."""
LEAST_CONFIGURATIONS = 4
"""With fewer configurations, rows are held out individually."""
MOSTLY_SINGLE = 0.9
"""With more configurations per row than this (few repetitions), rows are held out individually, too."""


def held_out_folds(
    x: FloatArray, categorical: Sequence[int] = (), parts: int = FOLDS
) -> list[tuple[IntArray, IntArray]]:
    """Return pairs of the indices of training rows and of held-out rows.

    There is one pair from MANY_ROWS rows on; for fewer rows, one pair for each of `parts` folds of cross-validation.
    x: rows (N, d) in random order; categorical: columns whose values have no order. All rows of a configuration are
    either training rows or held out. Rows are separated individually if there are few configurations, few repetitions,
    or no new configurations (all parameters are categorical, and all combinations were measured).
    """
    count, group = len(x), _together(x, categorical)
    different = int(group.max(initial=-1)) + 1
    if count < MANY_ROWS:
        part = group % min(parts, different)
        return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(part.max() + 1)]
    rows_until = np.cumsum(np.bincount(group))
    last = int(np.searchsorted(rows_until, min(count // 5, MOST_HELD)))
    held = group <= last
    if 2 * rows_until[last] > count:  # a configuration with more than half of the rows remains a training row
        held = group < last if last else group > 0
    return [(np.flatnonzero(~held), np.flatnonzero(held))]


def independent(x: FloatArray, categorical: Sequence[int] = ()) -> IntArray:
    """Return the indices of rows x (N, d) with independent errors: one row for each set that is held out together."""
    return np.unique(_together(x, categorical), return_index=True)[1]


def _together(x: FloatArray, categorical: Sequence[int]) -> IntArray:
    """Return for each row x (N, d) the number of the set of rows with which it is held out, shape (N,)."""
    group = configurations(x)
    different = int(group.max(initial=-1)) + 1
    distinct = {column: len(np.unique(x[:, column])) for column in range(x.shape[1])}
    varied = {column for column, values in distinct.items() if values > 1}
    all_there = varied <= set(categorical) and different == prod(distinct.values())
    single = different < LEAST_CONFIGURATIONS or different > MOSTLY_SINGLE * len(x) or all_there
    return np.arange(len(x)) if single else group


def configurations(x: FloatArray) -> IntArray:
    """Return the number of the configuration of each row x (N, d), shape (N,), numbered by first occurrence."""
    if not x.shape[1]:
        return np.zeros(len(x), dtype=np.intp)
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse.ravel()])
