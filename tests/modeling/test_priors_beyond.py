"""Time beyond effort: planted waiting and slowdown are part of the models, and noise brings neither about."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Model

GRID = np.array([(p, n) for p in (8.0, 27, 64, 125, 216) for n in (100.0, 200, 300, 400, 500)])
P, N = GRID.T
TREE = CallTree(
    (Region("main", "main"), Region("work", "work"), Region("MPI_Recv", "MPI_Recv", RegionKind.MPI)),
    np.array([0, 1, 2]),
    np.array([-1, 0, 1]),
)
WORK, RECEIVE = 3e-9 * N**2, 1e-5 + 8e-9 * N


def planted(
    work: FloatArray, receive: FloatArray, wait: FloatArray | None = None, noise: FloatArray | float = 1.0
) -> Analysis:
    """Return the models of 3·n² blocks of work and a message of 8·n bytes, which take the given times."""
    ones, nothing = np.ones_like(P), np.zeros_like(P)
    values = {
        "visits": np.stack([ones, ones, 10 * ones]),
        "blocks": np.stack([ones, 3 * N**2, nothing]),
        "bytes_received": np.stack([nothing, nothing, 80 * N]),
        "comm_size": np.stack([nothing, nothing, P]),
        "time": np.stack([1e-6 * ones, work, receive]) * noise,
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    if wait is not None:
        values["wait_time"] = np.stack([nothing, nothing, wait]) * noise
        metrics["wait_time"] = Metric("wait_time", "s", "cost")
    stacked = {name: own[:, :, None] for name, own in values.items()}
    return analyze(Experiment("planted", ("p", "n"), GRID, TREE, metrics, stacked))


def model_at(analysis: Analysis, path: int, p: float, n: float) -> float:
    model = analysis.models("time")[path].model
    assert isinstance(model, Model)
    return float(model.evaluate(np.array([[p, n]]))[0])


@pytest.mark.parametrize("seed", range(3))
def test_waiting_that_was_measured_has_a_model_of_its_own(seed: int) -> None:
    noise = 1 + 0.02 * np.random.default_rng(seed).normal(size=(3, len(P)))
    analysis = planted(WORK, RECEIVE + 0.2 * WORK * P ** (1 / 3), 0.2 * WORK * P ** (1 / 3), noise)
    entry = analysis.models("time")[2]
    assert entry.basis == "table I: MPI_Recv + waiting"
    truth = 1e-5 + 8e-9 * 1000 + 0.2 * 3e-9 * 1000**2 * 10
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.15)
    assert entry.lower is not None
    assert str(entry.model) != str(entry.lower)


def test_computation_that_slows_down_is_predicted_and_its_effort_kept() -> None:
    noise = 1 + 0.02 * np.random.default_rng(1).normal(size=(3, len(P)))
    analysis = planted(WORK * (0.2 + 0.12 * np.log2(N)), RECEIVE, noise=noise)
    entry = analysis.models("time")[1]
    assert entry.basis == "effort × growth in n"
    truth = 3e-9 * 800**2 * (0.2 + 0.12 * np.log2(800))
    assert model_at(analysis, 1, 64, 800) == pytest.approx(truth, rel=0.05)
    assert entry.lower is not None
    assert entry.lower.lead("n") == (2, 0)
    without = analysis.from_effort.models("time")[1]
    assert (without.model, without.lower) == (entry.lower, None)


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_neither_waiting_nor_slowdown(seed: int) -> None:
    """Half of the measurements take up to 75 % longer, each measured once."""
    random = np.random.default_rng(seed)
    noise = 1 + 0.75 * random.uniform(size=(3, len(P))) * (random.uniform(size=(3, len(P))) < 0.5)
    analysis = planted(WORK, RECEIVE, np.zeros_like(P), noise)
    assert [entry.lower for entry in analysis.models("time")] == [None] * 3


def test_models_that_are_stored_keep_what_is_beyond_effort() -> None:
    analysis = planted(WORK * np.sqrt(P / 8), RECEIVE)
    stored = from_document(to_document(analysis))
    assert stored.models("time")[1].basis == "effort × growth in p"
    point = {"p": 512.0, "n": 500.0}
    assert evaluate(stored, point).total.value == pytest.approx(evaluate(analysis, point).total.value)
    assert evaluate(stored.from_effort, point).total.value < evaluate(stored, point).total.value
