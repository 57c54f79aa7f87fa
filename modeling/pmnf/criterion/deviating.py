# SPDX-License-Identifier: Apache-2.0
"""Criterion for counts that no function reproduces, for example counts that depend on data.

The criterion selects the function with the highest posterior probability, under these assumptions:

1. The relative error of a count has a systematic part, which is equal for all points that share a parameter value. A
   grid therefore has as many observations as there are distinct values of the parameters with an effect. Deviations
   below EXPECTED_DEVIATION (prior with the certainty of DEVIATION_CERTAINTY observations) are no evidence. If
   repetitions have other data, deviations below the error of their mean are no evidence. The sum may then be the
   exact function: means deviate from it like repetitions (repeated.py), and a coefficient counts by how much it
   reduces these deviations.
2. Exponents of loops and trees are likelier than others (library.make_term). Every coefficient has a penalty, which
   is larger for negative coefficients and for parameters with few values (small-sample term of AICc, Hurvich and
   Tsai, Biometrika 76, 1989). The order of growth has a penalty.
3. The term of the highest order must be visible: at some point its share of the value exceeds a limit that grows with
   its order, and is well above the deviations. Terms of lower order must only exceed the deviations, because they do
   not determine the growth. Their share counts equally at all points, and their distance from the deviations by the
   deviations at each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    LEAST_LEFT_OUT,
    LEAST_SHARE,
    LEAST_WEIGHED,
    LEAST_WORK,
    MOST_SHARE,
    SHOWN_BELOW_LEAD,
    SHOWN_DEVIATIONS,
    SMALL_COUNT,
    SMALL_COUNT_PART,
    TURN_AT,
    TURN_POWER,
)
from ..data.lines import independent, lines
from ..data.noise import Repetitions
from ..hypotheses.library import make_term, term_columns
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Specification, Tables
from ..model import Term
from .criterion import ALL, Criterion, Rows
from .repeated import means, student

_Flags = NDArray[np.bool_]
_Counts = NDArray[np.int64] | int


class Numbers(NamedTuple):
    """Numbers of coefficients, and of functions of one parameter, that hypotheses have along a line of points."""

    functions: _Counts
    coefficients: _Counts


def effort_weights(values: FloatArray) -> FloatArray:
    """Return weights of counts (N, C) for relative errors; very small counts have the error of rounded numbers."""
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    whole = (values == np.round(values)).all(axis=1, keepdims=True)
    least = LEAST_WEIGHED * top
    floor = np.where(whole, np.maximum(np.minimum(SMALL_COUNT, SMALL_COUNT_PART * top), least), least)
    result: FloatArray = 1.0 / np.hypot(size, np.where(size.any(axis=1, keepdims=True), floor, 1.0))
    return result


class Deviating(Criterion):
    """Criterion for counts (N, C) at `points` (C, m).

    spare: values of a parameter that are necessary beyond those of AICc, for more than two coefficients.
    """

    def __init__(
        self,
        points: FloatArray,
        tables: Tables,
        values: FloatArray,
        repetitions: Repetitions,
        spare: float = 0.0,
    ) -> None:
        self.spare = spare
        self.distinct = [np.unique(points[:, parameter]).size for parameter in range(points.shape[1])]
        number = independent(points, values, lambda part: LEAST_EFFECT * np.abs(part).max(axis=1))
        self.observations = np.minimum(number, values.shape[1])
        of_means = repetitions.uncertainty
        known = np.maximum(of_means, LEAST_EXPECTED_DEVIATION)
        self.expected = np.where(of_means > 0.0, known, EXPECTED_DEVIATION)
        repeated = means(values, self.observations, repetitions)
        self.freedom, self.noise = repeated.freedom, repeated.deviation
        self.relative = effort_weights(values)
        super().__init__(tables, values, self.relative * repeated.precision)
        self.steepest = np.stack([steepest_rise(points, values, index) for index in range(points.shape[1])], axis=1)
        self.ends = [_columns(tables, points, index) for index in range(points.shape[1])]

    @property
    def known(self) -> FloatArray:
        """Return the relative deviations (N,) that a term must exceed."""
        return np.where(self.freedom > 0.0, self.noise, self.expected)

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return the scores (M, H) of hypotheses fitted to the call paths `rows`; inf for implausible hypotheses."""
        width = (fitted.coefficients != 0).sum(axis=2)
        penalty = INEXACT.coefficient * width + INEXACT.complexity * self.tables.complexity(fitted.specification)
        penalty = penalty + INEXACT.negative * (fitted.coefficients < 0).sum(axis=2)
        if fitted.specification.shape[-2]:
            penalty = penalty + INEXACT.growth * self.tables.order(fitted.specification).max(axis=-1)
        inside, outside = np.minimum(fitted.residual, 1e150) ** 2, np.minimum(fitted.left_out, 1e150) ** 2
        numbers = self.numbers(fitted.specification, fitted.coefficients[..., 0] != 0)
        posterior = self.posterior(inside, self.observations[:, None], penalty, numbers, rows, outside)
        scores = np.where(np.isfinite(fitted.residual), posterior, np.inf)
        if fitted.specification.shape[-2]:
            scores[self.incredible(fitted, rows)] = np.inf
            scores[self.rise_beyond(fitted, rows)] = np.inf
        return scores

    def rise_beyond(self, fitted: Fitted, rows: Rows = ALL) -> _Flags:
        """Return which hypotheses (M, H) grow beyond the points by a larger power than between any two points.

        A sum of as many functions as values fits any values, but then grows arbitrarily.
        """
        parameters = range(fitted.specification.shape[-1])
        real = fitted.coefficients[..., 1:] / self.tables.divisor(fitted.specification)

        def at(further: int) -> FloatArray:
            columns = [self.ends[i][int(i == further)] for i in parameters]
            products = np.prod([columns[i][fitted.specification[..., i]] for i in parameters], axis=0)
            return np.asarray(fitted.coefficients[..., 0] + (real * products).sum(axis=-1))

        here = at(-1)
        result = np.zeros(here.shape, dtype=bool)
        for index in parameters:
            if np.isfinite(self.steepest[rows, index]).any():
                result |= _steeper(here, at(index), self.steepest[rows, index][:, None])
        return result

    def posterior(
        self,
        squares: FloatArray,
        observations: FloatArray | int,
        penalty: FloatArray,
        numbers: Sequence[Numbers] = (),
        rows: Rows = ALL,
        left_out: FloatArray | None = None,
    ) -> FloatArray:
        """Return scores from mean squared relative errors (M, H): -2 log of the posterior, up to a constant.

        observations: one number, or (N, 1) for each call path. numbers: of functions and coefficients, by parameter.
        left_out: mean squared errors of left-out points, if known.
        """
        number = observations if isinstance(observations, int) else observations[rows]
        expected, freedom = self.expected[rows][:, None], self.freedom[rows][:, None]
        together = squares if left_out is None else np.sqrt(squares) * np.sqrt(left_out)
        near = student(together, number, expected**2, DEVIATION_CERTAINTY)
        for own, distinct in zip(numbers, self.distinct, strict=False):
            # along a line, the other terms may always be a constant
            width = np.asarray(own.functions, dtype=np.int64) + 1
            values = np.where(width > 2, distinct - self.spare, float(distinct))
            near = np.asarray(near + small_sample(width, values) * (width > 1), dtype=np.float64)
        if not freedom.any():
            return near + penalty
        if left_out is not None:
            unknown = 0.5 * np.maximum(1.0 - freedom / number, LEAST_LEFT_OUT)
            squares = squares ** (1.0 - unknown) * left_out**unknown
        itself = student(squares, number, self.noise[rows][:, None] ** 2, np.maximum(freedom, 1.0))
        for own, distinct in zip(numbers, self.distinct, strict=False):
            itself = itself + small_sample(own.coefficients, distinct + freedom)
        result: FloatArray = np.where(freedom > 0.0, np.minimum(near, itself), near) + penalty
        return result

    def numbers(self, specification: Specification | NDArray[np.int64], constant: _Flags | bool) -> list[Numbers]:
        """Return the numbers of functions and coefficients (...) of hypotheses (..., K, m), for each parameter.

        constant: (...) whether they have a constant. The number is 0 for a parameter without effect.
        """
        result = []
        used = (specification >= 0).any(axis=-1)
        for parameter in range(specification.shape[-1] if specification.shape[-2] else 0):
            terms: NDArray[np.int64] = np.sort(specification[..., parameter].astype(np.int64), axis=-1)
            later = (terms[..., 1:] != terms[..., :-1]) & (terms[..., 1:] >= 0)
            functions = (terms[..., 0] >= 0) + later.sum(axis=-1)
            without = ((specification[..., parameter] < 0) & used).any(axis=-1) | constant
            result.append(Numbers(functions, np.where(functions > 0, functions + without, 0)))
        return result

    def incredible(self, fitted: Fitted, rows: Rows = ALL) -> _Flags:
        """Return hypotheses (N, H) with an invisible term, or with a negative term of the highest order.

        Such terms follow the deviations. Points with very little work are ignored, because they do not determine the
        growth (one process has nothing to merge).
        """
        size = np.abs(self.values[rows])
        worked = size >= LEAST_WORK * size.max(axis=1, keepdims=True)
        precise, relative = (np.where(worked, own[rows], 0.0) for own in (self.weights, self.relative))
        part = np.abs(fitted.coefficients[:, :, 1:, None] * self.tables.design(fitted.specification))
        share = (part * relative[:, None, None, :]).max(axis=3)
        known = np.maximum(np.minimum(fitted.residual, 1.0), self.known[rows][:, None])[:, :, None]
        deviations = (part * precise[:, None, None, :]).max(axis=3) / known
        order = self.tables.order(fitted.specification)
        order = np.concatenate([np.zeros((*order.shape[:-1], 1)), order], axis=-1)
        lead = np.broadcast_to(order, fitted.coefficients.shape).copy()
        lead[fitted.coefficients == 0] = -np.inf
        first = lead.argmax(axis=2)[:, :, None]
        lower = lead[:, :, 1:] < np.take_along_axis(lead, first, axis=2)
        steepest = self.tables.steepest(fitted.specification)
        least = np.minimum(LEAST_SHARE * (1.0 + steepest) ** 2, MOST_SHARE)
        hidden = (share < least) & (deviations < np.where(lower, SHOWN_BELOW_LEAD, SHOWN_DEVIATIONS))
        hidden |= deviations * known < LEAST_DEVIATIONS * np.minimum(fitted.residual, 0.1)[:, :, None]
        hidden &= fitted.coefficients[:, :, 1:] != 0
        negative = np.take_along_axis(fitted.coefficients, first, axis=2)[:, :, 0] < 0
        constant = np.abs(fitted.coefficients[:, :, 0])
        hidden_constant = (constant * relative.max(axis=1)[:, None] < LEAST_SHARE) & (constant > 0)
        hidden_constant &= constant * precise.max(axis=1)[:, None] < SHOWN_DEVIATIONS * known[:, :, 0]
        below = self.values[rows].min(axis=1)[:, None] < 0
        return np.asarray(hidden.any(axis=2) | hidden_constant | (negative & ~below), dtype=bool)


