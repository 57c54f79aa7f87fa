# SPDX-License-Identifier: Apache-2.0
"""Times of few configurations with one run each: many forms fit well, one of them by coincidence."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models

TIME = Metric("time", "s", "cost")


def models_of(values: FloatArray, ranks: FloatArray) -> list[Model]:
    """Return the models of times (N, C), one run each."""
    found = fit_models(ranks[:, None], values[:, :, None], TIME, ("p",))
    return [model for model in found if isinstance(model, Model)]


@pytest.mark.parametrize("count", [3, 4, 5])
def test_intervals_hold_what_is_divided_beside_what_is_not(count: int) -> None:
    random = np.random.default_rng(count)
    ranks, far = np.array([8.0 * 2**step for step in range(count)]), 8.0 * 2.0**count
    paths = 200
    power, rest = -random.uniform(0.6, 1.1, (paths, 1)), random.uniform(0.0, 0.1, (paths, 1))
    times = (ranks**power + rest) * np.exp(0.03 * random.standard_normal((paths, count)))
    predictions = [model.predict((far,)) for model in models_of(times, ranks)]
    truth = (far**power + rest)[:, 0].tolist()
    held = [own.lower <= true <= own.upper for own, true in zip(predictions, truth, strict=True)]
    assert np.mean(held) >= 0.9
    assert np.median([own.upper / own.lower for own in predictions]) < 3.1


def test_what_a_form_reproduces_is_no_luck() -> None:
    ranks = np.array([8.0, 16.0, 32.0, 64.0])
    (model,) = models_of((100 / ranks + 3.0)[None], ranks)
    assert str(model) == "100/p + 3"
    prediction = model.predict((128.0,))
    assert prediction.upper < 1.25 * prediction.lower
