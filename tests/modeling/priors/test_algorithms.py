# SPDX-License-Identifier: Apache-2.0
"""Times of MPI that follow one row of Table I in a part of the measured range go on like that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.experiment import Experiment, FloatArray, Metric
from quipu.modeling.pmnf.model import Model

from ..waiting_program import calling

P = np.array([1.0, 2, 4, 8, 16, 32, 64])
TREE = calling("MPI_Allgather")
PER_RANK = 4.037e-6


def simulated(time: FloatArray, waiting: FloatArray | float = 0.0) -> Experiment:
    """Return a program that gathers 48 bytes of each rank, with simulated times that have no noise."""
    ones, nothing = np.ones_like(P), np.zeros_like(P)
    values = {
        "visits": np.stack([ones, 6 * ones]),
        "blocks": np.stack([100 * ones, nothing]),
        "bytes_sent": np.stack([nothing, 48 * P]),
        "bytes_received": np.stack([nothing, 48 * P]),
        "comm_size": np.stack([nothing, P]),
        "time": np.stack([1e-4 * ones, time]),
        "wait_time": np.stack([nothing, waiting * ones]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values}
    metrics |= {name: Metric(name, "s", "cost") for name in ("time", "wait_time")}
    repeated = {name: own[:, :, None] for name, own in values.items()}
    return Experiment("gather", ("p",), P[:, None], TREE, metrics, repeated, exact_times=True)


def model_of(analysis: Analysis) -> Model:
    model = analysis.models("time")[1].model
    assert isinstance(model, Model)
    return model


def test_few_ranks_that_take_the_time_of_the_processor_are_left_out() -> None:
    time = np.maximum(12.077e-6, PER_RANK * (P - 1))
    model = model_of(analyze(simulated(time)))
    assert "without p=1, p=2, where its time follows another formula" in model.notes
    assert model.predict([1024.0]).value == pytest.approx(PER_RANK * 1023, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_times_with_noise_are_left_out_if_they_are_far_from_the_others(seed: int) -> None:
    noise = 1 + 0.02 * np.random.default_rng(seed).normal(size=len(P))
    time = np.maximum(12.077e-6, PER_RANK * (P - 1)) * noise
    model = model_of(analyze(replace(simulated(time), exact_times=False)))
    assert any("without p=1, p=2" in note for note in model.notes)
    assert model.predict([1024.0]).value == pytest.approx(PER_RANK * 1023, rel=0.05)


def test_short_waiting_does_not_hide_the_algorithm() -> None:
    waiting = np.array([0.0, 0.6, 0.9, 3.8, 5.6, 4.8, 7.7]) * 1e-6
    found = analyze(simulated(PER_RANK * (P - 1) + waiting + 1e-12, waiting))
    assert model_of(found).predict([1024.0]).value == pytest.approx(PER_RANK * 1023 + 1e-5, rel=0.02)


def test_what_follows_no_row_rests_on_all_ranks() -> None:
    time = PER_RANK * P * (1 + 0.05 * np.array([1, -1, 1, 1, -1, 1, -1]))
    assert not any("another formula" in note for note in model_of(analyze(simulated(time))).notes)
