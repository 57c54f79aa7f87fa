# SPDX-License-Identifier: Apache-2.0
"""Models of times that no form explains: they follow the largest measured values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.catalogue import TIMES_MISSED
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, NoModel
from quipu.modeling.pmnf.changes.ranges import fit_models
from quipu.modeling.pmnf.fit.largest import nearness, refitted
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.hypotheses.pool import Pool
from quipu.modeling.pmnf.hypotheses.tables import make_tables
from quipu.modeling.pmnf.modeler import fit_models as fit_whole

TIME = Metric("time", "s", "cost")


def repeated(exact: FloatArray, noise: float = 0.002) -> FloatArray:
    factors = np.random.default_rng(4).normal(1.0, noise, (*exact.shape, 4))
    return np.asarray(exact[..., None] * factors)


def model_of(points: FloatArray, exact: FloatArray, names: tuple[str, ...]) -> Model:
    (model,) = fit_models(points, repeated(exact[None]), TIME, names)
    assert not isinstance(model, NoModel)
    return model


def test_what_no_form_explains_goes_on_from_the_largest_values() -> None:
    """A step three values before the end: the mean of all values is far from the target."""
    p = np.array([4.0, 8, 16, 32, 64])
    model = model_of(p[:, None], np.array([3.0, 3.0, 4.2, 4.2, 4.2]), ("p",))
    assert TIMES_MISSED.is_in(model.notes)
    assert model.at(p=64) == pytest.approx(4.2, rel=0.02)
    assert model.at(p=128) == pytest.approx(4.2, rel=0.1)


def test_a_bump_in_one_parameter_does_not_lift_the_others() -> None:
    """The largest of 25 configurations is missing; times at p = 128 are 20 % above the function of the others."""
    points = np.array(list(product((32, 64, 128, 256, 512), (5, 6, 7, 8, 9))), dtype=float)
    p, n = points.T
    exact = 1e-3 * np.log2(p) ** 2 * n * np.where(p == 128, 1.2, np.where(p == 512, 0.92, 1.0))
    known = points[:-1]
    model = model_of(known, exact[:-1], ("p", "n"))
    (whole,) = fit_whole(known, repeated(exact[None, :-1]), TIME, ("p", "n"))
    assert not isinstance(whole, NoModel)
    error, before = (abs(one.at(p=512, n=9) / exact[-1] - 1.0) for one in (model, whole))
    assert error < 0.04
    assert error < 0.5 * before
    prediction = model.predict((512, 9))
    assert prediction.lower < exact[-1] < prediction.upper


def test_what_a_form_explains_stays_as_it_is() -> None:
    points = np.array([[4.0], [8], [16], [32], [64]])
    values = repeated(3.0 + 0.2 * points.T)
    assert fit_models(points, values, TIME, ("p",)) == fit_whole(points, values, TIME, ("p",))


def test_weights_fall_off_with_the_distance_from_the_largest_values() -> None:
    points = np.array(list(product((1, 10, 100), (0, 5, 10))), dtype=float)
    factors = nearness(points).reshape(3, 3)
    assert factors[2, 2] == 1.0
    assert (np.diff(factors, axis=0) > 0).all() and (np.diff(factors, axis=1) > 0).all()
    np.testing.assert_allclose(factors[0], factors[:, 0])  # one in logarithms, one as it is: it has a 0
    assert nearness(np.array([[3.0, 7.0]])).tolist() == [1.0]


def test_no_coefficient_changes_its_sign() -> None:
    """The last values fall, so a fit to them alone would have a negative slope."""
    points = np.array([[1.0], [2], [3], [4]])
    tables = make_tables(points, Library())
    linear = next(i for i, term in enumerate(tables.terms[0]) if (term.exponent, term.log) == (1, 0))
    specification = np.array([[[[linear]], [[-1]]]], dtype=np.int16)
    coefficients = np.array([[[0.5, 2.0], [4.0, 0.0]]])
    errors = np.full((1, 2), 0.3)
    pool = Pool(specification, coefficients, errors, errors, errors)
    values, weights = np.array([[1.0, 5.0, 6.0, 5.0]]), np.array([[0.01, 0.01, 1.0, 1.0]])
    found = refitted(pool, tables, values, weights)
    assert found.coefficients[0, 0, 1] == pytest.approx(0.0, abs=1e-12)
    assert found.coefficients[0, 0, 0] > 0.5
    assert found.coefficients[0, 1, 0] == pytest.approx(5.5, rel=0.01)
    assert (found.score == pool.score).all() and (found.residual == pool.residual).all()
