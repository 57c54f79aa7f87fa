# SPDX-License-Identifier: Apache-2.0
"""Bound the residuals of functions of a share, to select the call paths for which they are fitted.

Fits of shares take as long as fits of all parameters. Most counts that deviate from their models deviate by chance or
rounding, and functions of a share do not help. The bounds are compared with candidates by their number of coefficients,
like the fits (`shares.py`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import FAR_BETTER, INEXACT, SMOOTH_POWER
from ..hypotheses.library import Library

_Flags = NDArray[np.bool_]


def to_beat(missed: float, former: int, own: int, points: int) -> float:
    """Return the largest relative residual at which a function of `own` coefficients replaces a model.

    The model has `former` coefficients and the residual `missed` at this number of points. A function with more
    coefficients must have a much smaller residual; otherwise the likelihood decides, with a penalty per coefficient.
    """
    if own > former:
        return FAR_BETTER * missed
    return missed * math.exp(INEXACT.coefficient * (former - own - 1) / (2.0 * points))


def may_explain_alone(
    share: FloatArray, levels: FloatArray, counts: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return which counts (N, C) smooth functions of the share (C,) explain better than their models.

    The functions have separate factors for each of the levels (L, C) of other parameters. The models have `former` (N,)
    coefficients and the residuals `missed` (N,).
    """
    steps, logs = np.log2(share), np.log(counts)
    found = _by_one_term(share, levels, logs, missed, former)
    basis = np.concatenate([[steps**power for power in range(SMOOTH_POWER + 1)], levels])
    return found | (_residuals(basis, logs) < _least(missed, former, 2, len(share)))


def may_explain(
    share: FloatArray, parts: FloatArray, counts: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return the same for functions of the share and the number of parts (C,).

    They are products, or sums of work for the share, per step of a tree of the share, per part, and per step of a tree
    of parts.
    """
    found = _by_one_term(share, np.log2(parts)[None], np.log(counts), missed, former)
    tree = np.log2(np.maximum(parts, 1.0))
    steps = share * np.log2(share)
    sums = np.stack([steps, np.ones_like(share), share, parts, tree, parts * tree])
    rows = np.flatnonzero(~found)
    left = _left_of_ones(sums, counts[rows])
    found[rows] = left < _least(missed[rows], former[rows], 3, len(share))
    # the sum of all functions has the smallest residual; sums of two without steps of the share depend on all
    # parameters
    rows = rows[~found[rows] & (left < _least(missed[rows], former[rows], 2, len(share)))]
    if rows.size:
        pairs = np.array([_left_of_ones(np.stack([steps, other]), counts[rows]) for other in sums[1:]])
        found[rows] = pairs.min(axis=0) < _least(missed[rows], former[rows], 2, len(share))
    return found


def _by_one_term(
    share: FloatArray, others: FloatArray, logs: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return which logarithms of counts (N, C) a power of the share with logarithms of the share explains.

    It is multiplied by powers whose logarithms are `others` (L, C). Powers without logarithms are functions of all
    parameters.
    """
    terms = [term for term in Library().terms(share) if term.log and term.power >= 0.0]
    least = _least(missed, former, 1, len(share))
    found = np.zeros(len(logs), dtype=bool)
    if share.min() <= 1.0 or not terms:
        return found
    steps, basis = np.log(share), np.concatenate([np.ones((1, len(share))), others])
    offsets = np.array([term.power * steps + term.log * np.log(steps) for term in terms])
    (own, free), (columns, _) = _apart(basis, logs), _apart(basis, offsets)
    for column in columns:
        found |= _root_mean(own - column, free) < least
    return found


def _least(missed: FloatArray, former: NDArray[np.int64], own: int, points: int) -> FloatArray:
    """Return the largest residuals (N,) for functions of `own` coefficients, at most those of models."""
    pairs = zip(missed.tolist(), former.tolist(), strict=True)
    return np.array([min(to_beat(by, other, own, points), by) for by, other in pairs])


def _left_of_ones(basis: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the relative residuals (N,) of counts (N, C) from sums of functions (K, C)."""
    own = np.linalg.qr(np.swapaxes(basis / counts[:, None, :], 1, 2))[0]
    explained = own.sum(axis=1)
    left = 1.0 - np.einsum("nck,nk->nc", own, explained)
    return _root_mean(left, counts.shape[1] - own.shape[2])


def _residuals(basis: FloatArray, values: FloatArray) -> FloatArray:
    """Return the root mean square residuals (N,) of values (N, C) from the span of a basis (K, C)."""
    return _root_mean(*_apart(basis, values))


def _apart(basis: FloatArray, values: FloatArray) -> tuple[FloatArray, int]:
    """Return the residuals of values (N, C) from a basis (K, C), and the degrees of freedom."""
    own, *_ = np.linalg.svd(basis.T / np.abs(basis).max(axis=1), full_matrices=False)
    return values - (values @ own) @ own.T, values.shape[1] - own.shape[1]


def _root_mean(left: FloatArray, free: int) -> FloatArray:
    """Return root mean squares (N,) of residuals (N, C) with these degrees of freedom."""
    return np.asarray(np.sqrt((left**2).sum(axis=1) / free) if free > 0 else np.zeros(len(left)))
