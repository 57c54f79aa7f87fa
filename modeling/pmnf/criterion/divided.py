# SPDX-License-Identifier: Apache-2.0
"""Criterion for models of several ranges of a parameter, by the likelihood of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from ..calibration import NOISY
from ..changes.calibration import CHANGE_EXACT
from .evidence import minus_log_likelihood


@dataclass(frozen=True)
class RangeFit:
    """Errors (root mean square, relative) of a fit at fitted and left-out points, with its numbers."""

    residual: float
    left_out: float
    points: int
    coefficients: int


def divided_score(fits: Sequence[RangeFit], freedom: float, noise: float) -> float:
    """Return -2 log of the likelihood of models of disjoint ranges, plus the penalty of their coefficients.

    As in `evidence.score`, it uses the geometric mean of errors at fitted and at left-out points, and the noise of
    repetitions.
    """
    squares = [one.points * one.residual * (one.left_out if isfinite(one.left_out) else one.residual) for one in fits]
    number = sum(one.points for one in fits)
    if not number:
        return inf
    penalty = NOISY.coefficient * sum(one.coefficients for one in fits)
    known = np.asarray(noise, dtype=np.float64), np.asarray(freedom, dtype=np.float64)
    return float(minus_log_likelihood(np.asarray(sum(squares)), number, *known, CHANGE_EXACT**2)) + penalty
