# SPDX-License-Identifier: Apache-2.0
"""Costs of strong scaling: work that is divided by processes, plus communication that grows with them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models

TIME = Metric("time", "s", "cost")
Function = Callable[[FloatArray, FloatArray], FloatArray]
POINTS = np.array(list(product((2.0, 4, 8, 16, 32), (64.0, 128, 256, 512, 1024))))
FORMS: dict[str, Function] = {
    "n/p + p": lambda p, n: 1e-3 * n / p + 1e-2 * p,
    "n2/p + log p": lambda p, n: 1e-5 * n**2 / p + 1e-2 * np.log2(p),
    "n2/p + p log p": lambda p, n: 1e-5 * n**2 / p + 1e-2 * p * np.log2(p),
    "n2/p + root p": lambda p, n: 1e-5 * n**2 / p + 1e-2 * np.sqrt(p),
    "n log n/p + p": lambda p, n: 1e-4 * n * np.log2(n) / p + 1e-2 * p,
    "n3/p + p": lambda p, n: 1e-8 * n**3 / p + 1e-2 * p,
    "n2/p + n p": lambda p, n: 1e-5 * n**2 / p + 1e-4 * n * np.log2(p),
}


def model_of(form: Function, noise: float, repetitions: int, seed: int = 0) -> Model:
    random = np.random.default_rng(seed)
    exact = form(*POINTS.T)[:, None]
    values = exact * np.exp(noise * random.standard_normal((len(POINTS), repetitions)))
    (model,) = fit_models(POINTS, values[None], TIME, ("p", "n"))
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("repetitions", [1, 3])
def test_what_shrinks_and_what_grows_are_both_found(form: str, repetitions: int) -> None:
    model = model_of(FORMS[form], 0.0, repetitions)
    assert model.at(p=128, n=4096) == pytest.approx(FORMS[form](np.array(128.0), np.array(4096.0)), rel=1e-3)
    # none of its parts is what rounding left
    largest = np.abs(model.evaluate(POINTS)).max()
    for term in model.terms:
        assert np.abs(Model(model.parameters, terms=(term,)).evaluate(POINTS)).max() > 1e-9 * largest


@pytest.mark.parametrize("form", FORMS)
def test_under_noise_of_a_percent(form: str) -> None:
    for seed in range(3):
        model = model_of(FORMS[form], 0.01, 3, seed)
        assert model.at(p=128, n=1024) == pytest.approx(FORMS[form](np.array(128.0), np.array(1024.0)), rel=0.1)
        assert model.at(p=32, n=4096) == pytest.approx(FORMS[form](np.array(32.0), np.array(4096.0)), rel=0.1)


def test_three_parameters() -> None:
    points = np.array(list(product((2.0, 4, 8, 16, 32), (64.0, 128, 256, 512, 1024), (1.0, 2, 3, 4, 5))))
    p, n, k = points.T
    for exact in (1e-5 * n * np.log2(n) * k / p + 1e-3 * p, 1e-5 * n**2 / p + 1e-3 * k * np.log2(p)):
        (model,) = fit_models(points, np.repeat(exact[None, :, None], 2, axis=2), TIME, ("p", "n", "k"))
        assert isinstance(model, Model)
        assert model.evaluate(points) == pytest.approx(exact, rel=1e-6)
