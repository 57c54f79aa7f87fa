"""Which process grids a program may have, by its effort as a whole."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.domain import possible_grids
from quipu.modeling.experiment import CallTree, Experiment, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.modeler import NoModel
from quipu.modeling.process_grid import ProcessGrid, assumed

NAMES = ("main", "cells", "exchange")


def experiment(power: int, grid: ProcessGrid, processes: tuple[int, ...] = (1, 2, 4)) -> Experiment:
    """Return a program on a domain of n^power cells: `cells` goes over all, `exchange` over the faces of a rank."""
    points = np.array(list(product(processes, (8, 12, 16, 24))), dtype=np.float64)
    extents, n = grid.extents(points[:, 0]), points[:, 1]
    faces = (n ** (power - 1))[:, None] * (extents - 1) / points[:, :1]
    blocks = np.stack([np.full(n.size, 12.0), 7 * n**power / points[:, 0], 4 * faces.sum(axis=1)])
    tree = CallTree(tuple(Region(name, name) for name in NAMES), np.arange(3), np.array([-1, 0, 0]))
    values = {"blocks": blocks[:, :, None], "bytes_sent": 16 * blocks[:, :, None] * np.array([0, 0, 1])[:, None, None]}
    metrics = {name: METRICS[name] for name in values}
    return Experiment("made", ("p", "n"), points, tree, metrics, values, grids=assumed("p"))


def test_a_plane_is_not_divided_in_three() -> None:
    found = possible_grids(experiment(2, ProcessGrid("p", "balanced", 2)), Library())
    assert {grid.dimensions for grid in found} == {1, 2}
    assert found[0].dimensions == 2


def test_a_volume_may_be() -> None:
    found = possible_grids(experiment(3, ProcessGrid("p", "balanced", 3)), Library())
    assert {grid.dimensions for grid in found} == {1, 2, 3}


def test_a_grid_that_is_known_stays() -> None:
    grid = (ProcessGrid("p", "balanced", 3, "declared"),)
    one = experiment(2, grid[0])
    assert possible_grids(Experiment(**{**one.__dict__, "grids": grid}), Library()) == grid


@pytest.mark.parametrize("dimensions", [1, 2])
def test_all_counts_of_a_program_follow_one_grid(dimensions: int) -> None:
    """Eight ranks in a chain, or in 4 x 2, are told apart by what they exchange."""
    grid = ProcessGrid("p", "balanced", dimensions)
    models = analyze(experiment(2, grid, (1, 2, 4, 8))).models("bytes_sent")
    found = models[2].model
    assert not isinstance(found, NoModel)
    x = grid.extents(np.array([16.0]))[0]
    assert found.predict([16, 48]).value == pytest.approx(64 * 48 * (x - 1).sum() / 16)
