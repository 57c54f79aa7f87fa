# SPDX-License-Identifier: Apache-2.0
"""Times of collective operations where one process returns at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.diagnosis import diagnose
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.model import Model

NAMES = ("main", "MPI_Barrier", "MPI_Comm_rank")
TREE = CallTree(
    tuple(Region(name, name, RegionKind.MPI if "MPI" in name else RegionKind.FUNCTION) for name in NAMES),
    np.arange(3),
    np.array([-1, 0, 0]),
)


def program(processes: tuple[float, ...], barrier: FloatArray) -> Experiment:
    """Return a program with barriers of so many seconds per number of processes, measured at three sizes."""
    points = np.array(list(product(processes, (64.0, 128.0, 256.0))))
    visits = np.tile([[1.0], [10.0], [1.0]], (1, len(points)))
    times = np.stack([1e-9 * points[:, 1], 10.0 * np.repeat(barrier, 3), np.full(len(points), 3e-8)])
    values = {"visits": visits, "blocks": np.stack([points[:, 1], *np.zeros((2, len(points)))]), "time": times}
    values["comm_size"] = np.stack([0 * points[:, 0], points[:, 0], points[:, 0]])
    metrics = {name: METRICS[name] for name in values}
    return Experiment("b", ("p", "n"), points, TREE, metrics, {name: own[:, :, None] for name, own in values.items()})


def left_out(analysis: Analysis) -> str:
    model = analysis.models("time")[1].model
    assert isinstance(model, Model)
    return " ".join(note for note in model.notes if note.startswith("without"))


def test_one_process_says_nothing_about_a_barrier() -> None:
    measured = np.array([0.15, 3.02, 3.53, 3.80, 3.95]) * 1e-6
    analysis = analyze(program((1.0, 2.0, 4.0, 8.0, 16.0), measured))
    assert left_out(analysis).startswith("without p=1")
    for p, value in zip((2, 4, 8, 16), measured[1:].tolist(), strict=True):
        there = evaluate(analysis, {"p": p, "n": 128}, "time").exclusive[1]
        assert there.value == pytest.approx(10.0 * value, rel=0.2)
    far = evaluate(analysis, {"p": 64, "n": 128}, "time").exclusive[1]
    assert 3.9e-5 < far.value < 8e-5
    assert far.upper < 2e-4


@pytest.mark.parametrize("name", ["MPI_Win_fence", "MPI_Comm_dup", "MPI_Sendrecv"])
def test_any_operation_may_need_several_processes(name: str) -> None:
    experiment = program((1.0, 2.0, 4.0, 8.0), 1e-6 * np.array([0.1, 3.0, 3.0, 3.0]))
    regions = (TREE.regions[0], Region(name, name, RegionKind.MPI), TREE.regions[2])
    analysis = analyze(replace(experiment, tree=CallTree(regions, np.arange(3), np.array([-1, 0, 0]))))
    assert left_out(analysis)
    assert evaluate(analysis, {"p": 64, "n": 128}, "time").exclusive[1].value == pytest.approx(3e-5, rel=0.05)


@pytest.mark.parametrize(
    ("processes", "barrier"),
    [
        ((1.0, 2.0, 4.0), [0.1, 3.0, 4.0]),
        ((1.0, 2.0, 4.0, 8.0), [2.0, 3.0, 4.0, 5.0]),
        ((2.0, 4.0, 8.0), [1.0, 3.0, 4.0]),
    ],
)
def test_all_times_count_where_few_are_left_or_none_is_local(
    processes: tuple[float, ...], barrier: list[float]
) -> None:
    assert not left_out(analyze(program(processes, 1e-6 * np.array(barrier))))


@pytest.mark.parametrize("seed", range(6))
def test_runs_that_take_longer_by_chance_are_none_of_another_formula(seed: int) -> None:
    """Half of the runs take up to 75 % longer, each of them once."""
    random = np.random.default_rng(seed)
    experiment = program((1.0, 2.0, 4.0, 8.0, 16.0), 1e-6 * np.array([2.0, 3.0, 4.0, 5.0, 6.0]))
    times = experiment.values["time"]
    times = times * (1 + 0.75 * random.uniform(size=times.shape) * (random.uniform(size=times.shape) < 0.5))
    assert not left_out(analyze(replace(experiment, values={**experiment.values, "time": times})))


def test_time_of_another_branch_for_one_process_is_left_out_like_its_effort() -> None:
    """Halos are filled without messages by one process: its blocks and its time say nothing of more processes."""
    processes = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    points = np.array(list(product(processes, (64.0, 128.0, 256.0))))
    part = np.where(points[:, 0] > 1, 1.0, 0.5)
    tree = CallTree((Region("main", "main"), Region("halo", "halo")), np.arange(2), np.array([-1, 0]))
    visits, blocks = np.ones((2, len(points))), np.stack([points[:, 1] ** 2, 8040 * part])
    values = {"visits": visits, "blocks": blocks, "time": np.stack([1e-8 * points[:, 1] ** 2, 1.1e-5 * part])}
    metrics = {name: METRICS[name] for name in values}
    measured = Experiment(
        "h", ("p", "n"), points, tree, metrics, {name: own[:, :, None] for name, own in values.items()}
    )
    analysis = analyze(measured)
    model = analysis.models("time")[1].model
    assert isinstance(model, Model) and "without p=1, where its effort follows another formula" in model.notes
    assert evaluate(analysis, {"p": 128, "n": 128}, "time").exclusive[1].value == pytest.approx(1.1e-5)
    assert diagnose(measured, analysis, {"p": 128, "n": 128}).findings == ()
