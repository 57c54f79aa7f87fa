# SPDX-License-Identifier: Apache-2.0
"""Which process grids a program may have, by its effort as a whole."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.domain import possible_grids
from quipu.modeling.experiment import CallTree, Experiment, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.options import NoModel
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
    """The messages of eight ranks distinguish a chain from a 4 × 2 grid."""
    grid = ProcessGrid("p", "balanced", dimensions)
    models = analyze(experiment(2, grid, (1, 2, 4, 8))).models("bytes_sent")
    found = models[2].model
    assert not isinstance(found, NoModel)
    x = grid.extents(np.array([16.0]))[0]
    assert found.predict([16, 48]).value == pytest.approx(64 * 48 * (x - 1).sum() / 16)


def test_stages_of_a_hypercube_are_no_grid() -> None:
    """A bitonic sort merges its share log2(p)·(log2(p)+1)/2 times, except on one rank, plus constant work."""
    points = np.array(list(product((1, 2, 4, 8, 16), (2048, 4096, 8192, 16384))), dtype=np.float64)
    p, n = points.T
    merges = np.log2(p) * (np.log2(p) + 1) / 2
    blocks = np.stack([8 * n / p + np.where(p > 1, 58 + 3 / p, 57), 13 * n / p * merges, 8 * merges])
    visits = np.stack([np.ones_like(p), merges, merges])
    tree = CallTree(tuple(Region(name, name) for name in NAMES), np.arange(3), np.array([-1, 0, 0]))
    values = {"blocks": blocks[:, :, None], "instructions": 3 * blocks[:, :, None], "visits": visits[:, :, None]}
    metrics = {name: METRICS[name] for name in values}
    analysis = analyze(Experiment("sort", ("p", "n"), points, tree, metrics, values, grids=assumed("p")))
    for name, path, truth in (("blocks", 1, 13 * 65536 / 64 * 21), ("blocks", 2, 168), ("visits", 2, 21)):
        model = analysis.models(name)[path].model
        assert not isinstance(model, NoModel)
        assert model.predict([64, 65536]).value == pytest.approx(truth)


def test_what_depends_on_data_says_nothing_of_the_domain() -> None:
    """A cubic fits any counts at four sizes: with it, cells n²/p are no faces n²/(px·py) of a volume."""
    sizes, processes = (60, 120, 180, 240), (1, 2, 4, 6)
    points = np.array(list(product(processes, sizes)), dtype=np.float64)
    p, n = points.T
    grids = tuple(replace(grid, source="of messages") for grid in assumed("p") if grid.dimensions > 1)
    random = np.random.default_rng(5)
    steps = np.array([random.integers(2000, 9000) * size for size in sizes for _ in range(6)]).reshape(len(sizes), 6)
    places = np.array([sizes.index(int(size)) for size in n])
    blocks = np.stack(
        [
            np.full(n.size, 12.0),
            6 * n**2 / p,
            2 * n / grids[0].extents(p)[:, 1],
            *(steps[places, i] / p for i in range(6)),
        ]
    )
    tree = CallTree(
        tuple(Region(name, name) for name in ("main", "cells", "rows", *(f"search{i}" for i in range(6)))),
        np.arange(9),
        np.array([-1, *[0] * 8]),
    )
    values = dict.fromkeys(("blocks", "visits", "instructions"), blocks[:, :, None])
    metrics = {name: METRICS[name] for name in values}
    models = analyze(Experiment("made", ("p", "n"), points, tree, metrics, values, grids=grids)).models("blocks")
    found = models[1].model
    assert not isinstance(found, NoModel)
    assert found.predict([8, 360]).value == pytest.approx(6 * 360**2 / 8)
