# SPDX-License-Identifier: Apache-2.0
"""Criterion for noisy values: scores from errors and complexity, and posterior weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import LEAST_LEFT_OUT, NOISY, NOISY_FACTOR, NOISY_LEAST_VARIANCE, NOISY_ROUNDING, Penalties
from ..fit.subsets import Solution
from ..fit.together import fit_together
from ..fit.weights import count_weights, relative_weights
from ..hypotheses.pool import Fitted, widened
from ..hypotheses.tables import Specification, Tables
from .criterion import ALL, Candidates, Criterion, Rows


class Evidence(Criterion):
    """Criterion for noisy values (N, C) of call paths with relative noise (N,).

    The noise is known with these degrees of freedom (N,). weights: of the values; default: relative weights for means
    of `counts` (N, C) repetitions. `freedom` of the criterion is at most the number of points, so that repetitions
    count as much as all residuals; `repeated` has no limit. nonnegative: whether coefficients must not be negative.
    """

    def __init__(
        self,
        tables: Tables,
        values: FloatArray,
        noise: FloatArray,
        freedom: FloatArray,
        nonnegative: bool,
        penalties: Penalties = NOISY,
        growth_penalty: float = 0.0,
        weights: FloatArray | None = None,
        counts: FloatArray | None = None,
    ) -> None:
        self.counts = np.ones_like(values) if counts is None else counts
        if weights is None:
            weights = relative_weights(values) * count_weights(self.counts)
        super().__init__(tables, values, weights)
        self.nonnegative = nonnegative
        self.noise, self.repeated, self.freedom = noise, freedom, np.minimum(freedom, tables.points)
        self.penalties, self.growth_penalty = penalties, growth_penalty

    def part(self, rows: Rows) -> Evidence:
        """Return the criterion of some call paths."""
        data = self.values[rows], self.noise[rows], self.repeated[rows], self.nonnegative
        return Evidence(self.tables, *data, self.penalties, self.growth_penalty, self.weights[rows], self.counts[rows])

    def fit_all(self, candidates: Iterable[Candidates]) -> Iterator[tuple[NDArray[np.int64], Fitted]]:
        """Yield all candidates, fitted together, and their call paths (M,)."""
        some = [each for each in candidates if each.path.size]
        if some:
            path = np.concatenate([each.path for each in some])
            constant = np.repeat([each.constant for each in some], [each.path.size for each in some])
            yield path, self.fit_together(widened([each.specification for each in some], 1), path, constant)

    def fit_together(
        self, specification: Specification, path: NDArray[np.int64], constant: NDArray[np.bool_]
    ) -> Fitted:
        """Return hypotheses (M, K, m) fitted to the call paths `path` (M,), as fit.together does."""
        return fit_together(
            self.tables, specification, self.values[path], self.weights[path], constant, self.nonnegative
        )

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H) of hypotheses fitted to the call paths `rows`, the lowest best."""
        width = (fitted.coefficients != 0).sum(axis=2)
        complexity = self.penalties.complexity * self.tables.complexity(fitted.specification)
        complexity = complexity + NOISY_FACTOR * (fitted.specification >= 0).sum(axis=(-2, -1))
        complexity = complexity + self.penalties.coefficient * width + self.effects(fitted.specification)
        if self.nonnegative:
            complexity = complexity + self.penalties.negative * (fitted.coefficients < 0).sum(axis=2)
        noise, freedom = self.noise[rows], self.freedom[rows]
        return score(fitted.residual, fitted.left_out, self.tables.points, noise, freedom, complexity)

    def effects(self, specification: Specification) -> FloatArray:
        """Return the penalty of parameters with an effect, and of growth, for hypotheses (..., K, m)."""
        result: FloatArray = self.penalties.parameter * (specification >= 0).any(axis=-2).sum(axis=-1)
        if self.growth_penalty:
            result = result + self.growth_penalty * self.growth(specification).sum(axis=-1)
        return result

    def growth(self, specification: Specification) -> FloatArray:
        """Return the units of growth or decrease of the products of hypotheses (..., K, m), (..., K)."""
        used = (specification >= 0).any(axis=-1)
        return np.where(used, 1.0 + 0.5 * np.abs(self.tables.order(specification)), 0.0)

    def rough(self, with_constant: Solution, without: Solution, total: FloatArray, penalty: FloatArray) -> FloatArray:
        """Return scores (N, H) from explained squares, the better of the fits with and without a constant.

        penalty: of terms and growth, (N, H).
        """
        known = self.freedom * self.noise**2
        number = self.tables.points + self.freedom
        best: FloatArray | None = None
        for coefficients, explained in (with_constant, without):
            squares = np.maximum(total[:, None] - explained, NOISY_ROUNDING * total[:, None])
            variance = (squares + known[:, None]) / number[:, None]
            if self.nonnegative and coefficients:
                variance = np.where(reduce(np.minimum, coefficients) >= 0, variance, np.inf)
            if best is None:  # one more coefficient
                best = variance * np.exp(self.penalties.coefficient / number)[:, None]
            else:
                np.minimum(best, variance, out=best)
        assert best is not None
        result: FloatArray = number[:, None] * np.log(best) + penalty
        result += self.penalties.coefficient * len(without[0])
        return result


