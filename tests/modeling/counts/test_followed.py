# SPDX-License-Identifier: Apache-2.0
"""Counts that follow a random count: the uncertainty appears once, and the relation is exact."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.counts.predictions import CountModels, count_models
from quipu.modeling.counts.program import fit
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region

SIZES = np.array([16.0, 24.0, 32.0, 48.0, 64.0, 96.0])
METRICS = {"visits": Metric("visits", "1", "effort"), "blocks": Metric("blocks", "1", "effort")}


def models(visits: FloatArray, blocks: FloatArray) -> CountModels:
    """Return the models of main, which calls `step` as often as chance decides: values (call paths, sizes, runs)."""
    tree = CallTree((Region("main", "main"), Region("step", "step")), np.array([0, 1]), np.array([-1, 0]))
    found = count_models(Experiment("x", ("n",), SIZES[:, None], tree, METRICS, {"visits": visits, "blocks": blocks}))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_each_step_does_is_exact_though_the_number_of_steps_is_random(seed: int) -> None:
    steps = np.rint(3 * SIZES[:, None] * np.random.default_rng(seed).uniform(0.9, 1.1, (6, 3)))
    visits = np.stack([np.ones((6, 3)), steps])
    n = SIZES[:, None]
    blocks = np.stack([5 * n + 7 * steps, (2 * n + 5) * steps])
    found = models(visits, blocks)
    for size in (192.0, 384.0):
        number = found.predict({"n": size}, "visits")[1]
        main, step = found.predict({"n": size}, "blocks")
        assert main.value == pytest.approx(5 * size + 7 * number.value)
        assert step.value == pytest.approx((2 * size + 5) * number.value)
        assert step.lower <= (2 * size + 5) * 3 * size <= step.upper


def test_counts_that_vary_less_say_more() -> None:
    """Small sizes with large scatter do not move the law that large sizes show."""
    random = np.random.default_rng(5)
    scatter = np.array([0.2, 0.15, 0.1, 0.03, 0.01, 0.003])[:, None] * random.normal(size=(6, 5))
    visits = np.stack([np.ones((6, 5)), np.rint(1000 * SIZES[:, None] * (1 + scatter))])
    value = models(visits, visits).predict({"n": 768.0}, "visits")[1].value
    assert value == pytest.approx(768_000, rel=0.02)


def test_counts_whose_runs_are_not_known_are_followed_by_their_means() -> None:
    """Counts of classes are only known as means: a count with separate runs is then compared by its means."""
    random = np.random.default_rng(3)
    other = np.rint(3 * SIZES * random.uniform(0.9, 1.1, 6))
    runs = (5 * SIZES + 7 * other)[:, None] + np.array([-7.0, 0.0, 7.0])
    vectors = [runs.mean(axis=1), other]
    found = fit(SIZES[:, None], ["n"], vectors, None, within=[(1,), ()], runs={0: runs})
    value, around = (model.at([192.0]).quantile(0.5) for model in found)
    assert value == pytest.approx(5 * 192 + 7 * around)
