# SPDX-License-Identifier: Apache-2.0
"""Times of messages on process grids with an extent of 1 follow another formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.experiment import Experiment, FloatArray, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.process_grid import ProcessGrid

from ..waiting_program import calling

GRID = ProcessGrid("p", "balanced", 3, "MPI_Cart_create")
P = np.array([1.0, 2, 4, 8, 16, 32, 64])
TREE = calling("MPI_Sendrecv")
LATENCY = 6e-5


def exchanges(time: FloatArray, seed: int = 0, noise: float = 0.0, grid: ProcessGrid = GRID) -> Experiment:
    """Return a program that exchanges faces with its neighbours, one direction after the other."""
    shares = ((GRID.extents(P) - 1) / GRID.extents(P)).sum(axis=1)
    ones, nothing = np.ones_like(P), np.zeros_like(P)
    factors = 1 + noise * np.random.default_rng(seed).normal(size=(2, len(P), 5))
    values = {
        "visits": np.stack([ones, 3 * ones]),
        "blocks": np.stack([100 * ones, nothing]),
        "bytes_received": np.stack([nothing, 2 * 1152 * shares]),
        "comm_size": np.stack([nothing, P]),
        "time": np.stack([1e-4 * ones, time]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    repeated = {
        name: own[:, :, None] * (factors if name == "time" else np.ones_like(factors)) for name, own in values.items()
    }
    return Experiment("halo", ("p",), P[:, None], TREE, metrics, repeated, grids=(grid,))


def model_of(analysis: Analysis) -> Model:
    model = analysis.models("time")[1].model
    assert isinstance(model, Model)
    return model


def predicted(analysis: Analysis, p: float) -> float:
    return model_of(analysis).predict([p]).value


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.0), (1, 0.02), (2, 0.02)])
def test_directions_without_a_neighbour_have_no_latency(seed: int, noise: float) -> None:
    directions = (GRID.extents(P) > 1).sum(axis=1)
    analysis = analyze(exchanges(2e-5 + LATENCY * directions, seed, noise))
    assert not any(note.startswith("without") for note in model_of(analysis).notes)
    assert predicted(analysis, 1024) == pytest.approx(2e-5 + 3 * LATENCY, rel=0.05)


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.0), (1, 0.02), (2, 0.02)])
def test_grids_without_an_extent_of_1_are_left_where_the_others_follow_nothing(seed: int, noise: float) -> None:
    directions = (GRID.extents(P) > 1).sum(axis=1)
    analysis = analyze(exchanges(2e-5 + LATENCY * np.array([0.0, 0.2, 2.1, 3.0])[directions], seed, noise))
    (note,) = (note for note in model_of(analysis).notes if note.startswith("without"))
    assert note == "without p=1, p=2, p=4, where the process grid has an extent of 1"
    assert predicted(analysis, 1024) == pytest.approx(2e-5 + 3 * LATENCY, rel=0.05)


def test_times_that_one_formula_explains_are_all_used() -> None:
    shares = ((GRID.extents(P) - 1) / GRID.extents(P)).sum(axis=1)
    analysis = analyze(exchanges(1e-5 + 1e-8 * 2304 * shares, 3, 0.02))
    assert not any(note.startswith("without") for note in model_of(analysis).notes)
    far = ((GRID.extents(np.array([1024.0])) - 1) / GRID.extents(np.array([1024.0]))).sum()
    assert predicted(analysis, 1024) == pytest.approx(1e-5 + 1e-8 * 2304 * far, rel=0.1)


def test_grids_that_are_only_assumed_leave_one_process_out() -> None:
    directions = (GRID.extents(P) > 1).sum(axis=1)
    analysis = analyze(exchanges(2e-5 + LATENCY * directions, grid=ProcessGrid("p", "balanced", 3)))
    (note,) = (note for note in model_of(analysis).notes if note.startswith("without"))
    assert note == "without p=1, where nobody else takes part"


@pytest.mark.parametrize("seed", range(3))
def test_few_runs_tell_what_neighbours_take_from_what_messages_of_a_rank_to_itself_take(seed: int) -> None:
    """In a periodic grid of 2 x 2 x 1 ranks, a third of the messages are copies; too few runs are at whole grids."""
    points = np.array([(4.0, n) for n in (8.0, 12, 16, 20, 24)] + [(8, 8), (16, 8), (32, 8)])
    p, n = points.T
    around = (GRID.extents(p) > 1).sum(axis=1)
    ones, nothing = np.ones_like(p), np.zeros_like(p)
    time = 3e-5 + 2e-5 * around + 1e-8 * n**2
    values = {
        "visits": np.stack([ones, 20 * ones]),
        "blocks": np.stack([100 * ones, nothing]),
        "bytes_received": np.stack([nothing, 960 * n**2]),
        "comm_size": np.stack([nothing, p]),
        "time": np.stack([1e-4 * ones, time * (1 + 0.02 * np.random.default_rng(seed).normal(size=len(p)))]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    stacked = {name: own[:, :, None] for name, own in values.items()}
    grid = replace(GRID, periodic=(True, True, True))
    runs = Experiment("torus", ("p", "n"), points, TREE, metrics, stacked, grids=(grid,))
    found = model_of(analyze(runs)).predict([512.0, 24.0]).value
    assert found == pytest.approx(3e-5 + 2e-5 * 3 + 1e-8 * 24**2, rel=0.06)


def test_runs_with_a_processor_for_each_rank_are_not_left_out_for_others() -> None:
    """Where all whole grids are oversubscribed their times contain waiting for a processor."""
    directions = (GRID.extents(P) > 1).sum(axis=1)
    experiment = replace(exchanges(2e-5 + LATENCY * directions), oversubscribed=P > 4)
    assert not any(note.startswith("without") for note in model_of(analyze(experiment)).notes)


def test_messages_along_one_dimension_take_no_time_where_it_is_not_divided() -> None:
    """Columns of an open grid px × py: ranks with py = 1 wait for nobody, others for ranks with two neighbours."""
    grid = ProcessGrid("p", "balanced", 2, "MPI_Cart_create", periodic=(False, False))
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (32.0, 64, 96, 128)])
    p, n = points.T
    px, py = grid.extents(p).T
    ones, nothing = np.ones_like(p), np.zeros_like(p)
    share = (py - 1) / py

    def time(n: FloatArray, px: FloatArray, py: FloatArray) -> FloatArray:
        several: FloatArray = 1e-6 + 7e-5 * (py > 1) + (py - 1) / py * (2e-5 + 7e-9 * n / px)
        return several

    values = {
        "visits": np.stack([ones, 40 * ones]),
        "blocks": np.stack([100 * ones, nothing]),
        "bytes_received": np.stack([nothing, 40 * (n / px + 2) * share]),
        "comm_size": np.stack([nothing, p]),
        "time": np.stack([1e-4 * ones, time(n, px, py)]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    repeated = {name: own[:, :, None] for name, own in values.items()}
    model = model_of(analyze(Experiment("halo", ("p", "n"), points, TREE, metrics, repeated, grids=(grid,))))
    far = time(np.array([512.0]), np.array([16.0]), np.array([8.0]))
    assert model.at(p=128, n=512) == pytest.approx(far[0], rel=0.01)
