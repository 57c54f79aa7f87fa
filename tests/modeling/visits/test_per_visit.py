"""Counts that depend on data at each visit, of which an exact function of a process grid says how many there are."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, Options
from quipu.modeling.process_grid import ProcessGrid, extents

GRID = ProcessGrid("p", "balanced", 2, "of MPI_Cart_create", (False, False))
POINTS = np.array([(p, n) for p in (1.0, 2, 4, 8, 16, 32) for n in (60.0, 100, 130, 200)])


def blocks_around(scatter: float) -> Experiment:
    """Return a program that takes a block of each column of the grid, and finds 6 % of n² pairs in each of them."""
    p, n = POINTS.T
    columns: FloatArray = np.array([extents("balanced", ranks, 2)[1] for ranks in p], dtype=np.float64)
    found = np.round(0.0625 * n**2 * (1 + scatter * np.random.default_rng(3).standard_normal(len(p)))) * columns
    each = np.round(0.3 * n * (1 + scatter * np.random.default_rng(4).standard_normal(len(p))))
    once = np.ones_like(p)
    tree = CallTree(tuple(Region(name, name) for name in ("main", "block", "pair")), np.arange(3), np.array([-1, 0, 1]))
    values = {
        "visits": np.stack([once, columns, found])[:, :, None],
        "blocks": np.stack([once, (3 * n + 2) * columns, found * each])[:, :, None],
    }
    metrics = {name: METRICS[name] for name in values}
    return Experiment("blocks", ("p", "n"), POINTS, tree, metrics, values, grids=(GRID,))


def test_random_counts_are_those_of_each_visit_times_exact_visits() -> None:
    experiment = blocks_around(0.05)
    found = fit_metrics(experiment, experiment.metrics, Options(grids=experiment.grids))
    expected = {"visits": 0.0625 * 200.0**2 * 16, "blocks": 0.0625 * 200.0**2 * 16 * 0.3 * 200.0}
    for name, value in expected.items():
        model = found[name][2]
        assert isinstance(model, Model)
        assert model.at(p=512.0, n=200.0) == pytest.approx(value, rel=0.06), str(model)
        prediction = model.predict((512.0, 200.0))
        assert prediction.lower < value < prediction.upper


def test_exact_counts_stay_exact() -> None:
    experiment = blocks_around(0.0)
    (model,) = fit_metrics(experiment, experiment.metrics, Options(grids=experiment.grids))["blocks"][1:2]
    assert str(model) == "3·n·py + 2·py"
