# SPDX-License-Identifier: Apache-2.0
"""Configurations with a single run, one of them disturbed."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models

TIME = Metric("time", "s", "cost")
P = np.asarray(2.0 ** np.arange(1, 9), np.float64)
SUSPECTED = "it seems to have been held up"


def _noisy(exact: FloatArray, repetitions: int = 1) -> FloatArray:
    random = np.random.default_rng(5)
    return exact[..., None] * (1 + 0.02 * random.standard_normal((*exact.shape, repetitions)))


def _held_up(model: object) -> bool:
    assert isinstance(model, Model)
    return any(SUSPECTED in note for note in model.notes)


@pytest.mark.parametrize("place", [1, 4, 6])
def test_a_slow_run_does_not_hide_how_time_grows(place: int) -> None:
    values = _noisy(np.stack([0.3 * P**2 + 2, 5 * P + 20, 0.1 * P * np.log2(P) + 1]))
    values[:, place] *= 4
    truth = np.array([0.3 * 512.0**2 + 2, 5 * 512.0 + 20, 0.1 * 512 * 9 + 1])
    for model, right in zip(fit_models(P[:, None], values, TIME, ("p",)), truth, strict=True):
        assert isinstance(model, Model)
        assert model.at(p=512) == pytest.approx(right, rel=0.1)
        assert _held_up(model)
        assert model.ranges == ((2.0, 256.0),)
        assert any(f"without p={P[place]:g}, where a single run had " in note for note in model.notes)
        assert model.alternatives  # the run may be true after all


def test_the_first_run_of_a_grid() -> None:
    points = np.array([[p, n] for p in (2, 4, 8, 16) for n in (10, 20, 40, 80)], dtype=np.float64)
    values = _noisy((0.01 * points[:, 1] ** 2 + 0.5 * points[:, 0])[None])
    values[:, 0] *= 10
    (model,) = fit_models(points, values, TIME, ("p", "n"))
    assert isinstance(model, Model)
    assert model.at(p=32, n=160) == pytest.approx(272, rel=0.1)
    assert any("without p=2, n=10, " in note for note in model.notes)


def test_what_repeats_or_goes_on_is_the_programs() -> None:
    growing = (0.3 * P**2 + 2)[None]
    repeated = _noisy(growing, 3)
    repeated[:, 4] *= 4
    step = _noisy(np.where(P < 128, 4.0, 8.0)[None])  # the last two of eight values
    switched = _noisy(np.where(P < 32, 40 + 20 * np.log2(P), 3 * P)[None])
    for values in (_noisy(growing), repeated, step, switched):
        assert not _held_up(*fit_models(P[:, None], values, TIME, ("p",)))


def test_noise_is_no_slow_run() -> None:
    random = np.random.default_rng(8)
    values = (5 * P + 20) * random.lognormal(sigma=0.2, size=(50, P.size))
    assert sum(map(_held_up, fit_models(P[:, None], values[:, :, None], TIME, ("p",)))) <= 1


def test_values_of_one_configuration_in_several_rows_are_repetitions() -> None:
    twice = np.concatenate([P, P])
    values = _noisy((5 * twice + 20)[None])
    values[:, 3] *= 4
    assert not _held_up(*fit_models(twice[:, None], values, TIME, ("p",)))
