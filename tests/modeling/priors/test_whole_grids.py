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
@pytest.mark.parametrize("latencies", [(0.0, 1.0, 2.0, 3.0), (0.0, 0.2, 2.1, 3.0)])
def test_directions_without_a_neighbour_have_no_latency(latencies: tuple[float, ...], seed: int, noise: float) -> None:
    directions = (GRID.extents(P) > 1).sum(axis=1)
    analysis = analyze(exchanges(2e-5 + LATENCY * np.array(latencies)[directions], seed, noise))
    (note,) = (note for note in model_of(analysis).notes if note.startswith("without"))
    assert note == "without p=1, p=2, p=4, where its time follows another formula"
    assert predicted(analysis, 1024) == pytest.approx(2e-5 + 3 * LATENCY, rel=0.05)


def test_times_that_one_formula_explains_are_all_used() -> None:
    shares = ((GRID.extents(P) - 1) / GRID.extents(P)).sum(axis=1)
    analysis = analyze(exchanges(1e-5 + 1e-8 * 2304 * shares, 3, 0.02))
    assert not any(note.startswith("without") for note in model_of(analysis).notes)
    far = ((GRID.extents(np.array([1024.0])) - 1) / GRID.extents(np.array([1024.0]))).sum()
    assert predicted(analysis, 1024) == pytest.approx(1e-5 + 1e-8 * 2304 * far, rel=0.1)


def test_grids_need_not_be_known() -> None:
    directions = (GRID.extents(P) > 1).sum(axis=1)
    analysis = analyze(exchanges(2e-5 + LATENCY * directions, grid=ProcessGrid("p", "balanced", 3)))
    assert predicted(analysis, 1024) == pytest.approx(2e-5 + 3 * LATENCY, rel=0.05)


def test_runs_with_a_processor_for_each_rank_are_not_left_out_for_others() -> None:
    """Where all whole grids are oversubscribed their times contain waiting for a processor."""
    directions = (GRID.extents(P) > 1).sum(axis=1)
    experiment = replace(exchanges(2e-5 + LATENCY * directions), oversubscribed=P > 4)
    assert not any(note.startswith("without") for note in model_of(analyze(experiment)).notes)
