# SPDX-License-Identifier: Apache-2.0
"""Hypotheses of different sizes that are fitted together, against one least-squares problem each."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.pmnf.fit.shortlist import line_squares, sweep_errors
from quipu.modeling.pmnf.fit.together import fit_together
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.hypotheses.tables import make_tables

POINTS = np.array([(p, n) for p in (2.0, 4.0, 8.0, 16.0, 32.0) for n in (10.0, 20.0, 30.0, 40.0)])
TABLES = make_tables(POINTS, Library())
RANDOM = np.random.default_rng(3)


def hypotheses(number: int) -> np.ndarray:
    """Return hypotheses (number, 3, 2) of one to three products, and none."""
    found = np.full((number, 3, 2), -1, dtype=np.int16)
    for own in found:
        for product in range(int(RANDOM.integers(0, 4))):
            while (own[product] < 0).all():
                own[product] = RANDOM.integers(-1, 30, 2)
    return found


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_same_as_least_squares_of_each(nonnegative: bool) -> None:
    specification = hypotheses(300)
    values = 5.0 + POINTS[:, 0] * RANDOM.uniform(0, 2, (300, 1)) + RANDOM.uniform(0, 1, (300, len(POINTS)))
    weights, constant = RANDOM.uniform(0.5, 2.0, values.shape), RANDOM.uniform(size=300) < 0.8
    found = fit_together(TABLES, specification, values, weights, constant, nonnegative)
    for number, own in enumerate(specification):
        used = own[(own >= 0).any(axis=1)]
        columns = TABLES.design(used)
        for with_constant in [True, False] if constant[number] else [False]:
            whole = np.concatenate([np.ones((int(with_constant), len(POINTS))), columns]) * weights[number]
            target = values[number] * weights[number]
            if not len(whole):
                expected, rest, leverage = np.empty(0), target, np.zeros(len(target))
                break
            if np.linalg.matrix_rank(whole) < len(whole):
                expected, rest, leverage = np.full(len(whole), np.nan), target, np.zeros(len(target))
                break
            expected = np.linalg.lstsq(whole.T, target, rcond=None)[0]
            rest = target - expected @ whole
            leverage = np.einsum("kc,kc->c", np.linalg.pinv(whole.T), whole)
            if not (with_constant and nonnegative and expected[0] < 0):
                break
        got = found.coefficients[number, 0]
        residual, left_out = found.residual[number, 0], found.left_out[number, 0]
        if np.isnan(expected).any():
            assert np.isinf(residual)
        elif nonnegative and (expected[int(with_constant) :] <= 0).any():
            assert np.isinf(residual) and np.isinf(left_out)
        else:
            places = [*range(1 - with_constant, 1 + len(used))]
            np.testing.assert_allclose(got[places], expected, rtol=1e-5)
            assert not np.delete(got, places).any()
            assert residual == pytest.approx(np.sqrt((rest**2).mean()), rel=1e-9)
            assert left_out == pytest.approx(np.sqrt(((rest / (1 - leverage)) ** 2).mean()), rel=1e-6)


def test_a_constant_last_costs_nothing() -> None:
    values, weights = RANDOM.uniform(1, 2, (4, len(POINTS))), RANDOM.uniform(0.5, 2.0, (4, len(POINTS)))
    fixed, terms = TABLES.design(np.array([[[-1, 3], [-1, -1]]] * 4, dtype=np.int16)), TABLES.columns[0][:-1]
    solutions = sweep_errors(fixed, np.array([True, False]), terms, values, weights)
    # the second product is the constant already: it is without a part of its own
    (coefficients, _), (bare, explained) = solutions
    assert [len(coefficients), len(bare)] == [3, 2]
    for path in range(4):
        for number, term in enumerate(terms):
            columns = np.stack([fixed[path, 0] * term, np.ones(len(POINTS))]) * weights[path]
            target = values[path] * weights[path]
            expected, squares = np.linalg.lstsq(columns.T, target, rcond=None)[:2]
            assert explained[path, number] == pytest.approx((target**2).sum() - squares[0], rel=1e-9)
            top = np.abs(values[path]).max()
            np.testing.assert_allclose([top * own[path, number] for own in bare], expected, rtol=1e-6)


def test_small_parts_of_large_values_rank_terms_along_lines() -> None:
    x = 2.0 ** np.arange(5)
    terms = np.stack([x, x**1.5, x**2, np.log2(x) + 1.0])
    lines = 1e6 + np.array([1.0, 3.0])[:, None] * x**1.5
    with_constant, without = line_squares(terms, lines[None], nonnegative=True)
    assert with_constant[0].argmin() == 1
    assert with_constant[0, 1] < 1e-6 * np.delete(with_constant[0], 1).min()
    assert (without[0] > 0.1).all()