def score(
    residual: FloatArray,
    left_out: FloatArray,
    points: int | NDArray[np.int64],
    noise: FloatArray,
    freedom: FloatArray,
    complexity: FloatArray,
) -> FloatArray:
    """Return scores (N, H), lower is better: -2 log of a marginal likelihood, plus the penalty of complexity.

    residual, left_out: (N, H) root mean square relative errors at fitted and at left-out points, for one number or (N,)
    points. Without other information about the noise, their geometric mean counts: left-out errors penalize hypotheses
    that follow a single point. With more repetitions, errors at fitted points count more, because they rank hypotheses
    with less scatter. noise: (N,) relative standard deviation of the central values by repetitions, known with
    `freedom` (N,) degrees of freedom. With few points, this prevents a hypothesis that fits by coincidence from taking
    all weight (Student's t instead of a normal distribution whose deviation comes from the residuals).
    """
    unknown = np.maximum(1.0 - freedom / points, LEAST_LEFT_OUT)[:, None]
    number = np.broadcast_to(points, noise.shape)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(residual > 0, np.minimum(left_out, 1e150) / np.maximum(residual, 1e-150), 1.0)
        ratio = np.where(np.isinf(left_out) & np.isfinite(residual), 1.0, ratio)  # too few points for left-out errors
        squares = number * residual**2 * ratio**unknown
    return minus_log_likelihood(squares, number, noise[:, None], freedom[:, None]) + complexity


def minus_log_likelihood(
    squares: FloatArray,
    points: int | NDArray[np.int64],
    noise: FloatArray,
    freedom: FloatArray,
    least: float = NOISY_LEAST_VARIANCE,
) -> FloatArray:
    """Return -2 log of the likelihood of `squares` of relative errors at this number of points.

    least: smallest variance. noise, freedom: as in `score`.
    """
    variance = (squares + freedom * noise**2) / (points + freedom)
    variance = np.where(np.isfinite(variance), variance, np.inf)
    result: FloatArray = (points + freedom) * np.log(np.maximum(variance, least))
    return result


def posterior_weights(scores: FloatArray) -> FloatArray:
    """Return posterior weights (N, H) of scores; each row adds up to 1 (rows without finite scores: 0)."""
    best = scores.min(axis=1, keepdims=True)
    finite = np.isfinite(best)
    difference = np.where(finite, scores, 0.0) - np.where(finite, best, 0.0)
    shares = np.where(finite, np.exp(-0.5 * np.minimum(difference, 1400.0)), 0.0)
    total = shares.sum(axis=1, keepdims=True)
    shares /= np.where(total > 0, total, 1.0)
    return shares
