# SPDX-License-Identifier: Apache-2.0
"""Times without noise have exact functions, with negative parts if the sum is positive."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models

TIME = Metric("time", "s", "cost")
ONE = np.array([[2.0], [4], [8], [16], [32]])
GRID = np.array([(p, n) for p in (4.0, 8, 16, 32, 64) for n in (10.0, 20, 30, 40, 50)])
P, X, Y = ONE[:, 0], GRID[:, 0], GRID[:, 1]


def model(points: FloatArray, times: FloatArray, repetitions: int = 1) -> Model:
    values = np.repeat(times[None, :, None], repetitions, axis=2)
    (found,) = fit_models(points, values, TIME, ("p", "n")[: points.shape[1]])
    assert isinstance(found, Model)
    return found


@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize(
    ("points", "times", "text"),
    [
        (ONE, 3 * (P - 1), "3·p - 3"),
        (ONE, P**2 - P, "p² - p"),
        (ONE, 0.37 * P**2 - 0.11 * P, "0.37·p² - 0.11·p"),
        (GRID, 1e-6 * (X - 1) * Y, "1e-06·p·n - 1e-06·n"),
        (GRID, 2e-3 * Y**2 * (1 - 1 / X) + 1e-4 * Y, "0.002·n² - 0.002·n²/p + 0.0001·n"),
    ],
)
def test_exact_functions_with_negative_parts(
    points: FloatArray, times: FloatArray, text: str, repetitions: int
) -> None:
    found = model(points, times, repetitions)
    assert str(found) == text
    far = found.predict((4 * points.max(axis=0)).tolist())
    assert far.upper == pytest.approx(far.value, rel=1e-4) and far.lower == pytest.approx(far.value, rel=1e-4)


def test_what_is_negative_further_out_is_no_time() -> None:
    assert model(ONE, 100 - P).at(p=256) > 0


def test_a_cross_does_not_tell_sums_from_products() -> None:
    cross = np.array([(p, 10.0) for p in (4.0, 8, 16, 32, 64)] + [(4.0, n) for n in (20.0, 30, 40, 50)])
    found = model(cross, 1e-6 * (cross[:, 0] - 1) * cross[:, 1])
    assert found.at(p=128, n=100) == pytest.approx(1e-6 * 127 * 100, rel=0.1)
    alone = model(cross, 2.0 * cross[:, 0] - 3.0)
    assert str(alone) == "2·p - 3"


def test_times_with_noise_are_left_to_evidence() -> None:
    random = np.random.default_rng(3)
    found = model(ONE, 3 * (P - 1) * (1 + 1e-3 * random.standard_normal(5)))
    assert str(found) != "3·p - 3"
    assert found.at(p=64) == pytest.approx(189, rel=0.05)
