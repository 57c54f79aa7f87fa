# SPDX-License-Identifier: Apache-2.0
"""Other selection rules for comparison: cross-validated SMAPE, and the rule of Extra-P."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.criterion.rules import left_out, smape
from quipu.modeling.pmnf.options import SELECTORS, Selector

TIME = Metric("time", "s", "cost")
P = np.array([4.0, 8, 16, 32, 64])
GRID = np.array([(p, n) for p in P for n in (10.0, 20, 30, 40, 50)])


def _noisy(exact: FloatArray, noise: float) -> FloatArray:
    random = np.random.default_rng(5)
    return exact[..., None] * (1 + noise * random.uniform(-1, 1, (*exact.shape, 3)))


@pytest.mark.parametrize("selector", SELECTORS)
def test_planted_forms(selector: Selector) -> None:
    p, n = GRID.T
    exact = np.stack([np.full(25, 3.0), 2 + 5 * p, 0.5 * n**2 * np.log2(p), 7 * p + n**2])
    constant, *others = fit_models(GRID, _noisy(exact, 0.001), TIME, ("p", "n"), Options(selector=selector))
    assert isinstance(constant, Model) and constant.at(p=128, n=60) == pytest.approx(3.0, rel=0.02)
    for model, truth in zip(others, (642, 12600, 4496), strict=True):
        assert isinstance(model, Model)
        assert model.at(p=128, n=60) == pytest.approx(truth, rel=0.1)
        assert selector == "evidence" or not model.alternatives


def test_left_out_is_what_a_fit_without_the_point_predicts() -> None:
    random = np.random.default_rng(1)
    columns = np.stack([np.ones(6), random.uniform(1, 9, 6)])
    values, weights = random.uniform(1, 9, 6), random.uniform(0.5, 2, 6)
    for point, found in enumerate(left_out(columns[None], values[None], weights[None])[0]):
        rest = np.arange(6) != point
        design = (columns * weights)[:, rest].T
        coefficients = np.linalg.lstsq(design, (values * weights)[rest], rcond=None)[0]
        assert found == pytest.approx(coefficients @ columns[:, point])
    assert smape(np.array([1.0, 0.0]), np.array([3.0, 0.0])) == pytest.approx(50.0)


def test_selectors_to_compare_with_model_time_without_effort() -> None:
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    metrics = {"time": TIME, "blocks": Metric("blocks", "1", "effort")}
    values = {"time": _noisy(P[None] ** 2, 0.01), "blocks": np.repeat(P[None, :, None], 3, axis=2)}
    experiment = Experiment("x", ("p",), P[:, None], tree, metrics, values)
    cases: list[tuple[Selector, str]] = [("evidence", "effort × growth in p"), ("smape", "measured")]
    for selector, basis in cases:
        analysis = analyze(experiment, Options(selector=selector))
        assert analysis.exclusive["time"][0].basis == basis
        assert analysis.exclusive["blocks"][0].basis == "measured"
