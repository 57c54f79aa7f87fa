# SPDX-License-Identifier: Apache-2.0
"""Programs of many call paths that were measured once at few points: slowdown of one is found, noise is none."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf.model import Model
from quipu.modeling.priors.slowdown import slowdowns

PATHS = 30
LINES = np.array([(p, 100.0) for p in (4.0, 8, 16, 32)] + [(4.0, n) for n in (200.0, 300, 400)])


def program(noise: FloatArray, growth: float = 0.0) -> Experiment:
    """Return 30 regions of n² steps, once at each point; the first takes longer by `growth` per doubling of p."""
    p, n = LINES.T
    times = np.logspace(-7, -5, PATHS)[:, None] * n**2 * noise
    times[0] *= 1.0 + growth * np.log2(p / 4)
    tree = CallTree(
        (Region("main", "main"), *(Region(f"work{i}", f"work{i}") for i in range(1, PATHS))),
        np.arange(PATHS),
        np.array([-1] + [0] * (PATHS - 1)),
    )
    ones = np.ones_like(times)
    values = {"visits": ones, "blocks": 3 * n**2 * ones, "time": times}
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    return Experiment("planted", ("p", "n"), LINES, tree, metrics, {m: v[:, :, None] for m, v in values.items()})


@pytest.mark.parametrize("seed", range(4))
def test_slowdown_of_one_call_path_is_seen_because_others_tell_the_noise(seed: int) -> None:
    noise = 1 + 0.03 * np.random.default_rng(seed).uniform(-1, 1, (PATHS, len(LINES)))
    experiment = program(noise, growth=0.15)
    entries = analyze(experiment).models("time")
    assert [found.path for found in slowdowns(experiment, entries)] == [0]
    assert "growth in p" in entries[0].basis
    model = entries[0].model
    assert isinstance(model, Model)
    assert model.at(p=64, n=200) == pytest.approx(1e-7 * 200**2 * 1.6, rel=0.15)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["uniform", "late", "different", "one odd run"])
def test_noise_of_single_runs_is_no_slowdown(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = PATHS, len(LINES)
    if kind == "uniform":
        noise = 1 + 0.2 * random.uniform(-1, 1, shape)
    elif kind == "late":
        noise = 1 + 0.75 * random.uniform(size=shape) * (random.uniform(size=shape) < 0.5)
    elif kind == "different":
        noise = np.exp(0.05 * 10 ** random.uniform(-1, 0.5, (PATHS, 1)) * random.normal(size=shape))
    else:
        noise = 1 + 0.02 * random.normal(size=shape)
        noise[random.integers(PATHS), random.integers(len(LINES))] *= 2
    experiment = program(noise)
    entries = analyze(experiment).models("time")
    assert slowdowns(experiment, entries) == []
    assert not any("growth" in entry.basis for entry in entries)
