# SPDX-License-Identifier: Apache-2.0
"""Workers wait for a saturated master: the time to serve all, minus the computation of a worker."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Model

SERVED, ANSWER, TASK, LATENCY = 5e-7, 2e-6, 1.5e-5, 1e-6
TREE = CallTree(
    (
        *(Region(name, name) for name in ("main", "serve", "labour", "work")),
        Region("MPI_Recv", "MPI_Recv", RegionKind.MPI),
    ),
    np.array([0, 1, 4, 2, 3, 4]),
    np.array([-1, 0, 1, 0, 3, 3]),
)
RECEIVES = 5


def waiting(p: FloatArray, n: FloatArray, task: float = TASK) -> FloatArray:
    """Return how long workers wait for the master, the mean over all ranks."""
    tasks = n / (p - 1.0)
    saturated = (SERVED + ANSWER) * (n + p - 1.0) - tasks * (task + LATENCY)
    return np.asarray(np.maximum(saturated, 0.3 * tasks * LATENCY) * (p - 1.0) / p)


def farm(ranks: tuple[int, ...], task: float = TASK) -> Experiment:
    """Return a program whose rank 0 hands out n tasks of so many seconds each, on these numbers of ranks."""
    points = np.array([(p, n) for p in ranks for n in (40.0, 80, 120, 200, 320)])
    p, n = points.T
    ones, nothing = np.ones_like(p), np.zeros_like(p)
    requests, tasks = (n + p - 1.0) / p, n / p
    wait = waiting(p, n, task)
    early = np.maximum(tasks * (task + LATENCY) / (p - 1.0) - requests * (SERVED + ANSWER), 0.0)
    values = {
        "visits": np.stack([ones, 1 / p, requests, (p - 1) / p, tasks, requests]),
        "blocks": np.stack([ones, 3 * requests, nothing, 4 * requests, 2000 * tasks, nothing]),
        "bytes_received": np.stack([nothing, nothing, 8 * requests, nothing, nothing, 4 * requests]),
        "comm_size": np.stack([nothing, nothing, p, nothing, nothing, p]),
        "time": np.stack(
            [
                1e-6 * ones,
                SERVED * requests,
                ANSWER * requests + early,
                1e-9 * requests,
                task * tasks,
                LATENCY * requests + wait,
            ]
        ),
        "wait_time": np.stack([nothing, nothing, early, nothing, nothing, wait]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values}
    metrics |= {name: Metric(name, "s", "cost") for name in ("time", "wait_time")}
    return Experiment("farm", ("p", "n"), points, TREE, metrics, {m: v[:, :, None] for m, v in values.items()})


def notes_of(found: Analysis) -> str:
    model = found.models("time")[RECEIVES].model
    assert isinstance(model, Model)
    return " ".join(model.notes)


@pytest.mark.parametrize("p, n", [(32.0, 640.0), (64.0, 1280.0), (128.0, 640.0)])
def test_workers_wait_until_a_saturated_master_has_served_all(p: float, n: float) -> None:
    found = analyze(farm((2, 3, 4, 6, 8, 12, 16)))
    assert "without p=2, p=3, p=4, p=6, where the rank that serves others waits for them" in notes_of(found)
    true = float(waiting(np.array([p]), np.array([n]))[0])
    predicted = evaluate(found, {"p": p, "n": n}, "wait_time").exclusive[RECEIVES]
    assert predicted.value == pytest.approx(true, rel=0.05)
    assert predicted.lower <= true <= predicted.upper


def test_a_master_that_is_not_saturated_yet_says_nothing() -> None:
    assert "serves" not in notes_of(analyze(farm((2, 3, 4, 6, 8, 12, 16), task=1e-4)))


def test_one_number_of_ranks_with_a_saturated_master_is_not_enough() -> None:
    assert "serves" not in notes_of(analyze(farm((2, 3, 4, 8))))
