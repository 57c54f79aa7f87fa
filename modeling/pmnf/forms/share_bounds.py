# SPDX-License-Identifier: Apache-2.0
"""What functions of a share leave of counts at least: which call paths they are fitted to.

Fits of shares are as costly as those of all parameters. Most counts that deviate from their models deviate by chance or
by rounding, which functions of a share leave as well. Here they are compared with candidates by their number of
coefficients, as the fits are afterwards (`shares.py`).
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
    """Return what a function of `own` coefficients has to leave less than, relative, to be preferred at so many points
    to a model of `former` coefficients that leaves `missed`.

    With more coefficients far less; else the likelihood decides, by more than a coefficient counts.
    """
    if own > former:
        return FAR_BETTER * missed
    return missed * math.exp(INEXACT.coefficient * (former - own - 1) / (2.0 * points))


def may_explain_alone(
    share: FloatArray, levels: FloatArray, counts: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return which counts (N, C) smooth functions of the share (C,) explain, times something for each of levels (L, C)
    of other parameters, better than models of `former` (N,) coefficients that leave `missed` (N,).
    """
    steps, logs = np.log2(share), np.log(counts)
    found = _by_one_term(share, levels, logs, missed, former)
    basis = np.concatenate([[steps**power for power in range(SMOOTH_POWER + 1)], levels])
    return found | (_residuals(basis, logs) < _least(missed, former, 2, len(share)))


def may_explain(
    share: FloatArray, parts: FloatArray, counts: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return the same of functions of the share and the number of parts (C,).

    They are products, or mostly sums of what is done for the share, in each step of a tree of it, for each part, and in
    each step of a tree of parts.
    """
    found = _by_one_term(share, np.log2(parts)[None], np.log(counts), missed, former)
    tree = np.log2(np.maximum(parts, 1.0))
    steps = share * np.log2(share)
    sums = np.stack([steps, np.ones_like(share), share, parts, tree, parts * tree])
    rows = np.flatnonzero(~found)
    left = _left_of_ones(sums, counts[rows])
    found[rows] = left < _least(missed[rows], former[rows], 3, len(share))
    # all sums together leave the least; those of two without steps of the share are functions of all parameters
    rows = rows[~found[rows] & (left < _least(missed[rows], former[rows], 2, len(share)))]
    if rows.size:
        pairs = np.array([_left_of_ones(np.stack([steps, other]), counts[rows]) for other in sums[1:]])
        found[rows] = pairs.min(axis=0) < _least(missed[rows], former[rows], 2, len(share))
    return found


def _by_one_term(
    share: FloatArray, others: FloatArray, logs: FloatArray, missed: FloatArray, former: NDArray[np.int64]
) -> _Flags:
    """Return which logarithms of counts (N, C) a power of the share with logarithms of it, times powers whose
    logarithms are `others` (L, C), explains. Powers without logarithms are among the functions of all parameters.
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
    """Return what functions of `own` coefficients have to leave less than (N,), never more than models leave."""
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
    """Return what a basis (K, C) leaves of values (N, C), and how many values are left free."""
    own, *_ = np.linalg.svd(basis.T / np.abs(basis).max(axis=1), full_matrices=False)
    return values - (values @ own) @ own.T, values.shape[1] - own.shape[1]


def _root_mean(left: FloatArray, free: int) -> FloatArray:
    """Return root mean squares (N,) of residuals (N, C) of which so many are free."""
    return np.asarray(np.sqrt((left**2).sum(axis=1) / free) if free > 0 else np.zeros(len(left)))
