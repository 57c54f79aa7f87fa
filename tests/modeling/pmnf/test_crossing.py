# SPDX-License-Identifier: Apache-2.0
"""Counts on lines that cross: functions of two parameters are multiplied where that is the shorter description."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models

from ..one_count import predicted

P, N = (4.0, 8.0, 16.0, 32.0, 64.0), (1000.0, 2000.0, 3000.0, 4000.0, 5000.0)
CROSS = np.array([*((p, N[0]) for p in P), *((P[0], n) for n in N[1:])])
NOTE = "p and n never change together: products of their functions have the same counts"


def model_of(count: Callable[[FloatArray, FloatArray], FloatArray], points: FloatArray = CROSS) -> Model:
    values = np.round(count(points[:, 0], points[:, 1]))[None, :, None]
    (model,) = fit_models(points, values, METRICS["visits"], ("p", "n"))
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (lambda p, n: 5 * n * (p - 1) + 7, "5·p·n - 5·n + 7"),
        (lambda p, n: 3 * n * p + 17 * n + 21 * p + 13, "3·p·n + 21·p + 17·n + 13"),
        (lambda p, n: n**2 * (p + 3) + 2 * n, "p·n² + 3·n² + 2·n"),
    ],
)
def test_products_have_small_whole_coefficients(
    count: Callable[[FloatArray, FloatArray], FloatArray], text: str
) -> None:
    model = model_of(count)
    assert str(model) == text
    at = (256.0, 20000.0)
    found, truth = model.predict(at), float(count(np.array([at[0]]), np.array([at[1]]))[0])
    assert found.value == pytest.approx(truth)
    assert NOTE in model.notes


def test_a_sum_that_is_hardly_longer_is_a_doubt() -> None:
    found = model_of(lambda p, n: 5 * n * (p - 1) + 7).predict((256.0, 20000.0))
    assert found.lower == pytest.approx(5000 * 256 + 15 * 20000 - 19993)


def test_coefficients_are_known_to_the_rounding_of_counts() -> None:
    """The counts have an error of 5e-12; if one coefficient is then no simple fraction, the sum seems longer."""
    model = model_of(lambda p, n: 18 * n**3 / p + 12 * n**2 / np.sqrt(p) + 14)
    truth = 18 * 20000**3 / 256 + 12 * 20000**2 / 16 + 14
    assert model.predict((256.0, 20000.0)).value == pytest.approx(truth, rel=1e-6)


def test_doubts_about_one_pair_of_parameters_stay_beside_those_about_the_next() -> None:
    points = np.array(
        [*((p, 1000.0, 10.0) for p in P), *((4.0, n, 10.0) for n in N[1:]), *((4.0, 1000.0, s) for s in P)]
    )
    p, n, s = points.T
    values = (5 * n * (p - 1) + 7 + 2 * s)[None, :, None]
    (model,) = fit_models(points, values, METRICS["visits"], ("p", "n", "s"))
    assert isinstance(model, Model)
    found = model.predict((256.0, 20000.0, 10.0))
    assert found.value == pytest.approx(5 * 20000 * 255 + 27)
    assert found.lower == pytest.approx(5000 * 256 + 15 * 20000 - 20000 + 27, rel=0.01)


def test_what_is_added_stays_so() -> None:
    model = model_of(lambda p, n: 40 * p + 9 * n + 12)
    assert str(model) == "40·p + 9·n + 12"
    assert model.predict((256.0, 20000.0)).value == 40 * 256 + 9 * 20000 + 12


def test_parameters_that_change_together_leave_nothing_open() -> None:
    points = np.array([(p, n) for p in P for n in N])
    model = model_of(lambda p, n: 5 * n * (p - 1) + 7, points)
    assert str(model) == "5·p·n - 5·n + 7"
    assert not model.alternatives and not model.notes


@pytest.mark.parametrize("coefficients", [(26, 11, 15), (25, 11, 18), (19, 11, 17), (7, 20, 3)])
def test_rounded_counts_have_no_exact_function_by_luck(coefficients: tuple[int, int, int]) -> None:
    """Four coefficients sometimes fit five rounded counts."""
    a, b, c = coefficients
    model = model_of(lambda p, n: a * n**2 / p + b * n * np.log2(n) + c)
    truth = a * 20000**2 / 256 + b * 20000 * np.log2(20000) + c
    assert model.predict((256.0, 20000.0)).value == pytest.approx(truth, rel=1e-3)


# photons of a Monte Carlo code, p and n of six runs: 5 for each of n/p, and what depends on the seed
PHOTONS = np.array([(1, 20000), (2, 20000), (4, 20000), (8, 20000), (4, 40000), (4, 80000)], dtype=float)
BLOCKS = (16225754.0, 8085989.0, 4013677.5, 1980074.375, 8050607.5, 16113111.25)


def test_products_that_deviate_are_no_sums_that_cancel_out() -> None:
    found = predicted(PHOTONS, np.array(BLOCKS), ("p", "n"), (16.0, 80000.0))
    assert found.value == pytest.approx(3999351.0, rel=0.02)
    assert found.lower < 3999351.0 < found.upper


def test_sums_that_deviate_stay_sums() -> None:
    p, n = CROSS.T
    values = (40000 * p + 90 * n + 12000) * (1 + 0.003 * np.random.default_rng(1).standard_normal(p.size))
    (model,) = fit_models(CROSS, values[None, :, None], METRICS["blocks"], ("p", "n"))
    assert isinstance(model, Model)
    assert all(len(term.factors) == 1 for term in model.terms)
    assert model.predict((256.0, 20000.0)).value == pytest.approx(40000 * 256 + 90 * 20000 + 12000, rel=0.05)
