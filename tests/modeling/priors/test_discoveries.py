# SPDX-License-Identifier: Apache-2.0
"""Growth of hundreds of call paths: none is found in noise, and real growth is found."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.model import Model

POINTS = np.array([(p, n) for p in (1.0, 2, 4, 8) for n in (100.0, 200, 400)])
FAR = [[1024.0, 10000.0]]


def models_of(times: FloatArray, visits: FloatArray | None = None) -> list[Model]:
    """Return the models of Python functions, (N, C, R), that are visited once, or so often (C,)."""
    count = len(times)
    regions = tuple(Region(f"f{number}", f"f{number}", RegionKind.PYTHON) for number in range(count))
    tree = CallTree(regions, np.arange(count), np.full(count, -1))
    often = np.ones(len(POINTS)) if visits is None else visits
    values = {"time": times, "visits": np.broadcast_to(often[None, :, None], times.shape)}
    metrics = {name: METRICS[name] for name in values}
    experiment = Experiment("python", ("p", "n"), POINTS, tree, metrics, values)
    models = [entry.model for entry in analyze(experiment).models("time")]
    assert all(isinstance(model, Model) for model in models)
    return [model for model in models if isinstance(model, Model)]


def noise(seed: int, count: int, scatter: float = 0.8) -> FloatArray:
    random = np.random.default_rng(seed)
    return 20e-6 * np.exp(scatter * np.abs(random.standard_normal((count, len(POINTS), 3))))


@pytest.mark.parametrize("seed", range(2))
def test_start_up_of_an_interpreter_does_not_grow(seed: int) -> None:
    far = np.array([float(model.evaluate(FAR)[0]) for model in models_of(noise(seed, 150))])
    assert np.mean(far > 1e-3) <= 0.01, np.sort(far)[-5:]


def test_what_grows_among_them_is_found() -> None:
    times = noise(3, 150)
    times[7] = (1e-7 * POINTS[:, 1] ** 2)[:, None] * (1 + 0.05 * np.random.default_rng(1).standard_normal((12, 3)))
    times[8] = (2e-8 * POINTS[:, 1] ** 2)[:, None] * (1 + 0.05 * np.random.default_rng(2).standard_normal((12, 3)))
    models = models_of(times)
    assert float(models[7].evaluate(FAR)[0]) == pytest.approx(1e-7 * 1e8, rel=0.3)
    assert 1.5 < float(models[8].lead("n")[0]) <= 2, str(models[8])


def test_visits_that_grow_are_no_part_of_this() -> None:
    times = noise(4, 30) * POINTS[:, 1][None, :, None]
    far = [float(model.evaluate(FAR)[0]) for model in models_of(times, POINTS[:, 1])]
    assert np.median(far) > 20e-6 * 5000
