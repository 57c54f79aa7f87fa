# SPDX-License-Identifier: Apache-2.0
"""Criterion for counts that are no exact functions: data-dependent work, and the like.

What is chosen is the function of the highest posterior under these assumptions, made before any data are seen:

1. Deviations are relative to the value, and partly systematic: the same along all lines of points in a parameter.
   So a grid has as many observations as distinct values of the parameters that have an effect, and deviations
   below EXPECTED_DEVIATION (as certain as DEVIATION_CERTAINTY observations) are no evidence for anything, or below
   those of the means of repetitions where these differ, because they had other data: no form gains from following means
   closer than they are known, be they known better or worse than that. Where they differ, a sum may also be
   the function itself: then the means deviate from it as repetitions do (repeated.py), and every coefficient is worth
   as much evidence as it makes these deviations less.
2. Exponents that loops and trees have are likelier than others (library.make_term); every coefficient has its
   penalty, a negative one more, and more again where a parameter has few values (the small-sample term of AICc,
   Hurvich and Tsai, Biometrika 76, 1989); the order of growth has a penalty, so that n² must explain more than n does.
3. A term that is there shows: at some point it has a share of the value that grows with its order, and is well
   above the deviations. So nothing is extrapolated that the measured points do not show. A term below the one of
   the highest order need only be above the deviations: it decides on no growth, and without it that one is off. Its
   share counts at all points alike, how far it is above the deviations at each by what these are there.
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
from ..model import Model, Term
from .criterion import ALL, Criterion, Rows
from .repeated import means, student

_Flags = NDArray[np.bool_]
_Counts = NDArray[np.int64] | int


class Numbers(NamedTuple):
    """How many coefficients hypotheses have along a line of points in one parameter, and functions of it."""

    functions: _Counts
    coefficients: _Counts


def effort_weights(values: FloatArray) -> FloatArray:
    """Return weights of counts (N, C): relative errors, but counts next to nothing are rounded numbers."""
    size = np.abs(values)
    top = size.max(axis=1, keepdims=True)
    whole = (values == np.round(values)).all(axis=1, keepdims=True)
    least = LEAST_WEIGHED * top
    floor = np.where(whole, np.maximum(np.minimum(SMALL_COUNT, SMALL_COUNT_PART * top), least), least)
    result: FloatArray = 1.0 / np.hypot(size, np.where(size.any(axis=1, keepdims=True), floor, 1.0))
    return result


class Deviating(Criterion):
    """For counts (N, C) at `points` (C, m).

    spare: values of a parameter that must be there beyond what AICc asks for, for more than two coefficients.
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
        """The relative deviations (N,) that a term must be above."""
        return np.where(self.freedom > 0.0, self.noise, self.expected)

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return the scores (M, H) of hypotheses fitted to the call paths `rows`, inf where they are not credible."""
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
        """Return hypotheses (M, H) that rise beyond the points by another power than anywhere between two of them.

        A sum of as many functions as there are values has these whatever they are, and then goes its own way.
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

        observations: one number, or (N, 1) of all call paths. numbers: of functions and coefficients, by parameter.
        left_out: mean squared errors of points that are left out, where they are known.
        """
        number = observations if isinstance(observations, int) else observations[rows]
        expected, freedom = self.expected[rows][:, None], self.freedom[rows][:, None]
        together = squares if left_out is None else np.sqrt(squares) * np.sqrt(left_out)
        near = student(together, number, expected**2, DEVIATION_CERTAINTY)
        for own, distinct in zip(numbers, self.distinct, strict=False):
            # along a line the rest may always be a constant
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
        """Return how many functions and coefficients (...) hypotheses (..., K, m) have, of each parameter.

        constant: (...) whether they have one. None of a parameter on which they do not depend.
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
        """Return hypotheses (N, H) with a term that hardly shows, or whose term of the highest order is negative.

        In data that are not exact such terms follow the deviations. Points with hardly any work do not count: what
        little happens there (nothing to merge on one process) says nothing about growth.
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
    """Return the largest power of one parameter that values (N, C) rise by between two points of a line, (N,)."""
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


def rises_beyond(model: Model, points: FloatArray, values: FloatArray) -> bool:
    """Whether a model rises beyond the points (C, m) by another power than values (C,) between any two of them.

    So does n⁹ that has one larger count at the last size; `Deviating.rise_beyond` says the same of hypotheses.
    """
    top = points.max(axis=0)
    further = np.tile(top, (points.shape[1], 1))
    np.fill_diagonal(further, TURN_AT * top)
    steepest = np.concatenate([steepest_rise(points, values[None], index) for index in range(points.shape[1])])
    return bool(_steeper(model.evaluate(top[None]), model.evaluate(further), steepest).any())


def _steeper(here: FloatArray, there: FloatArray, steepest: FloatArray) -> _Flags:
    """Return where values rise from the largest points to TURN_AT times these by far more than the power `steepest`."""
    with np.errstate(all="ignore"):
        power = np.log(there / here) / np.log(TURN_AT)
    return np.asarray((here > 0.0) & (power > np.maximum(steepest, 0.0) + TURN_POWER))


def _columns(tables: Tables, points: FloatArray, index: int) -> FloatArray:
    """Return the terms (2, A + 1) of one parameter at its largest value and beyond it, 1 last."""
    at = points[:, index].max() * np.array([1.0, TURN_AT])
    terms = tables.terms[index]
    return np.concatenate([term_columns(terms, at), np.ones((2, 1))], axis=1)


def penalty_of(constant: float, terms: Sequence[Term], parameter: str) -> float:
    """Return the penalty of a sum of terms of one parameter, as `Deviating.scores` has it for hypotheses."""
    functions = [make_term(*term.exponents(parameter)) for term in terms]
    penalty = INEXACT.coefficient * (len(terms) + bool(constant))
    penalty += INEXACT.complexity * sum(own.cost for own in functions)
    penalty += INEXACT.negative * (sum(term.coefficient < 0 for term in terms) + (constant < 0))
    return penalty + INEXACT.growth * max((own.order for own in functions), default=0.0)


def small_sample(coefficients: _Counts, values: FloatArray | int) -> FloatArray:
    """Return what AICc adds to AIC for so many coefficients, made finite where there are hardly more values."""
    number = np.asarray(coefficients, dtype=np.float64)
    result: FloatArray = 2.0 * number * (number + 1.0) / np.maximum(values - number, 0.5)
    return result