def steepest_rise(points: FloatArray, values: FloatArray, index: int) -> FloatArray:
    """Return the largest power of one parameter by which values (N, C) grow between two points of a line, (N,)."""
    result = np.full(len(values), -np.inf)
    for line in lines(points, index, least=3):
        order = line[np.argsort(points[line, index])]
        x, y = points[order, index], values[:, order]
        if x[0] > 0:
            known = (y[:, 1:] > 0) & (y[:, :-1] > 0) & (x[1:] > x[:-1])
            steps = np.log(np.where(x[1:] > x[:-1], x[1:] / x[:-1], 2.0))
            rise = np.log(np.where(known, y[:, 1:], 1.0) / np.where(known, y[:, :-1], 1.0)) / steps
            result = np.maximum(result, np.where(known, rise, -np.inf).max(axis=1))
    return np.where(np.isfinite(result), result, np.inf)


def _steeper(here: FloatArray, there: FloatArray, steepest: FloatArray) -> _Flags:
    """Return where values grow from the largest points to TURN_AT times these by far more than the power `steepest`."""
    with np.errstate(all="ignore"):
        power = np.log(there / here) / np.log(TURN_AT)
    return np.asarray((here > 0.0) & (power > np.maximum(steepest, 0.0) + TURN_POWER))


