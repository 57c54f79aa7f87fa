# SPDX-License-Identifier: Apache-2.0
"""Powers between those of the library, and constants that are likely enough to be the model."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Library, Model, Options, fit_models
from quipu.modeling.pmnf.build import median_first
from quipu.modeling.pmnf.calibration import UNCHECKED_GROWTH
from quipu.modeling.pmnf.hypotheses.library import EXPONENTS
from quipu.modeling.pmnf.hypotheses.pool import Pool
from quipu.modeling.pmnf.hypotheses.tables import make_tables
from quipu.modeling.pmnf.options import DEFAULT
from quipu.modeling.pmnf.proposers.powers import power_squares

TIME = Metric("time", "s", "cost")
P = np.asarray(2.0 ** np.arange(1, 9)[:, None], dtype=np.float64)


def _models(points: FloatArray, exact: FloatArray, noise: float, options: Options = DEFAULT) -> list[Model]:
    """Return models of the same function, measured forty times."""
    random = np.random.default_rng(5)
    values = exact[None, :, None] * (1 + noise * random.uniform(-1, 1, (40, len(exact), 5)))
    models = [model for model in fit_models(points, values, TIME, ["p"], options) if isinstance(model, Model)]
    assert len(models) == len(values)
    return models


def _exponents(models: list[Model]) -> set[Fraction]:
    return {factor.exponent for model in models for term in model.terms for factor in term.factors}


def _errors(models: list[Model], at: float, truth: float) -> FloatArray:
    return np.abs(np.array([model.predict((at,)).value for model in models]) / truth - 1)


@pytest.mark.parametrize("noise", [0.02, 0.05])
@pytest.mark.parametrize("exponent", [1.2, 1.88])
def test_an_exponent_that_the_library_has_not(exponent: float, noise: float) -> None:
    models = _models(P, 3 + P[:, 0] ** exponent, noise)
    library = _models(P, 3 + P[:, 0] ** exponent, noise, Options(library=Library(EXPONENTS[:-1])))
    truth = 3 + 512**exponent
    assert np.median(_errors(models, 512, truth)) < np.median(_errors(library, 512, truth))
    assert np.median(_errors(models, 512, truth)) < 0.4 * noise
    assert not _exponents(models) <= set(EXPONENTS)
    held = [model.predict((512,)).lower <= truth <= model.predict((512,)).upper for model in models]
    assert np.mean(held) >= 0.9


def test_growth_that_values_must_show_has_other_powers() -> None:
    """Times between the threads of a team, which no effort confirms, are modeled with a penalty of growth."""
    models = _models(P, 3 + P[:, 0] ** 1.2, 0.02, Options(growth_penalty=UNCHECKED_GROWTH))
    assert np.median(_errors(models, 512, 3 + 512**1.2)) < 0.02
    assert not _exponents(models) <= set(EXPONENTS)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_exponents_of_the_library_stay(exponent: float) -> None:
    models = _models(P, 3 + P[:, 0] ** exponent, 0.02)
    assert np.mean([_exponents([model]) == {Fraction(exponent)} for model in models]) >= 0.8


def test_few_values_and_other_libraries_have_no_other_powers() -> None:
    whole = Options(library=Library(tuple(map(Fraction, range(4))), (0, 1), ()))
    exact = 3 + P[:, 0] ** 0.87
    assert _exponents(_models(P, exact, 0.05, whole)) <= {Fraction(exponent) for exponent in range(4)}
    models = _models(P[:4], exact[:4], 0.05)
    assert all(exponent.denominator < 10 for exponent in _exponents(models))


@pytest.mark.parametrize("nonnegative", [True, False])
def test_squares_are_those_of_least_squares(nonnegative: bool) -> None:
    random = np.random.default_rng(8)
    at = np.arange(1.0, 7.0)
    terms = np.stack([(at / 6) ** power for power in (0.5, 1.0, 2.5)])
    values = random.uniform(0.5, 2.0, (60, 6)) * (1 + at * random.choice([-0.1, 0.5], (60, 1)))
    weights = 1 / values
    found = power_squares(terms, values, weights, nonnegative)
    for squares, own, weight in zip(found, values, weights, strict=True):
        for one, term in zip(squares, terms, strict=True):
            columns = np.stack([np.ones(6), term]) * weight
            coefficients, rest, *_ = np.linalg.lstsq(columns.T, own * weight, rcond=None)
            if nonnegative and coefficients[1] <= 0:
                assert np.isinf(one)
                continue
            if nonnegative and coefficients[0] < 0:
                rest = np.linalg.lstsq(columns[1:].T, own * weight, rcond=None)[1]
            assert one == pytest.approx(rest[0])


@pytest.mark.parametrize(("weight", "stays"), [(0.4, True), (0.3, False)])
def test_a_likely_constant_is_the_model(weight: float, stays: bool) -> None:
    """Its alternatives grow in different ways, and one of them would be the median."""
    tables = make_tables(P, Library())
    shares = np.array([weight, *[(1 - weight) / 4] * 4])
    specification = np.array([-1, 0, 5, 10, 15], dtype=np.int16)[None, :, None, None]
    coefficients = np.stack([np.ones(5), 0.01 * np.arange(5)], axis=1)[None]
    pool = Pool(specification, coefficients, np.ones((1, 5)), np.ones((1, 5)), -2.0 * np.log(shares)[None])
    first = median_first(pool, tables, np.ones(1, dtype=bool)).specification[0, 0]
    assert bool((first < 0).all()) is stays
