# SPDX-License-Identifier: Apache-2.0
"""Effort beyond blocks: taken where it predicts time better, explained, and not where noise alone prefers it."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf import Model
from quipu.modeling.priors import PathModel

GRID = np.array([(p, n) for p in (2.0, 4, 8, 16, 32) for n in (100.0, 200, 300, 400, 500)])
P, N = GRID.T
BLOCKS = 5 + 2 * N**2 + 90 * N
FLOPS = 3 + 40 * N**2
BYTES = 8 + 800 * N * P


def _time_models(experiment: Experiment) -> tuple[PathModel, ...]:
    return analyze(experiment).models("time")


def _model(time: FloatArray, noise: float = 0.0, seed: int = 0, **effort: FloatArray) -> PathModel:
    """Return the model of a time, of a call path with BLOCKS, but for those that `effort` has, and its other effort."""
    random = np.random.default_rng(seed)
    tree = CallTree((Region("work", "work"),), np.array([0]), np.array([-1]))
    values = {
        "visits": np.ones_like(N),
        "blocks": BLOCKS,
        **effort,
        "time": time * (1 + noise * random.normal(size=25)),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    found = {name: value[None, :, None] for name, value in values.items()}
    (entry,) = _time_models(Experiment("metrics", ("p", "n"), GRID, tree, metrics, found))
    return entry


@pytest.mark.parametrize("seed", range(5))
def test_time_of_floating_point_work_follows_flops(seed: int) -> None:
    entry = _model(1e-10 * FLOPS, 0.02, seed, flops=FLOPS)
    assert isinstance(entry.model, Model)
    assert entry.model.evaluate([[64, 2000]])[0] == pytest.approx(1e-10 * (3 + 40 * 2000**2), rel=0.05)


def test_time_of_work_and_memory_combines_both() -> None:
    """Accesses to memory in another order than the work show in time, and in the prior."""
    entry = _model(1e-9 * BLOCKS + 1e-9 * BYTES, 0.02, bytes_loaded=BYTES)
    assert entry.basis == "effort: blocks + bytes_loaded"
    assert "c2·(bytes_loaded = 800·p·n + 8)" in entry.prior
    assert isinstance(entry.model, Model)
    truth = 1e-9 * (2 * 2000**2 + 90 * 2000) + 1e-9 * 800 * 2000 * 64
    assert entry.model.evaluate([[64, 2000]])[0] == pytest.approx(truth, rel=0.05)


def test_metrics_are_told_apart_by_their_constants() -> None:
    """No time has a negative constant, so that one with less of it than blocks needs a metric that has less of it."""
    stores, blocks = 80 * N**2 / P + 4000, 50 * N**2 / P + 12000
    entry = _model(1e-9 * stores, blocks=blocks, stores=stores)
    assert entry.basis == "effort: stores"
    assert isinstance(entry.model, Model)
    assert entry.model.evaluate([[64, 100]])[0] == pytest.approx(1e-9 * (80 * 100**2 / 64 + 4000), rel=1e-3)


def test_time_is_not_known_better_than_work_takes_the_same_time() -> None:
    entry = _model(1e-9 * BLOCKS)
    assert isinstance(entry.model, Model)
    far = entry.model.predict((64.0, 2000.0))
    assert far.value == pytest.approx(1e-9 * (5 + 2 * 2000**2 + 90 * 2000))
    assert 1.002 < far.upper / far.value < 1.05


def test_what_has_no_blocks_of_its_own_takes_the_time_of_its_other_effort() -> None:
    """A loop that became one call, in a block of its caller, has instructions and bytes."""
    written = BYTES - 8
    entry = _model(1e-9 * written, blocks=0 * N, instructions=31 + 0 * N, bytes_stored=written)
    assert entry.basis == "effort: bytes_stored"
    assert isinstance(entry.model, Model)
    assert entry.model.evaluate([[64, 2000]])[0] == pytest.approx(1e-9 * 800 * 2000 * 64, rel=0.01)
    assert _model(1e-9 * written, blocks=0 * N).basis == "time only"


@pytest.mark.parametrize("seed", range(10))
def test_blocks_are_kept_where_they_explain_time(seed: int) -> None:
    entry = _model(2e-9 * BLOCKS, 0.05, seed, flops=FLOPS, bytes_loaded=BYTES, instructions=7 * BLOCKS)
    assert entry.basis == "effort"
    assert isinstance(entry.model, Model)
    assert [str(power) for power, _ in (entry.model.lead("p"), entry.model.lead("n"))] == ["0", "2"]


@pytest.mark.parametrize("seed", range(5))
def test_what_a_library_does_has_the_time_of_its_bytes(seed: int) -> None:
    """Filling memory is a call to a function without instrumented blocks, however much there is to fill."""
    entry = _model(1e-6 + 1e-9 * BYTES, 0.02, seed, blocks=np.full_like(N, 7.0), bytes_stored=BYTES)
    assert entry.basis == "effort: bytes_stored"
    assert isinstance(entry.model, Model)
    truth = 1e-6 + 1e-9 * (8 + 800 * 2000 * 64)
    assert entry.model.evaluate([[64, 2000]])[0] == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("seed", range(10))
def test_constant_time_of_constant_blocks_has_nothing_to_do_with_bytes(seed: int) -> None:
    entry = _model(np.full_like(N, 1e-6), 0.05, seed, blocks=np.full_like(N, 7.0), bytes_stored=BYTES)
    assert isinstance(entry.model, Model)
    assert entry.model.is_constant
