# SPDX-License-Identifier: Apache-2.0
"""Waiting in pipelines through process grids: waves from all corners are recovered and extrapolated."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import Experiment, FloatArray, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.priors.pipelines import Growth, distinct_growths, waiting_growths
from quipu.modeling.process_grid import ProcessGrid, extents

from ..waiting_program import TREE

RANKS = (2.0, 4, 8, 16, 32, 64)
POINTS = np.array([(p, n) for p in RANKS for n in (100.0, 200, 300, 400, 500)])


def waves(shape: tuple[int, ...], innermost_first: bool) -> FloatArray:
    """Return after how many stages each rank is done when waves have passed from all corners, one after the other.

    innermost_first: the direction of the first dimension changes after each wave, else that of the last one.
    """
    done = np.zeros(shape)
    for turn in product((1, -1), repeat=len(shape)):
        view = done[tuple(slice(None, None, step) for step in (turn[::-1] if innermost_first else turn))]
        for place in np.ndindex(view.shape):
            upwind = [
                view[(*place[:axis], place[axis] - 1, *place[axis + 1 :])] for axis in range(len(shape)) if place[axis]
            ]
            view[place] = max(view[place], *upwind, 0.0) + 1.0
    return done


def stages(p: float, dimensions: int, innermost_first: bool) -> float:
    """Return for how many stages a rank waits on average."""
    shape = tuple(map(int, extents("balanced", p, dimensions)))
    return float(waves(shape, innermost_first).mean()) - 2.0**dimensions


def sweeping(
    dimensions: int, innermost_first: bool, seed: int, points: FloatArray = POINTS, work_of_stages: bool = False
) -> Experiment:
    """Return a program whose ranks wait in each wave for computation and a message of 8 n bytes per step.

    work_of_stages: a rank computes nothing besides its own stage of each wave.
    """
    p, n = points.T
    work, receive = 3e-9 * n**2, 1e-5 + 8e-9 * n
    steps = np.array([stages(ranks, dimensions, innermost_first) for ranks in p])
    wait = steps * _stage(n)
    visits = 1.0
    if work_of_stages:
        work, visits = 2**dimensions * 0.1 * work, 2.0**dimensions
    ones, nothing = np.ones_like(p), np.zeros_like(p)
    values: dict[str, FloatArray] = {
        "visits": np.stack([ones, visits * ones, 10 * ones]),
        "blocks": np.stack([ones, 3 * n**2, nothing]),
        "bytes_received": np.stack([nothing, nothing, 80 * n]),
        "comm_size": np.stack([nothing, nothing, p]),
        "time": np.stack([1e-6 * ones, work, receive + wait]),
        "wait_time": np.stack([nothing, nothing, wait]),
    }
    metrics = {
        name: Metric(name, "s" if "time" in name else "1", "cost" if "time" in name else "effort") for name in values
    }
    noise = 1 + 0.02 * np.random.default_rng(seed).normal(size=(3, len(p)))
    for name in ("time", "wait_time"):
        values[name] = values[name] * noise
    grid = ProcessGrid("p", "balanced", dimensions, "MPI_Cart_create")
    stacked = {name: own[:, :, None] for name, own in values.items()}
    return Experiment("waves", ("p", "n"), points, TREE, metrics, stacked, grids=(grid,))


def _stage(n: FloatArray | float) -> FloatArray | float:
    return 0.1 * 3e-9 * n**2 + 2e-6 + 1e-9 * n


def test_the_last_rank_has_waited_for_the_steps_of_each_dimension() -> None:
    """A dimension with n ranks has 8·(n - 1) steps if it is the first, 4·(n - 1) and 2·(n - 1) if it follows."""
    for shape, steps in (((16, 8, 8), 162), ((4, 2, 1), 28), ((3, 5), 16), ((7,), 12)):
        turns = 2 ** len(shape)
        assert waves(shape, True).max() == turns + steps
        assert waves(shape[::-1], False).max() == turns + steps


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("innermost_first", [True, False])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_waves_from_all_corners_are_predicted_far_out(dimensions: int, innermost_first: bool, seed: int) -> None:
    model = analyze(sweeping(dimensions, innermost_first, seed)).models("time")[2].model
    assert isinstance(model, Model)
    for p in (512.0, 1024.0):  # 8 x 8 x 8, 16 x 8 x 8; 32 x 16, 32 x 32
        truth = 1e-5 + 8e-9 * 400 + stages(p, dimensions, innermost_first) * _stage(400.0)
        assert float(model.evaluate([[p, 400.0]])[0]) == pytest.approx(truth, rel=0.06)


def noisy(runs: Experiment, noise: float, seed: int) -> Experiment:
    """Return runs with noise in the waiting for messages, of this standard deviation, relative."""
    values = {name: own.copy() for name, own in runs.values.items()}
    extra = noise * np.random.default_rng(seed).normal(size=runs.configurations) * values["wait_time"][2, :, 0]
    for name in ("time", "wait_time"):
        values[name][2, :, 0] += extra
    return replace(runs, values=values)


def test_other_ways_of_waiting_that_are_as_likely_are_doubts() -> None:
    """With much noise, few runs do not determine how waiting grows with the ranks."""
    few = np.array([(p, 100.0) for p in (2.0, 4, 8, 16, 32)])
    doubted, widths = [], []
    for seed in range(8):
        model = analyze(noisy(sweeping(2, True, seed, few), 0.15, seed)).models("time")[2].model
        assert isinstance(model, Model)
        doubted.append(sum(other.weight for other in model.alternatives))
        found = model.predict((1024.0, 100.0))
        widths.append(found.upper / found.lower)
    assert np.count_nonzero(doubted) >= 6
    assert max(doubted) < 1.0
    assert np.median(widths) > 2.0


@pytest.mark.parametrize("seed", range(4))
def test_the_computation_of_a_stage_is_known_from_the_rank_itself(seed: int) -> None:
    """Few noisy runs hardly determine three coefficients; the one of computation is known."""
    few = np.array([(8.0, 100), (8, 150), (8, 200), (8, 300), (27, 100), (27, 150), (64, 100), (125, 100)])
    model = analyze(sweeping(3, True, seed, few, work_of_stages=True)).models("time")[2].model
    assert isinstance(model, Model)
    truth = 1e-5 + 8e-9 * 900 + stages(343.0, 3, True) * _stage(900.0)
    assert float(model.evaluate([[343.0, 900.0]])[0]) == pytest.approx(truth, rel=0.05)


def test_waiting_that_does_not_grow_along_the_process_grid_of_a_program_must_explain_much_more() -> None:
    """For cubes of 8 to 216 ranks, log2(p)² nearly equals the number of steps; single runs do not distinguish them."""
    cubes = np.array([(8.0, 100), (8, 200), (8, 300), (8, 400), (27, 100), (27, 200), (64, 100), (125, 100)])
    for seed in range(12):
        model = analyze(noisy(sweeping(3, True, seed, cubes), 0.03, seed)).models("time")[2].model
        assert "log2(p)" not in str(model)


def waits(shape: tuple[int, ...], sets: int, stage: float, message: float) -> float:
    """Return how long a rank waits on average in so many sets of waves from all corners, step by step.

    A stage takes its time and that of a message to each neighbour that the wave goes on to.
    """
    done, busy = np.zeros(shape), np.zeros(shape)
    for turn in [turn for _ in range(sets) for turn in product((1, -1), repeat=len(shape))]:
        ways = tuple(slice(None, None, step) for step in turn[::-1])
        finished, worked = done[ways], busy[ways]
        for place in np.ndindex(finished.shape):
            before = [(*place[:axis], at - 1, *place[axis + 1 :]) for axis, at in enumerate(place) if at]
            own = stage + message * sum(at + 1 < extent for at, extent in zip(place, finished.shape, strict=True))
            finished[place] = max(finished[place], *(finished[other] for other in before), 0.0) + own
            worked[place] += own
    return float((done - busy).mean())


@pytest.mark.parametrize("p", [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
def test_messages_on_the_way_of_waves_are_those_of_all_dimensions(p: float) -> None:
    grid = ProcessGrid("p", "balanced", 3, "MPI_Cart_create")
    growth = next(own for own in waiting_growths(["p"], [grid]) if str(own) == "pz + 2·py + 4·px - 7")
    assert growth.messages is not None
    shape, message = tuple(map(int, extents("balanced", p, 3))), 1e-3
    found = [waits(shape, 3, 1.0, own) - waits(shape, 2, 1.0, own) for own in (0.0, message)]
    expected = 2.0 * float(growth.messages.evaluate(np.array([[p]]))[0])
    # but for two of them where a wave begins
    assert (found[1] - found[0]) / message == pytest.approx(expected, abs=2.01)


def test_growths_that_measurements_cannot_tell_apart_are_one() -> None:
    grid = ProcessGrid("p", "balanced", 3, "MPI_Cart_create")
    growths = waiting_growths(["p"], [grid])
    cubes = np.array([[8.0], [27], [64], [125]])
    assert [str(own) for own in growths[:3]] == ["pz + py + px - 3", "pz + 2·py + 4·px - 7", "4·pz + 2·py + px - 7"]
    assert [str(own) for own in distinct_growths(growths, ("p",), cubes)] == [str(growths[0]), *map(str, growths[3:])]
    assert distinct_growths(growths, ("p",), np.array(RANKS)[:, None]) == growths
    constant = Growth(Model((), 1.0))
    assert distinct_growths([constant, constant], ("p",), cubes) == [constant]
