# SPDX-License-Identifier: Apache-2.0
"""Propose powers of one parameter with exponents between the exponents of the library, for noisy values.

Caches, imbalance and contention cause times c + a·x^i with any exponent. The exponents of the library are the exponents
of loops and blocks; neighbours differ by at most 1/4. Over a wide range, noise of 1 % distinguishes exponents that
differ by a few hundredths. The best exponent is therefore one more hypothesis. It has the complexity of an unusual
exponent (hypotheses.library.make_term), and a penalty for the choice among many.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...experiment import FloatArray
from ..calibration import (
    BATCH_NUMBERS,
    NOISY_POOL,
    POWERS_LEAST_VALUES,
    POWERS_NEAR,
    POWERS_PENALTY,
    POWERS_STEPS,
    RIDGE,
)
from ..criterion.criterion import ALL, Candidates, choose
from ..criterion.evidence import Evidence, minus_log_likelihood
from ..criterion.signed import misfit
from ..hypotheses.library import EXPONENTS, Library, SimpleTerm, make_term
from ..hypotheses.pool import Pool, merge, replaced
from ..hypotheses.tables import Tables, extended


def with_powers(points: FloatArray, library: Library, criterion: Evidence, pool: Pool) -> tuple[Pool, Tables]:
    """Return the pool with the best power as a further hypothesis where it explains the values, and its tables.

    The tables are the tables of `criterion` with more terms at their end. The pool and the tables do not change if
    there are several parameters, if points (C, 1) have too few values, or if the library is not the default.
    """
    tables = criterion.tables
    column = np.unique(points)
    usual = points.shape[1] == 1 and library.exponents == EXPONENTS
    if not usual or column.size < POWERS_LEAST_VALUES or column[0] <= 0.0:
        return pool, tables
    known = len(tables.terms[0])
    tables = extended(tables, points, _powers())
    squares = power_squares(tables.columns[0][known:-1], criterion.values, criterion.weights, criterion.nonnegative)
    power = (known + squares.argmin(axis=1)).astype(np.int16)[:, None, None]
    rough = minus_log_likelihood(squares.min(axis=1), tables.points, criterion.noise, criterion.freedom)
    wider = criterion.part(ALL)
    wider.tables = tables
    penalties = criterion.penalties
    rough += 2 * penalties.coefficient + penalties.complexity * tables.complexity(power) + wider.effects(power)
    rows = rough + POWERS_PENALTY <= pool.score[:, 0] + POWERS_NEAR
    if not rows.any():
        return pool, criterion.tables
    part = wider.part(rows)
    found = choose([Candidates(np.arange(len(part.values)), power[rows], True)], part, 1)
    found = replace(found, score=np.where(misfit(found, part)[:, None], np.inf, found.score + POWERS_PENALTY))
    return replaced(pool, rows, merge([pool.rows(rows), found], NOISY_POOL)), tables


def power_squares(terms: FloatArray, values: FloatArray, weights: FloatArray, nonnegative: bool) -> FloatArray:
    """Return the weighted squared errors (N, A) of c + a·term; terms: (A, C); values, weights: (N, C).

    If c is negative and must not be, it becomes 0; if a is negative and must not be, the error is infinite.
    """
    precision = weights**2
    precision /= precision.sum(axis=1, keepdims=True)
    level = (precision * values).sum(axis=1, keepdims=True)
    squares = np.empty((len(values), len(terms)))
    products, whole = terms.T.copy(), (terms**2).T.copy()
    step = max(1, BATCH_NUMBERS // (8 * len(terms)))  # these arrays stay in the cache
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        own, mean = precision[part], level[part]
        total = (own * values[part] ** 2).sum(axis=1, keepdims=True)
        along, across, length = own @ products, (own * values[part]) @ products, own @ whole
        rest = across - mean * along
        slope = rest / np.maximum(length - along**2, RIDGE)
        squares[part] = total - mean**2 - slope * rest
        if nonnegative:
            alone = mean < slope * along
            squares[part][alone] = (total - across**2 / length)[alone]
            squares[part][slope <= 0.0] = np.inf
    result: FloatArray = squares * (weights**2).sum(axis=1, keepdims=True)
    return result


@lru_cache(maxsize=1)
def _powers() -> tuple[SimpleTerm, ...]:
    """Return powers with positive exponents between the exponents of the library."""
    highest = max(EXPONENTS)
    every = (Fraction(number, POWERS_STEPS) for number in range(1, int(highest * POWERS_STEPS)))
    return tuple(make_term(exponent, 0) for exponent in every if exponent not in EXPONENTS)
