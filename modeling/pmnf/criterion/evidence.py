"""Which hypothesis to believe: scores from errors and complexity, and the shares of belief that follow."""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import SOFTNESS


def score(
    residual: FloatArray,
    left_out: FloatArray,
    points: int,
    noise: FloatArray,
    freedom: FloatArray,
    complexity: FloatArray,
) -> FloatArray:
    """Return scores (N, H), lower is better: -2 log of a marginal likelihood, plus the price of complexity.

    residual, left_out: (N, H) root mean square relative errors in sample and left out. Their geometric mean counts:
    in-sample errors order hypotheses of equal size with less scatter, left-out errors punish those that bend to
    a single point.
    noise: (N,) relative standard deviation of the central values as the repetitions have it, known with `freedom`
    (N,) degrees of freedom; with few points this keeps a hypothesis that fits by luck from taking all belief
    (Student's t in place of a normal distribution whose deviation comes from the residuals alone).
    """
    with np.errstate(invalid="ignore"):
        squares = points * residual * np.minimum(left_out, 1e150)
    prior = freedom[:, None]
    variance = (squares + prior * noise[:, None] ** 2) / (points + prior)
    variance = np.where(np.isfinite(variance), variance, np.inf)
    with np.errstate(divide="ignore"):
        score: FloatArray = (points + prior) * np.log(np.maximum(variance, 1e-24)) + complexity
    return score


def belief(scores: FloatArray) -> FloatArray:
    """Return shares of belief (N, H) of scores; each row adds up to 1 (rows without finite scores: 0)."""
    best = scores.min(axis=1, keepdims=True)
    finite = np.isfinite(best)
    difference = np.where(finite, scores, 0.0) - np.where(finite, best, 0.0)
    shares = np.where(finite, np.exp(-0.5 / SOFTNESS * np.minimum(difference, 1400.0)), 0.0)
    total = shares.sum(axis=1, keepdims=True)
    shares /= np.where(total > 0, total, 1.0)
    return shares
