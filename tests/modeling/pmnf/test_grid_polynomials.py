# SPDX-License-Identifier: Apache-2.0
"""Stencils over decomposed domains, of which too few sizes were measured for lines at each number of processes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.proposers.grid_forms import GridForms
from quipu.modeling.pmnf.proposers.grid_polynomials import GridPolynomials
from quipu.modeling.process_grid import ProcessGrid, assumed

BLOCKS = Metric("blocks", "1", "effort")
POINTS = np.array(list(product((1.0, 2, 4), (16.0, 24, 32)))[:-1])
GRID = ProcessGrid("p", "balanced", 3)


def counts_of(name: str, points: FloatArray) -> FloatArray:
    """Return what a rank does in the mean: n is the size of a rank, or of the domain in "ghosts"."""
    x, n = GRID.extents(points[:, 0]), points[:, 1:]
    if name == "ghosts":  # cells of a rank with a layer of others around them
        return 9.0 * (n / x + 2.0).prod(axis=1)
    entries = 11.0 * (3 * n - 2 / x).prod(axis=1)  # of a matrix whose rows are the 27 neighbours of a cell
    return entries if name == "entries" else entries + 7 * n[:, 0] ** 3 + 40 + 3 / points[:, 0]


@pytest.mark.parametrize("name", ["entries", "entries and vectors", "ghosts"])
@pytest.mark.parametrize("grids", ["known", "assumed"])
def test_stencils_from_three_sizes(name: str, grids: str) -> None:
    known = (GRID,) if grids == "known" else tuple(assumed("p"))
    values = counts_of(name, POINTS)[None, :, None]
    model = fit_models(POINTS, values, BLOCKS, ("p", "n"), Options(grids=known))[0]
    assert isinstance(model, Model)
    far = np.array([(4.0, 32.0), (8.0, 32.0), (8.0, 128.0), (64.0, 40.0)])
    assert model.evaluate(far) == pytest.approx(counts_of(name, far), rel=1e-6), str(model)


def test_what_leaves_no_freedom_is_not_proposed() -> None:
    """Any three functions fit three numbers of processes, or three sizes."""
    processes, places = np.unique(POINTS[:, 0], return_inverse=True)
    forms = GridForms(GRID.extents(processes), GRID.extents(8 * processes))
    polynomials = GridPolynomials(POINTS[:, 1], places, forms)
    random = np.random.default_rng(0)
    of_processes = random.integers(1, 10**6, 3)[places].astype(float)
    of_sizes = random.integers(1, 10**6, 3)[((POINTS[:, 1] - 16) / 8).astype(int)].astype(float)
    anything = random.integers(1, 10**6, (50, len(POINTS))).astype(float)
    assert polynomials.propose(np.stack([of_processes, of_sizes, *anything, np.zeros(len(POINTS))])) == [[]] * 53


def test_all_powers_of_loops_over_a_domain_from_five_sizes() -> None:
    """Cells, planes, lines and constant work at five grids: four coefficients from five sizes."""
    grid = ProcessGrid("p", "balanced, smallest first", 2, "of MPI_Cart_create")

    def loads(points: FloatArray) -> FloatArray:
        (x, y), n = grid.extents(points[:, 0]).T, points[:, 1]
        cells = 1.5 * n**3 + 18 * n**2 + 31.5 * n + 15
        return cells / (x * y) + (15 * n**2 + 165 * n + 150) / y + (6 * n**2 + 66 * n + 60) / x + 61 * n + 638

    points = np.array(list(product((1.0, 2, 4, 8, 16), (16.0, 24, 32, 40, 48))))
    (model,) = fit_models(points, loads(points)[None, :, None], BLOCKS, ("p", "n"), Options(grids=(grid,)))
    assert isinstance(model, Model)
    far = np.array([(16.0, 96.0), (64.0, 48.0), (64.0, 80.0)])
    assert model.evaluate(far) == pytest.approx(loads(far), rel=1e-9), str(model)


def test_no_polynomial_goes_through_five_sizes_of_what_is_none() -> None:
    """One of the 25 counts differs: no polynomial in the size fits this number of processes."""
    points = np.array(list(product((1.0, 2, 4, 8, 16), (16.0, 24, 32, 40, 48))))
    values = (points[:, 1] ** 3 + 7 * points[:, 1] ** 2 + 5 * points[:, 1] + 11) / points[:, 0]
    values[12] += 5.0
    (model,) = fit_models(points, values[None, :, None], BLOCKS, ("p", "n"), Options(grids=(GRID,)))
    assert isinstance(model, Model)
    assert model.evaluate(points[12:13])[0] != pytest.approx(values[12], abs=1.0)
