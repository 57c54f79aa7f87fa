# SPDX-License-Identifier: Apache-2.0
"""Counts that are sums of products, multiples of enclosing counts, or sums over classes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from quipu.modeling.counts.distribution import Distribution
from quipu.modeling.counts.program import Model, fit
from quipu.modeling.process_grid import ProcessGrid

TABLE = [(float(p), float(n)) for p, n in itertools.product((1, 2, 4), (8, 12, 16, 24, 32))]
POINTS = np.array(TABLE)
P, N = POINTS.T
PLANE = (ProcessGrid("p", "balanced", 2, "declared"),)


def middle(model: Model, p: float, n: float) -> float:
    return model.at((p, n)).quantile(0.5)


def test_sums_of_two_products_are_found_exactly() -> None:
    (model,) = fit(POINTS, ("p", "n"), [7 * N**2 + 30 * P * N], known=())
    assert model.exact
    assert middle(model, 16, 64) == pytest.approx(7 * 64**2 + 30 * 16 * 64)


def test_sums_of_three_products_are_found_exactly() -> None:
    (model,) = fit(POINTS, ("p", "n"), [2 * N**3 + 9 * N**2 * P + 40 * P])
    assert model.exact
    assert middle(model, 8, 64) == pytest.approx(2 * 64**3 + 9 * 64**2 * 8 + 40 * 8)


def test_messages_that_grow_with_the_edge_and_have_a_constant_part() -> None:
    px, py = np.array([(1, 1) if p == 1 else (2, 1) if p == 2 else (2, 2) for p in P]).T
    (model,) = fit(POINTS, ("p", "n"), [(px - 1) * (16 * N + 71 * py)], known=PLANE)
    known = model.at((16, 128))
    assert model.exact
    assert known.quantile(0.05) <= 3 * (16 * 128 + 71 * 4) <= known.quantile(0.95)


def test_three_coefficients_for_three_counts_are_no_law() -> None:
    """A sum must reproduce two more counts than it has coefficients."""
    counts = np.array([{8: 100.0, 12: 317.0, 16: 1009.0, 24: 3001.0, 32: 4001.0}[n] for n in N])
    (model,) = fit(POINTS, ("p", "n"), [counts])
    assert not model.exact


def test_work_of_an_iteration_is_exact_though_their_number_is_not() -> None:
    iterations = np.array([147, 149, 152, 151, 150, 148, 149, 150, 149, 148, 151, 150, 149, 151, 149.0])
    work = iterations * (3 * N - 2) ** 2
    _, found = fit(POINTS, ("p", "n"), [iterations, work], within=[(), (0,)])
    truth = 149.0 * (3 * 48 - 2) ** 2
    known = found.at((8, 48))
    assert abs(known.quantile(0.5) - truth) < 0.02 * truth
    assert known.quantile(0.05) > 0.9 * truth


def test_a_total_is_the_sum_of_its_parts() -> None:
    first, second = fit(POINTS, ("p", "n"), [N**2, 5 * N])
    total = Model.total([(3.0, first), (2.0, second), (1.0, second)])
    assert total.exact
    assert middle(total, 4, 100) == pytest.approx(3 * 100**2 + 3 * 5 * 100)


def test_numbers_that_depend_on_each_other_are_added_by_rank() -> None:
    one = Distribution(np.array([1.0, 3.0]))
    known = Distribution.together([(1.0, one), (2.0, one), (1.0, Distribution(5.0))])
    assert known.quantile(0.05) == 1 + 2 + 5
    assert known.quantile(0.95) == 3 + 6 + 5


def test_messages_to_neighbours_across_corners() -> None:
    points = np.array([(p, n) for p in (1.0, 8.0, 27.0) for n in (3.0, 4.0, 6.0, 8.0)])
    q = np.cbrt(points[:, 0])
    (model,) = fit(
        points, ("p", "n"), [4 * ((3 * q - 2) ** 3 - q**3)], known=(ProcessGrid("p", "balanced", 3, "declared"),)
    )
    assert middle(model, 64, 8) == pytest.approx(4 * (10**3 - 64))