def _columns(tables: Tables, points: FloatArray, index: int) -> FloatArray:
    """Return the terms (2, A + 1) of one parameter at its largest value and beyond it; the last one is 1."""
    at = points[:, index].max() * np.array([1.0, TURN_AT])
    terms = tables.terms[index]
    return np.concatenate([term_columns(terms, at), np.ones((2, 1))], axis=1)


def penalty_of(constant: float, terms: Sequence[Term], parameter: str) -> float:
    """Return the penalty of a sum of terms of one parameter, as in `Deviating.scores`."""
    functions = [make_term(*term.exponents(parameter)) for term in terms]
    penalty = INEXACT.coefficient * (len(terms) + bool(constant))
    penalty += INEXACT.complexity * sum(own.cost for own in functions)
    penalty += INEXACT.negative * (sum(term.coefficient < 0 for term in terms) + (constant < 0))
    return penalty + INEXACT.growth * max((own.order for own in functions), default=0.0)


def small_sample(coefficients: _Counts, values: FloatArray | int) -> FloatArray:
    """Return the difference of AICc and AIC for these numbers of coefficients, finite even for few values."""
    number = np.asarray(coefficients, dtype=np.float64)
    result: FloatArray = 2.0 * number * (number + 1.0) / np.maximum(values - number, 0.5)
    return result
