# SPDX-License-Identifier: Apache-2.0
"""What calls of an operation take undisturbed is known from its call paths that do not slow down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Model
from quipu.modeling.priors.latencies import undisturbed
from quipu.modeling.priors.path_model import PathModel

P = np.array([4.0, 8, 16, 32])
REDUCE = Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI)
# main, a step that computes, and reductions of 8 bytes in it: 20 that take what they take, 20 that slow down
TREE = CallTree(
    (Region("main", "main"), Region("step", "step"), Region("norm", "norm"), Region("dot", "dot"), REDUCE),
    np.array([0, 1, 2, 3, 4, 4]),
    np.array([-1, 0, 1, 1, 2, 3]),
)
FREE, SLOW = 4, 5
LATENCY, EACH = 2.5e-6, 0.28e-6


def program(noise: FloatArray | float = 1.0, size: float = 8.0, repetitions: int = 1) -> Experiment:
    """Return it with 20 reductions of 8 bytes, and 20 of `size` bytes that take 0.28 us more for each rank."""
    ones, nothing = np.ones_like(P), np.zeros_like(P)
    values = {
        "visits": np.stack([ones, ones, ones, ones, 20 * ones, 20 * ones]),
        "blocks": np.stack([ones, 1e6 * ones, 10 * ones, 10 * ones, nothing, nothing]),
        "bytes_sent": np.stack([nothing] * 4 + [160 * ones, 20 * size * ones]),
        "comm_size": np.stack([nothing] * 4 + [P, P]),
    }
    free = 20 * LATENCY * np.log2(P)
    time = np.stack([1e-6 * ones, 1e-3 * ones, 1e-6 * ones, 1e-6 * ones, free, free + 20 * EACH * P])
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    arrays = {name: np.repeat(value[:, :, None], repetitions, axis=2) for name, value in values.items()}
    return Experiment("program", ("p",), P[:, None], TREE, metrics, arrays | {"time": time[:, :, None] * noise})


def models(experiment: Experiment) -> dict[int, PathModel]:
    entries = enumerate(analyze(experiment).models("time"))
    return {path: replace(one, model=one.from_effort, lower=None) for path, one in entries}


def test_a_call_takes_what_it_takes_elsewhere() -> None:
    experiment = program()
    bare = undisturbed(experiment, models(experiment), [SLOW])
    assert bare[SLOW].evaluate(P[:, None]) == pytest.approx(20 * LATENCY * np.log2(P), rel=1e-3)


def test_messages_of_a_cache_line_are_alike_and_larger_ones_are_not() -> None:
    assert undisturbed(program(size=64.0), models(program(size=64.0)), [SLOW])
    assert not undisturbed(program(size=800.0), models(program(size=800.0)), [SLOW])


def test_call_paths_that_slow_down_say_nothing_of_each_other() -> None:
    experiment = program()
    assert not undisturbed(experiment, models(experiment), [FREE, SLOW])


def test_without_bytes_or_calls_nothing_is_known() -> None:
    experiment, known = program(), models(program())
    for name in ("visits", "bytes_sent"):
        values = {metric: value for metric, value in experiment.values.items() if metric != name}
        assert not undisturbed(replace(experiment, values=values), known, [SLOW])


def test_what_is_known_of_latency_tells_how_a_call_path_slows_down() -> None:
    """Of few runs with noise of 3 %, latency and growth with the ranks can hardly be told apart otherwise."""
    errors = []
    for seed in range(8):
        noise = 1 + 0.05 * np.random.default_rng(seed).uniform(-1, 1, (len(TREE), len(P), 3))
        entry = analyze(program(noise, repetitions=3)).models("time")[SLOW]
        assert isinstance(entry.model, Model)
        assert entry.basis == "table I: MPI_Allreduce × growth in p"
        errors.append(float(entry.model.evaluate(np.array([[128.0]]))[0]) / (20 * (LATENCY * 7 + EACH * 128)) - 1)
    assert np.abs(errors).max() < 0.15
    assert np.abs(errors).mean() < 0.06
