"""Criterion for counts that are no exact functions: data-dependent work, and the like.

What is chosen is the function of the highest posterior under these assumptions, made before any data are seen:

1. Deviations are relative to the value, and partly systematic: the same along all lines of points in a parameter.
   So a grid has as many observations as distinct values of the parameters that have an effect, and deviations
   below EXPECTED_DEVIATION (as certain as DEVIATION_CERTAINTY observations) are no evidence for anything, or below
   those of the means of repetitions where these differ, because they had other data.
2. Exponents that loops and trees have are likelier than others (library.make_term); every coefficient has its
   penalty, a negative one more, and more again where a parameter has few values (the small-sample term of AICc,
   Hurvich and Tsai, Biometrika 76, 1989); the order of growth has a penalty, so that n² must explain more than n does.
3. A term that is there shows: at some point it has a share of the value that grows with its order, and is well
   above the deviations. So nothing is extrapolated that the measured points do not show. A term below the one of
   the highest order need only be above the deviations: it decides on no growth, and without it that one is off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    DEVIATION_CERTAINTY,
    EXPECTED_DEVIATION,
    INEXACT,
    LEAST_DEVIATIONS,
    LEAST_EFFECT,
    LEAST_EXPECTED_DEVIATION,
    LEAST_SHARE,
    LEAST_WEIGHED,
    LEAST_WORK,
    MOST_SHARE,
    SHOWN_BELOW_LEAD,
    SHOWN_DEVIATIONS,
    SMALL_COUNT,
    SMALL_COUNT_PART,
)
from ..data.lines import independent
from ..data.noise import Repetitions
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification, Tables
from .criterion import ALL, Criterion, Rows

_Flags = NDArray[np.bool_]


def effort_weights(values: FloatArray, falls: FloatArray) -> FloatArray:
    """Return weights of counts (N, C): relative errors, but counts next to nothing are rounded numbers.

    falls: (N,) the power of the value by which relative deviations fall, as in Repetitions.
    """
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    whole = (values == np.round(values)).all(axis=1, keepdims=True)
    least = LEAST_WEIGHED * top
    floor = np.where(whole, np.maximum(np.minimum(SMALL_COUNT, SMALL_COUNT_PART * top), least), least)
    top = np.where(top > 0, top, 1.0)
    part: FloatArray = (np.maximum(size, LEAST_WORK * top) / top) ** falls[:, None]
    return part / np.hypot(size, np.where(size.any(axis=1, keepdims=True), floor, 1.0))


class Deviating(Criterion):
    """For counts (N, C) at `points` (C, m)."""

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray, repetitions: Repetitions) -> None:
        super().__init__(tables, values, effort_weights(values, repetitions.falls))
        of_means = repetitions.uncertainty
        known = np.clip(of_means, LEAST_EXPECTED_DEVIATION, EXPECTED_DEVIATION)
        self.expected = np.where(of_means > 0.0, known, EXPECTED_DEVIATION)
        self.distinct = [np.unique(points[:, parameter]).size for parameter in range(points.shape[1])]
        number = independent(points, values, lambda part: LEAST_EFFECT * np.abs(part).max(axis=1))
        self.observations = np.minimum(number, values.shape[1])

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return the scores (M, H) of hypotheses fitted to the call paths `rows`, inf where they are not credible."""
        width = (fitted.coefficients != 0).sum(axis=2)
        penalty = INEXACT.coefficient * width + INEXACT.complexity * self.tables.complexity(fitted.specification)
        penalty = penalty + INEXACT.negative * (fitted.coefficients < 0).sum(axis=2)
        if fitted.specification.shape[-2]:
            penalty = penalty + INEXACT.growth * self.tables.order(fitted.specification).max(axis=-1)
            penalty = penalty + self.small_sample(fitted.specification)
        squares = np.minimum(fitted.residual, 1e150) * np.minimum(fitted.left_out, 1e150)
        scores = np.where(
            np.isfinite(fitted.residual), self.posterior(squares, self.observations[:, None], penalty, rows), np.inf
        )
        if fitted.specification.shape[-2]:
            scores[self.incredible(fitted, rows)] = np.inf
        return scores

    def posterior(
        self, squares: FloatArray, observations: FloatArray | int, penalty: FloatArray, rows: Rows = ALL
    ) -> FloatArray:
        """Return scores from mean squared relative errors (M, H): -2 log of the posterior, up to a constant.

        observations: one number, or (N, 1) of all call paths.
        """
        number = observations if isinstance(observations, int) else observations[rows]
        known = number + DEVIATION_CERTAINTY
        variance = (number * squares + DEVIATION_CERTAINTY * self.expected[rows][:, None] ** 2) / known
        result: FloatArray = known * np.log(variance) + penalty
        return result

    def small_sample(self, specification: Specification | NDArray[np.int64]) -> FloatArray:
        """Return the penalty (...) of hypotheses (..., K, m) with many functions of a parameter with few values."""
        total = np.zeros(specification.shape[:-2])
        for parameter, distinct in enumerate(self.distinct):
            terms: NDArray[np.int64] = np.sort(specification[..., parameter].astype(np.int64), axis=-1)
            if terms.shape[-1]:
                different = (terms[..., :1] >= 0).sum(axis=-1) + (
                    (terms[..., 1:] != terms[..., :-1]) & (terms[..., 1:] >= 0)
                ).sum(axis=-1)
                total += np.where(different > 0, small_sample(different + 1, distinct), 0.0)
        return total

    def incredible(self, fitted: Fitted, rows: Rows = ALL) -> _Flags:
        """Return hypotheses (N, H) with a term that hardly shows, or whose term of the highest order is negative.

        In data that are not exact such terms follow the deviations. Points with hardly any work do not count: what
        little happens there (nothing to merge on one process) says nothing about growth.
        """
        size = np.abs(self.values[rows])
        weights = np.where(size >= LEAST_WORK * size.max(axis=1, keepdims=True), self.weights[rows], 0.0)
        part = np.abs(fitted.coefficients[:, :, 1:, None] * self.tables.design(fitted.specification))
        share = (part * weights[:, None, None, :]).max(axis=3)
        constant = np.abs(fitted.coefficients[:, :, 0]) * weights.max(axis=1)[:, None]
        deviation = np.minimum(fitted.residual, 1.0)[:, :, None]
        known = np.maximum(deviation, self.expected[rows][:, None, None])
        shown = SHOWN_DEVIATIONS * known
        order = self.tables.order(fitted.specification)
        order = np.concatenate([np.zeros((*order.shape[:-1], 1)), order], axis=-1)
        lead = np.broadcast_to(order, fitted.coefficients.shape).copy()
        lead[fitted.coefficients == 0] = -np.inf
        first = lead.argmax(axis=2)[:, :, None]
        lower = lead[:, :, 1:] < np.take_along_axis(lead, first, axis=2)
        steepest = self.tables.steepest(fitted.specification)
        least = np.minimum(LEAST_SHARE * (1.0 + steepest) ** 2, MOST_SHARE)
        least = np.minimum(least, np.where(lower, SHOWN_BELOW_LEAD * known, shown))
        least = np.maximum(least, LEAST_DEVIATIONS * np.minimum(deviation, 0.1))
        hidden = (share < least) & (fitted.coefficients[:, :, 1:] != 0)
        negative = np.take_along_axis(fitted.coefficients, first, axis=2)[:, :, 0] < 0
        least_constant = np.minimum(LEAST_SHARE, shown[:, :, 0])
        hidden_constant = (constant < least_constant) & (constant > 0)
        below = self.values[rows].min(axis=1)[:, None] < 0
        return np.asarray(hidden.any(axis=2) | hidden_constant | (negative & ~below), dtype=bool)


def small_sample(coefficients: NDArray[np.int64] | int, values: int) -> FloatArray:
    """Return what AICc adds to AIC for so many coefficients, made finite where there are hardly more values."""
    number = np.asarray(coefficients, dtype=np.float64)
    return 2.0 * number * (number + 1.0) / np.maximum(values - number, 0.5)
