# SPDX-License-Identifier: Apache-2.0
"""The total time of kernels equals `quipu predict`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.class_vectors import ClassVectors, Place
from quipu.modeling.counters import COUNTERS
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, Region, RegionKind, TimedPart
from quipu.modeling.kernels import model_program
from quipu.modeling.kernels.model import with_machine
from quipu.modeling.machine import Cache, Machine
from quipu.modeling.metrics import METRICS

POINTS = np.array([(p, n) for p in (1.0, 2.0, 4.0) for n in (40.0, 60.0, 90.0, 130.0)])
FAR = {"p": 8.0, "n": 260.0}
TREE = CallTree(
    (
        Region("main", "main"),
        Region("solve", "solve"),
        Region("cell", "cell"),
        Region("MPI_Init", "MPI_Init", RegionKind.MPI),
        Region("MPI_Send", "MPI_Send", RegionKind.MPI),
        Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    ),
    np.arange(6),
    np.array([-1, 0, 1, 0, 1, 0]),
)


@dataclass(frozen=True)
class _Known:
    """Classes that are known."""

    vectors: ClassVectors | None


def with_messages() -> Experiment:
    """A program that computes and sends messages, with waiting, and noise of 3 %."""
    p, n = POINTS.T
    random = np.random.default_rng(7)
    cells, one, nothing = n**3 / p, np.ones(len(POINTS)), np.zeros(len(POINTS))
    surface = 6 * n**2 * (p > 1)
    counts = {
        "instructions": np.stack([20 * one, 90 * cells, 10 * cells, nothing, nothing, nothing]),
        "visits": np.stack([one, one, cells, one, 6 * (p > 1), 5 * one]),
        "blocks": np.stack([2 * one, 9 * cells, cells, nothing, nothing, nothing]),
        "bytes_loaded": np.stack([nothing, 8 * cells, nothing, nothing, nothing, nothing]),
        "bytes_stored": np.stack([nothing, 8 * cells, nothing, nothing, nothing, nothing]),
        "bytes_sent": np.stack([nothing, nothing, nothing, nothing, 8 * surface, 40 * one]),
        "messages_sent": np.stack([nothing, nothing, nothing, nothing, 6 * (p > 1), 5 * one]),
        "comm_size": np.stack([nothing, nothing, nothing, p, p, p]),
    }
    wait = np.stack([nothing] * 5 + [2e-5 * (p - 1)])
    messages = (2e-6 * 6 * (p > 1), 1e-9 * 8 * surface)
    seconds = wait + np.stack(
        [1e-5 * one, 4e-10 * 90 * cells, 1e-9 * 10 * cells, 0.05 * one, sum(messages), 1e-6 * (1 + np.log2(p))]
    )
    noise = 1 + 0.03 * random.standard_normal((*seconds.shape, 3))
    values = {name: np.repeat(own[:, :, None], 3, axis=2) for name, own in counts.items()}
    values |= {"time": seconds[:, :, None] * noise, "wait_time": wait[:, :, None] * noise}
    metrics = {name: METRICS[name] for name in values}
    return Experiment("program", ("p", "n"), POINTS, TREE, metrics, values)


def with_classes() -> Experiment:
    """The same with counts of its loops."""
    p, n = POINTS.T
    weights = {
        "instructions": np.array([20.0, 90, 10]),
        "blocks": np.array([2.0, 9, 1]),
        "bytes_loaded": np.array([0.0, 8, 0]),
        "bytes_stored": np.array([0.0, 8, 0]),
    }
    places = (Place("main", "a.c", 1, 0), Place("solve", "a.c", 2, 3), Place("cell", "a.c", 3, 0))
    rows = ClassVectors(np.array([0, 1, 2]), np.stack([p, n**3, n**3]), np.full(3, -1), weights, places, p)
    return replace(with_messages(), classes=_Known(rows))


def with_runs_that_only_counted() -> Experiment:
    """The same, of which runs on 4 ranks kept no time."""
    whole = with_classes()
    kept = np.flatnonzero(POINTS[:, 0] < 4)
    values = {name: own[:, kept] for name, own in whole.values.items()}
    timed = replace(whole, points=POINTS[kept], values=values, classes=None)
    effort = [name for name, metric in whole.metrics.items() if metric.is_effort]
    counted = replace(whole.only(effort), classes=whole.classes)
    return replace(counted, metrics=whole.metrics, timed=TimedPart(timed, np.arange(len(TREE), dtype=np.int64)))


def of_times_alone() -> Experiment:
    """The same, of which nothing was counted."""
    whole = with_messages()
    return replace(whole, values={"time": whole.values["time"]}, metrics={"time": METRICS["time"]})


@pytest.mark.parametrize("program", [with_messages, with_classes, with_runs_that_only_counted, of_times_alone])
def test_kernels_take_what_is_predicted(program: Callable[[], Experiment]) -> None:
    experiment = program()
    analysis = analyze(experiment)
    model = model_program(experiment, analysis=analysis)
    for point in (FAR, {"p": 2.0, "n": 60.0}, {"p": 1.0, "n": 300.0}):
        found, wanted = model.at(point), evaluate(analysis, point)
        assert found.total == wanted.total
        assert found.others.value == wanted.start_and_end.value
        rows = [*(kernel.total.value for kernel in found.kernels), *(group.total.value for group in found.groups)]
        assert sum(rows) == pytest.approx(found.total.value, rel=1e-12)
        for kernel in found.kernels:
            parts = kernel.compute.value + kernel.memory.value + kernel.unexplained.value
            assert parts == pytest.approx(kernel.total.value, rel=1e-12)
        for group in found.groups:
            assert group.transfer.value + group.waiting.value == pytest.approx(group.total.value, rel=1e-12)


def test_waiting_is_that_of_the_same_models() -> None:
    experiment = with_classes()
    analysis = analyze(experiment)
    found = model_program(experiment, analysis=analysis).at(FAR)
    waited = evaluate(analysis, FAR, "wait_time").exclusive[5].value
    (collective,) = (group for group in found.groups if "Allreduce" in group.model.group.name)
    assert collective.waiting.value == pytest.approx(min(waited, collective.total.value))
    assert collective.waiting.value > 0.5 * collective.total.value


def test_a_machine_tells_both_the_same() -> None:
    """Accesses that memory serves take their time at larger sizes, where no cache holds the data."""
    p, n = POINTS.T
    whole = with_classes()
    misses = np.zeros((len(TREE), len(POINTS)))
    misses[1] = np.maximum(0.0, n**3 / p - 4e4) / 8
    values = {**whole.values, "memory_accesses": np.repeat(misses[:, :, None], 3, axis=2)}
    values["l1_hits"] = values["bytes_loaded"] - values["memory_accesses"]
    values["time"] = whole.values["time"] + 1e-7 * values["memory_accesses"]
    metrics = {name: COUNTERS.get(name) or METRICS[name] for name in values}
    experiment = replace(whole, values=values, metrics=metrics)
    machine = Machine("here", "one", 4, 2e9, 2e9, (Cache(1, 32768, 64, 8, 1, 1e-9),), 1e-7)
    analysis = with_machine(experiment, analyze(experiment), machine)
    found = model_program(experiment, machine, analysis=analysis).at(FAR)
    assert found.total == evaluate(analysis, FAR).total
    cells = 260**3 / 8
    assert found.memory.value > 0
    solve = evaluate(analysis, FAR).exclusive[1].value
    assert solve == pytest.approx(4e-10 * 90 * cells + 1e-7 * (cells - 4e4) / 8, rel=0.15)
