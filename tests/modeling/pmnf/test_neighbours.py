# SPDX-License-Identifier: Apache-2.0
"""Noise of single runs, from deviations of neighbours from a curve, and the treatment of misfits."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models
from quipu.modeling.pmnf.data.neighbours import neighbours_noise, noise_of
from quipu.modeling.pmnf.data.noise import combine
from quipu.modeling.pmnf.uncertainty.covariance import loosened

TIME = Metric("time", "s", "cost")
SIZES = np.asarray(2.0 ** np.arange(2, 20), np.float64)
# A library that sends small messages at once and large ones in parts: 3 µs, then 60 µs and another bandwidth.
MESSAGES = np.where(SIZES < 2048, 3.0 + 0.01 * SIZES, 60.0 + 0.002 * SIZES)


def _once(values: FloatArray, noise: float, seed: int) -> FloatArray:
    return (values * np.exp(noise * np.random.default_rng(seed).standard_normal(values.shape)))[..., None]


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_neighbours_say_how_large_noise_is(noise: float) -> None:
    values = _once(np.repeat((5.0 + SIZES**1.5)[None], 200, axis=0), noise, 1)[..., 0]
    found = neighbours_noise(SIZES[:, None], values)
    assert np.median(found) == pytest.approx(noise, rel=0.35)
    assert np.mean(found > noise / 2.0) > 0.95


def test_a_step_is_no_noise() -> None:
    (found,) = neighbours_noise(SIZES[:, None], _once(MESSAGES[None], 0.01, 2)[..., 0])
    assert found < 0.05


def test_neighbours_on_a_grid_are_those_of_its_lines() -> None:
    points = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0, 16.0) for n in (10.0, 20.0, 30.0, 50.0)])
    values = (points[:, 1] ** 2 / points[:, 0] + 3.0)[None]
    (found,) = neighbours_noise(points, _once(np.repeat(values, 1, axis=0), 0.02, 3)[..., 0])
    assert 0.01 < found < 0.08


def test_few_neighbours_say_nothing_and_repetitions_come_first() -> None:
    few = SIZES[:5, None]
    assert np.isnan(noise_of(combine(_once(np.ones((1, 5)), 0.1, 4)), few)).all()
    repeated = np.concatenate([_once(MESSAGES[None], 0.02, seed) for seed in range(4)], axis=2)
    known = combine(repeated)
    assert noise_of(known, SIZES[:, None]) == pytest.approx(known.known_noise)


def test_single_runs_show_a_change_of_behaviour() -> None:
    """Without repetitions, a step between smooth ranges is still recognized as a misfit."""
    models = fit_models(SIZES[:, None], _once(np.repeat(MESSAGES[None], 10, axis=0), 0.02, 5), TIME, ("n",))
    far = 4.0 * SIZES[-1]
    for model in models:
        assert isinstance(model, Model)
        assert any(note.startswith("holds from n=") for note in model.notes)
        assert model.at(n=far) == pytest.approx(60.0 + 0.002 * far, rel=0.2)


def test_single_runs_with_noise_stay_one_behaviour() -> None:
    exact = 1.0 + 0.02 * SIZES[:10] * np.log2(SIZES[:10])
    models = fit_models(SIZES[:10, None], _once(np.repeat(exact[None], 100, axis=0), 0.1, 6), TIME, ("n",))
    said = [any("holds from" in note or "largest" in note for note in m.notes) for m in models if isinstance(m, Model)]
    assert np.mean(said) <= 0.05


def test_what_is_loosened_is_in_doubt_beyond_the_largest_value_only() -> None:
    (model,) = fit_models(SIZES[:, None], _once((4.0 + 0.1 * SIZES)[None], 0.02, 7), TIME, ("n",))
    assert isinstance(model, Model)
    loose = loosened(model, "n", 0.2)
    top, beyond = (SIZES[-1],), (4.0 * SIZES[-1],)
    assert loose.standard_error(top) == pytest.approx(model.standard_error(top), rel=1e-6)
    expected = np.hypot(model.standard_error(beyond), 0.2 * np.log(4.0) * model.at(n=beyond[0]))
    assert loose.standard_error(beyond) == pytest.approx(expected, rel=1e-6)
    assert loose.at(n=beyond[0]) == model.at(n=beyond[0])


def test_an_exact_model_is_not_loosened() -> None:
    exact = Model(("n",), 3.0, ranges=((1.0, 8.0),))
    assert loosened(exact, "n", 0.2) is exact


def test_places_that_are_one_in_floating_point_say_nothing() -> None:
    points = np.array([[0.0], [0.0], [0.5], [1.0], [2.0], [4.0], [8.0], [8.0 + 1e-14]])
    noise = neighbours_noise(points, np.array([[1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.5]]))
    assert noise.shape == (1,)
    assert np.isnan(neighbours_noise(np.array([[1e-160 * i] for i in range(1, 8)]), np.zeros((1, 7))))
