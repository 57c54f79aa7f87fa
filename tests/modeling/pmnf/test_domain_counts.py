# SPDX-License-Identifier: Apache-2.0
"""Counts that depend on data, of programs that decompose a domain: so much for each cell, ghost, edge and part."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.grids.terms import has_extents
from quipu.modeling.process_grid import ProcessGrid

from ..one_count import predicted

BLOCKS = Metric("blocks", "1", "effort")
GRID = ProcessGrid("p", "balanced", 3, "MPI_Cart_create", (True, True, True))
PROCESSES, SIZES = (1.0, 2.0, 4.0, 8.0, 16.0), (8.0, 12.0, 16.0, 20.0)
FAR = (64.0, 40.0)


def _of_particles(points: FloatArray, wave: float = 0.001) -> FloatArray:
    """Return what particles in the cells of a part and in a layer of ghosts around it do, (C,)."""
    n, x = points[:, 1], GRID.extents(points[:, 0]).T
    cells, faces = n**3 / x.prod(axis=0), n**2 * (1 / (x[0] * x[1]) + 1 / (x[1] * x[2]) + 1 / (x[2] * x[0]))
    data = 1.0 + wave * np.sin(7.0 * n + 3.0 * points[:, 0])
    return np.asarray(np.round((33.0 * cells + 110.0 * faces + 400.0) * data))


def _points() -> FloatArray:
    return np.array(list(product(PROCESSES, SIZES)))


def _model(counts: FloatArray, points: FloatArray, grids: tuple[ProcessGrid, ...] = (GRID,)) -> Model:
    model = fit_models(points, counts[None, :, None], BLOCKS, ("p", "n"), Options(grids=grids))[0]
    assert isinstance(model, Model)
    return model


def test_particles_of_a_part_and_of_its_ghosts() -> None:
    points = _points()
    true = float(_of_particles(np.array([FAR]), 0.0)[0])
    found = predicted(points, _of_particles(points), ("p", "n"), FAR, (GRID,))
    assert found.value == pytest.approx(true, rel=0.02)
    assert found.lower < true < found.upper
    assert found.upper < 1.3 * true


def test_parts_of_a_given_size() -> None:
    points = _points()
    n, x = points[:, 1], GRID.extents(points[:, 0]).T
    ends = (x > 1).sum(axis=0)
    counts = np.round((12.0 * n**3 + 90.0 * n**2 * ends + 70.0) * (1.0 + 0.001 * np.sin(5.0 * n + points[:, 0])))
    found = predicted(points, counts, ("p", "n"), (64.0, 20.0), (GRID,))
    assert found.value == pytest.approx(12.0 * 20.0**3 + 270.0 * 20.0**2 + 70.0, rel=0.02)


def test_one_process_is_no_exception_where_domains_explain_it() -> None:
    # messages to itself: p = 1 has no neighbours, and other models leave it out
    points = _points()
    n, x = points[:, 1], GRID.extents(points[:, 0]).T
    share = n**2 * np.stack([(x[0] > 1) / (x[1] * x[2]), (x[1] > 1) / (x[0] * x[2]), (x[2] > 1) / (x[0] * x[1])]).sum(0)
    counts = np.round((14.0 * share + 50.0 * n * (1 / x).sum(axis=0) + 170.0) * (1.0 + 0.0005 * np.sin(3.0 * n)))
    far = GRID.extents(np.array([64.0]))[0]
    true = 14.0 * 3 * 40.0**2 / (far[0] * far[1]) + 50.0 * 40.0 * 3 / far[0] + 170.0
    assert predicted(points, counts, ("p", "n"), FAR, (GRID,)).value == pytest.approx(true, rel=0.03)


def test_what_domains_do_not_explain_better_stays() -> None:
    points = _points()
    steps = np.round(30.0 * points[:, 1] * np.log2(points[:, 1]) * (1.0 + 0.002 * np.sin(4.0 * points[:, 1])))
    assert not has_extents(_model(steps, points).terms)
    # nothing is sought where nothing is divided
    assert not has_extents(_model(_of_particles(points), points, ()).terms)


def test_counts_near_powers_are_no_powers_of_two() -> None:
    # sizes next to each other may be logarithms, but a power misses the counts by less than data makes
    points = np.array(list(product(PROCESSES, (4.0, 5.0, 6.0, 8.0, 10.0))))
    waves = 1.0 + 0.006 * np.sin(2.0 * points[:, 1])
    counts = np.round(858.0 * points[:, 1] ** 3 / points[:, 0] * waves)
    found = predicted(points, counts, ("p", "n"), (64.0, 20.0))
    assert found.value == pytest.approx(858.0 * 8000.0 / 64.0, rel=0.05)


def test_exchanges_in_the_columns_of_a_distributed_matrix() -> None:
    """A matrix of n columns: ranks search their columns for pivots, in log2(py) steps along the other dimension."""
    grid = ProcessGrid("p", "balanced", 2, "MPI_Cart_create")
    points = np.array(list(product(PROCESSES, (64.0, 96.0, 128.0, 192.0, 256.0))))

    def steps(at: FloatArray) -> FloatArray:
        x, y = grid.extents(at[:, 0]).T
        return np.asarray((8.0 + 4.1 * np.log2(y)) * at[:, 1] / x)

    of_pivots = 1.0 + 0.01 * np.sin(points[:, 1] + 3.0 * points[:, 0])
    counts = np.round(steps(points) * np.where(points[:, 0] > 2, of_pivots, 1.0))
    for far in ((64.0, 256.0), (256.0, 1024.0)):
        found, true = predicted(points, counts, ("p", "n"), far, (grid,)), float(steps(np.array([far]))[0])
        assert found.value == pytest.approx(true, rel=0.05)
        assert found.lower < true < found.upper


@pytest.mark.parametrize("dimensions", [2, 3])
def test_sizes_of_communicators_are_no_functions_of_a_known_grid(dimensions: int) -> None:
    """One rank has no neighbour: 0, 2, 4, 8 and 16 are also sums of three functions of the extents."""
    points = _points()
    counts = np.where(points[:, 0] > 1, points[:, 0], 0.0)
    model = _model(counts, points, (ProcessGrid("p", "balanced", dimensions, "MPI_Cart_create"),))
    assert model.predict(FAR).value == 64.0
    assert not has_extents(model.terms)
