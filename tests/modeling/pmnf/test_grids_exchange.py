# SPDX-License-Identifier: Apache-2.0
"""Counts of exchanges on a process grid: in one dimension after the other, and with all neighbours of a rank."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.catalogue import NOT_EXECUTED
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.process_grid import ProcessGrid, assumed

BLOCKS = Metric("blocks", "1", "effort")
SIZES = (8.0, 12.0, 16.0, 20.0)
RING = ProcessGrid("p", "balanced", 3, "MPI_Cart_create", (True, True, True))


def _model(counts: FloatArray, points: FloatArray, grids: tuple[ProcessGrid, ...]) -> Model:
    # a program that works on cells, whose domain shows in that
    cells = 7.0 * points[:, 1] ** 3 / points[:, 0]
    model = fit_models(points, np.stack([counts, cells])[:, :, None], BLOCKS, ("p", "n"), Options(grids=grids))[0]
    assert isinstance(model, Model)
    return model


def _points(processes: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    points = np.array(list(product(processes, SIZES)), dtype=np.float64)
    return points, RING.extents(points[:, 0])


def _in_turn(n: FloatArray, x: FloatArray, per_cell: float, ghosts: float, corner: float) -> FloatArray:
    """Return what ranks send of faces in x, then in y with the ghosts in x, then in z with those in x and y, (C,)."""
    a, b, c = n / x.T
    sent = (x > 1).T.astype(float)
    line = ghosts * (sent[1] * c + sent[2] * (a + b))
    return np.asarray(per_cell * (sent[0] * b * c + sent[1] * a * c + sent[2] * a * b + line) + corner * sent[2])


@pytest.mark.parametrize("size", [1.0, 10.0, 1000.0])
@pytest.mark.parametrize("ghosts", [2.0, 3.5])
def test_layers_in_turn_with_the_ghosts_of_those_before(size: float, ghosts: float) -> None:
    # the corner is none of ghosts², as with particles, of which some part of a layer is sent
    what = (672.0 * size, ghosts, 8208.0 * size)
    points, x = _points((1, 2, 4, 8, 16))
    model = _model(_in_turn(points[:, 1], x, *what), points, (RING,))
    far = np.array([[64.0, 32.0]])
    true = float(_in_turn(far[:, 1], RING.extents(far[:, 0]), *what)[0])
    found = model.predict((64.0, 32.0))
    assert found.value == pytest.approx(true, rel=1e-9)
    # another function has the same values where layers are no whole cells, and only more grids tell them apart
    assert (found.lower < true) == (ghosts == 3.5)


def test_whole_cells_in_turn_are_loops() -> None:
    points, x = _points((1, 2, 4))
    model = _model(_in_turn(points[:, 1], x, 30.0, 2.0, 120.0), points, (RING,))
    far = np.array([[16.0, 32.0]])
    true = float(_in_turn(far[:, 1], RING.extents(far[:, 0]), 30.0, 2.0, 120.0)[0])
    assert model.predict((16.0, 32.0)).value == pytest.approx(true, rel=1e-9)


def test_a_change_at_one_number_of_processes_is_no_sum_of_many_functions() -> None:
    # each rank looks at the parts of all its neighbours: those are all ranks up to 2 x 2 x 2
    def count(n: FloatArray, x: FloatArray) -> FloatArray:
        return np.asarray(np.prod([n * (3 * e - 2) / e**2 + 2 / e - (e < 2) for e in x.T], axis=0))

    points, x = _points((1, 2, 4, 8, 16))
    more = np.array([[1.0, 24.0], [16.0, 24.0]])
    points, x = np.concatenate([points, more]), np.concatenate([x, RING.extents(more[:, 0])])
    assert count(points[:, 1], x)[0] == 729.0
    model = _model(count(points[:, 1], x), points, assumed("p"))
    far = np.array([[64.0, 64.0]])
    true = float(count(far[:, 1], RING.extents(far[:, 0]))[0])
    found = model.predict((64.0, 64.0))
    assert found.lower < true < found.upper
    assert found.value > 0.0


def test_one_point_to_spare_is_too_little_for_a_count_that_becomes_negative() -> None:
    # four functions of p reproduce five values, and are negative at twice the largest p
    points = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0), SIZES)))
    values = np.where(points[:, 0] < 16.0, 1.0, 0.625) * (points[:, 1] + 1.0) ** 3
    model = _model(values, points, ())
    assert model.predict((64.0, 16.0)).value > 0.0
    assert model.predict((64.0, 16.0)).lower < 0.3 * model.predict((64.0, 16.0)).value


OF_MESSAGES = ProcessGrid("p", "balanced", 3, "of messages")


def _with_all_neighbours(x: FloatArray) -> FloatArray:
    """Return the mean number of neighbours of a rank on a grid (C, 3), at edges and corners, too."""
    return np.asarray((3.0 - 2.0 / x).prod(axis=1) - 1.0)


def _of_elements(counts: FloatArray, points: FloatArray) -> Model:
    """Return the model of counts (C,) of a program whose size is the number of elements of a rank."""
    values = np.stack([counts, 512.0 * points[:, 1], 100.0 * points[:, 1] + 8.0])[:, :, None]
    model = fit_models(points, values, BLOCKS, ("p", "n"), Options(grids=(OF_MESSAGES,)))[0]
    assert isinstance(model, Model)
    return model


def test_elements_in_three_dimensions_have_neighbours_in_all_of_them() -> None:
    """A size of the first order, elements of a rank, is no one-dimensional domain if the grid has three dimensions."""
    points, x = _points((1, 2, 4, 8, 16))
    model = _of_elements(12.0 * _with_all_neighbours(x), points)
    for p, neighbours in ((32.0, 11.5), (64.0, 14.625)):
        assert model.predict((p, 16.0)).value == pytest.approx(12.0 * neighbours, rel=1e-9)


def test_an_algorithm_that_few_processes_do_not_need_is_of_the_grid() -> None:
    """What is exchanged in another way by two processes is 11 - 32/p of others, which is negative at p = 1."""
    points, x = _points((1, 2, 4, 8, 16))
    model = _of_elements(np.where(points[:, 0] > 2, 200.0 * _with_all_neighbours(x), 0.0), points)
    assert NOT_EXECUTED(where="at p=1, p=2") in model.notes
    assert not any("measure p = 2" in note for note in model.notes)
    for p, neighbours in ((32.0, 11.5), (64.0, 14.625)):
        found = model.predict((p, 16.0))
        assert found.value == pytest.approx(200.0 * neighbours, rel=1e-9)
        assert found.lower < (2200.0 - 6400.0 / p) < found.upper


def test_what_one_rank_does_for_all_others_stays_a_share() -> None:
    points, _ = _points((1, 2, 4, 8, 16))
    model = _of_elements(60.0 - 60.0 / points[:, 0], points)
    assert model.predict((64.0, 16.0)).value == pytest.approx(60.0 * 63.0 / 64.0, rel=1e-9)


def test_what_only_many_processes_do_alike_is_no_function_of_their_number() -> None:
    points, _ = _points((1, 2, 4, 8, 16))
    model = _of_elements(np.where(points[:, 0] > 2, 200.0, 0.0), points)
    found = model.predict((64.0, 16.0))
    assert (found.lower, found.value) == pytest.approx((200.0, 200.0))
