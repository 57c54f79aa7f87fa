# SPDX-License-Identifier: Apache-2.0
"""Noise and changes of behaviour of an experiment."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.behaviour import _is_open, _with_both_grids, behaviour, noise_levels
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf import find_changes
from quipu.modeling.pmnf.changes.ranges import Change
from quipu.modeling.pmnf.model import Factor, Model, Term
from quipu.modeling.process_grid import ProcessGrid
from quipu.report.behaviour import unrepeated

P = np.asarray(2.0 ** np.arange(1, 9), np.float64)


def _experiment() -> Experiment:
    """main is constant, solve noisy, and exchange switches its algorithm at 32."""
    random = np.random.default_rng(3)
    exact = np.stack([np.full(8, 10.0), np.full(8, 5.0), np.where(P <= 32, 3 + np.log2(P), 0.4 * P)])
    noise = np.array([0.01, 0.9, 0.02])[:, None, None]
    time = exact[:, :, None] * (1 + noise * random.uniform(-1, 1, (3, 8, 5)))
    regions = tuple(Region(name, name) for name in ("main", "solve", "exchange"))
    tree = CallTree(regions, np.array([0, 1, 2]), np.array([-1, 0, 0]))
    metrics = {"time": Metric("time", "s", "cost"), "blocks": Metric("blocks", "1", "effort")}
    blocks = np.repeat(np.stack([P, P**2, 7 * P])[:, :, None], 5, axis=2)
    return Experiment("x", ("p",), P[:, None], tree, metrics, {"time": time, "blocks": blocks})


def test_what_an_experiment_shows() -> None:
    experiment = _experiment()
    found = behaviour(experiment, analyze(experiment))
    main, solve, exchange = found["time"]
    assert main.change is None and not main.warning
    assert solve.change is None and "cannot support" in solve.warning
    change = exchange.change
    assert change is not None and (change.last, change.first) == (32, 64)
    assert change.model_at({"p": 40.0}) == change.below and change.model_at({"p": 64.0}) == change.above
    assert main.deviation is not None and main.deviation.range == pytest.approx(0.014, abs=0.006)
    assert all(own.change is None and own.deviation is None for own in found["blocks"])
    assert set(behaviour(experiment, analyze(experiment), ["blocks"])) == {"blocks"}


def test_a_single_repetition_is_no_noise() -> None:
    whole = _experiment()
    values = {name: own[:, :, :1] for name, own in whole.values.items()}
    single = Experiment("x", ("p",), P[:, None], whole.tree, whole.metrics, values)
    found = behaviour(single, analyze(single))
    assert not any(own.warning or own.is_repeated for own in found["time"])
    assert noise_levels(single, "time") == []
    assert unrepeated(found) == ["no repetitions: the noise of time is unknown"]
    assert unrepeated(behaviour(whole, analyze(whole))) == []


def test_noise_levels_of_a_program() -> None:
    experiment = _experiment()
    levels = noise_levels(experiment, "time")
    assert len(levels) == 24 and max(levels) > 0.5 and min(levels) < 0.02
    values = experiment.values["time"].copy()
    values[2] *= 1e-4  # below 1 % of the total
    values[:, 0, 1:] = np.nan  # no repetitions
    less = Experiment("x", ("p",), P[:, None], experiment.tree, experiment.metrics, {"time": values})
    assert len(noise_levels(less, "time")) == 14


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_a_sum_of_two_functions_is_no_change(noise: float) -> None:
    random = np.random.default_rng(4)
    shares = random.uniform(1, 1000, (100, 3, 1))
    exact: FloatArray = shares[:, 0] + shares[:, 1] * P[None] ** 0.5 + shares[:, 2] * P[None] ** 1.5 / 8
    values = exact[..., None] * (1 + noise * random.standard_normal((100, 8, 5)))
    found = find_changes(P[:, None], values, Metric("time", "s", "cost"), ("p",))
    assert np.mean([change is None for change in found]) >= 0.92


RANKS = np.array([1.0, 2, 4, 8, 16, 32, 64, 128])
GRID = ProcessGrid("p", "balanced", 2, "MPI_Cart_create")


def _in_grid(time: FloatArray, blocks: FloatArray, grids: tuple[ProcessGrid, ...] = (GRID,)) -> Experiment:
    """A function with this time and these blocks, (C,), in a noise-free simulation."""
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    metrics = {"time": Metric("time", "s", "cost"), "blocks": Metric("blocks", "1", "effort")}
    values = {"time": time[None, :, None], "blocks": blocks[None, :, None]}
    return Experiment("x", ("p",), RANKS[:, None], tree, metrics, values, grids=grids)


def test_what_the_extents_of_the_process_grid_explain_is_no_change() -> None:
    """Neighbours below and above 2 × 2 × 2 ranks: two models in p fit them."""
    cube = replace(GRID, dimensions=3)
    counts = 240.0 * (cube.extents(RANKS) > 1).sum(axis=1) + 3.0
    experiment = _in_grid(1e-6 * counts * (1 + 1e-4 * np.cos(RANKS)), counts, (cube,))
    times = experiment.values["time"]
    assert find_changes(experiment.points, times, experiment.metrics["time"], ("p",)) != [None]
    assert behaviour(experiment, analyze(experiment))["time"][0].change is None


def test_a_change_says_that_the_process_grid_has_another_form_there() -> None:
    change = Change("p", 4.0, 8.0, Model(("p",), 1.0), Model(("p",), 2.0), 50.0)
    alike = replace(change, last=4.0, first=16.0)
    shown = str(_with_both_grids(change, Model(("p",), 1.0), (GRID,)))
    assert shown.endswith("1 below, 2 above (the process grid: 2 × 2, then 4 × 2)")
    assert _with_both_grids(alike, Model(("p",), 1.0), (GRID,)) == alike  # 2 × 2, then 4 × 4
    assert _with_both_grids(change, Model(("p",), 1.0), (replace(GRID, source=""),)) == change
    extent = Term(1.0, (Factor("p", Fraction(-1), axis=GRID.axes[0]),))
    assert _with_both_grids(change, Model(("p",), 1.0, (extent,)), (GRID,)) is None


def test_values_below_the_range_of_an_exact_model_are_no_change() -> None:
    """The note of the model says that they follow another formula."""
    time = np.where(RANKS < 4, 9e-6, 2e-6 * RANKS)
    experiment = _in_grid(time, np.full(RANKS.size, 10.0), ())
    (entry,) = analyze(experiment).models("time")
    assert isinstance(entry.model, Model)
    exact = Model(("p",), 0.0, (Term(2e-6, (Factor("p", Fraction(1)),)),), ranges=((4.0, 128.0),))
    quality = replace(entry.model.quality, points=6, rms_relative=0.0) if entry.model.quality else None
    assert _is_open(replace(exact, ranges=((1.0, 128.0),), quality=quality), experiment.points, 1e-3)
    assert not _is_open(replace(exact, quality=quality), experiment.points, 1e-3)
