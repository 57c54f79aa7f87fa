# SPDX-License-Identifier: Apache-2.0
"""Counts that are polynomials of the sizes and the process grid, or functions that grow in steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from quipu.modeling.counts.factors import axes_of
from quipu.modeling.counts.polynomials import Polynomials, monomials_of
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.counts.program import Model, fit
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.modeling.process_grid import ProcessGrid

CUBE = ProcessGrid("p", "balanced", 3, "declared")
POINTS = np.array(list(itertools.product((1.0, 2.0, 4.0, 6.0, 8.0), (8.0, 12.0, 16.0, 24.0, 32.0))))
SIZES = np.array([300.0, 500.0, 900.0, 1500.0, 2600.0, 4500.0])


def middle(model: Model, *point: float) -> float:
    return model.at(point).quantile(0.5)


def loops(points: np.ndarray) -> np.ndarray:
    """Return the work of three loops over the cells of a domain, over its points, and over its faces."""
    n, extents = points[:, 1], CUBE.extents(points[:, 0])
    cells = np.prod([n - own for own in extents.T], axis=0)
    halo = np.prod([n + 2 * own for own in extents.T], axis=0)
    return np.asarray(11 * cells + 5 * halo + 7 * n**2 * extents.sum(axis=1) + 33 * points[:, 0])


def test_a_sum_of_several_loops_over_a_divided_domain() -> None:
    (model,) = fit(POINTS, ("p", "n"), [loops(POINTS)], known=(CUBE,))
    target = np.array([[16.0, 64.0]])
    assert model.exact
    assert middle(model, *target[0]) == pytest.approx(loops(target)[0], rel=1e-12)
    assert model.text == "62·p + 31·n·sum(pd·pe) + 6·n^2·sum(pd) + 16·n^3"


def test_an_iteration_with_several_loops_follows_the_number_of_iterations() -> None:
    points = SIZES[:, None]
    runs = np.array([[41, 43, 40], [44, 46, 45], [49, 48, 52], [55, 53, 51], [58, 60, 57], [61, 66, 63.0]])
    each = 3 * SIZES**2 + 5 * SIZES + 7
    work = each[:, None] * runs + (2 * SIZES**2 + 9 * SIZES)[:, None]
    vectors = [runs.mean(axis=1), work.mean(axis=1)]
    iterations, model = fit(points, ("n",), vectors, None, within=[(), (0,)], runs={0: runs, 1: work})
    n = 9000.0
    expected = middle(iterations, n) * (3 * n**2 + 5 * n + 7) + 2 * n**2 + 9 * n
    assert middle(model, n) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("ranks", [(1, 2, 4), (1, 2, 4, 8)])
def test_the_ranks_must_confirm_functions_of_the_ranks(ranks: tuple[int, ...]) -> None:
    """Four functions of a grid of three dimensions reproduce any counts at four numbers of ranks."""
    points = np.array(list(itertools.product(map(float, ranks), (8.0, 12.0, 16.0, 24.0, 32.0))))
    axes = axes_of(points, ("p", "n"), CUBE, len(points))
    numbers = {term.name: place for place, term in enumerate(monomials_of(axes).values())}
    arbitrary = np.array([{1: 3.0, 2: 10.0, 4: 17.0, 8: 41.0}[int(p)] for p in points[:, 0]])
    assert Polynomials(axes, numbers).find(arbitrary * points[:, 1] + 5.0, 1.0) is None


def test_coefficients_are_simple_fractions() -> None:
    axes = axes_of(POINTS, ("p", "n"), CUBE, len(POINTS))
    numbers = {term.name: place for place, term in enumerate(monomials_of(axes).values())}
    p, n = POINTS.T
    assert Polynomials(axes, numbers).find(p * (n**2 - n) / 2, 1.0) is not None
    assert Polynomials(axes, numbers).find(p * (np.pi * n**2 - n), 1.0) is None


@pytest.mark.parametrize(
    ("count", "far"),
    [
        (lambda n: n * np.ceil(np.log2(n)), 36000 * 16),  # passes of a merge sort
        (lambda n: n * np.ceil(np.log2(n) / 4), 36000 * 4),  # digits of a radix sort
        (lambda n: 4.0 ** np.ceil(np.log2(n) / 2), 4**8),  # a capacity that grows fourfold
        (lambda n: 2.0 ** np.ceil(np.log2(n)) * np.ceil(np.log2(n)) + 3 * np.ceil(np.log2(n)) + 6, 65536 * 16 + 54),
    ],
)
def test_counts_that_grow_in_steps(count: object, far: float) -> None:
    assert callable(count)
    (model,) = fit(SIZES[:, None], ("n",), [count(SIZES)], None)
    assert model.exact
    assert middle(model, 36000.0) == pytest.approx(far, rel=1e-6)


def test_exact_laws_predict_whole_numbers() -> None:
    """A rounding error would place the count outside of an interval without width."""
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    metrics = {"visits": Metric("visits", "1", "effort", "sum")}
    counts = (SIZES * np.ceil(np.log2(SIZES)) / 3)[None, :, None] * 3
    found = count_models(Experiment("x", ("n",), SIZES[:, None], tree, metrics, {"visits": counts}))
    assert found is not None
    (visits,) = found.predict({"n": 36001.0}, "visits")
    assert (visits.lower, visits.value, visits.upper) == (36001 * 16,) * 3


@pytest.mark.parametrize("parameters", [3, 12, 20])
def test_many_parameters_have_few_monomials(parameters: int) -> None:
    """Monomials of degree 3 of 20 parameters times the functions of a grid would be 4^20 combinations."""
    points = np.random.default_rng(1).integers(2, 9, (50, parameters)).astype(np.float64)
    names = tuple(f"x{k}" for k in range(parameters))
    assert len(monomials_of(axes_of(points, names, None, len(points)))) <= 20
    (model,) = fit(points, names, [7 * points[:, 0] * points[:, 1] + 3 * points[:, 2]], None)
    assert middle(model, *range(1, parameters + 1)) == pytest.approx(7 * 2 + 3 * 3)
