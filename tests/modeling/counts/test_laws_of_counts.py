# SPDX-License-Identifier: Apache-2.0
"""Predictions of laws of counts at unmeasured points, and their uncertainty."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from quipu.modeling.counts.distribution import Distribution
from quipu.modeling.counts.factors import axes_of, factors_of
from quipu.modeling.counts.program import Model, fit
from quipu.modeling.process_grid import ProcessGrid, balanced

RANKS, SIZES = (1, 2, 4), (8, 12, 16, 24, 32)
TABLE = [(float(p), float(n)) for p, n in itertools.product(RANKS, SIZES)]
MORE = [(8.0, 8.0), (16.0, 8.0)]

Count = Callable[[int, int], float]


def models(counts: Sequence[Count], points: Sequence[tuple[float, float]] = TABLE, **options: object) -> list[Model]:
    table = np.array(points)
    vectors = [np.array([count(int(p), int(n)) for p, n in points], dtype=np.float64) for count in counts]
    return fit(table, ("p", "n"), vectors, **options)  # type: ignore[arg-type]


def value(model: Model, p: int, n: int) -> tuple[float, float, float]:
    known = model.at((p, n))
    return known.quantile(0.5), known.quantile(0.05), known.quantile(0.95)


def over_ranks(loop: Callable[[list[int]], float], dimensions: int) -> Count:
    """Return a count of a domain n^dimensions, divided as evenly as whole numbers allow, summed over the ranks."""

    def count(p: int, n: int) -> float:
        extents = balanced(p, dimensions)
        parts = [[n // e + (k < n % e) for k in range(e)] for e in extents]
        return sum(loop(list(part)) for part in itertools.product(*parts))

    return count


def halo(width: int, dimensions: int) -> Count:
    """Return a count of loops over a part and cells around it."""
    return over_ranks(lambda part: math.prod(size + width for size in part), dimensions)


def faces(dimensions: int) -> Count:
    """Return what ranks exchange that are neighbours in a grid."""
    return lambda p, n: 6.0 * n**2 * sum(extent - 1 for extent in balanced(p, dimensions))


@pytest.mark.parametrize(
    "count",
    [
        lambda p, n: 7.0 * n**3,
        lambda p, n: 60.0 * (n - 2) ** 2 * n,
        lambda p, n: 3.0 * p * (n + 1),
        lambda p, n: 12.0 * (p - 1) * n,
        lambda p, n: 5.0 * p * math.ceil(math.log2(p)),
        lambda p, n: 2.0 * n * p,
        lambda p, n: 4.0,
        lambda p, n: 0.0,
    ],
)
def test_products_are_found_exactly(count: Count) -> None:
    (model,) = models([count], TABLE + MORE)
    assert model.exact
    assert value(model, 64, 100)[0] == pytest.approx(count(64, 100), rel=1e-9)


def test_loops_of_a_divided_domain_need_no_rounding() -> None:
    """Interiors, halos, and faces of unequal parts; runs at more ranks determine the dimensions."""
    counts = [
        over_ranks(lambda part: 5 * math.prod(part), 2),
        over_ranks(lambda part: 3 * (part[0] + 2) * (part[1] + 2), 2),
        over_ranks(lambda part: 7 * (part[0] + 1) * part[1], 2),
        lambda p, n: 4.0 * n * sum(e - 1 for e in balanced(p, 2)),
    ]
    for model, count in zip(models(counts, TABLE + MORE), counts, strict=True):
        assert value(model, 64, 100) == pytest.approx((count(64, 100),) * 3, rel=1e-9)


def test_matrices_of_stencils() -> None:
    """Of points and their neighbours across corners too: all, those of one rank, those below; faces of one side."""
    points = [*itertools.product((1.0, 2.0, 4.0), (8.0, 12.0, 16.0, 20.0)), (8.0, 8.0), (16.0, 8.0), (32.0, 8.0)]
    counts: list[Count] = [
        lambda p, n: math.prod(3 * n * e - 2 for e in balanced(p, 3)),
        lambda p, n: 50 * math.prod(3 * n * e - 2 for e in balanced(p, 3)),
        lambda p, n: p * (3 * n - 2) ** 3,
        lambda p, n: math.prod(2 * n * e - 1 for e in balanced(p, 3)),
        lambda p, n: 12 * (n + 2) ** 2 * (p - p // balanced(p, 3)[0]),
    ]
    for model, count in zip(models(counts, points), counts, strict=True):
        assert model.exact
        assert value(model, 64, 32)[0] == pytest.approx(count(64, 32), rel=1e-9)


def test_what_the_measurements_do_not_say_is_in_the_interval() -> None:
    """At 1, 2 and 4 ranks, grids of two and three dimensions are equal: both are predicted."""
    counts = [faces(2), faces(3)]
    for count in counts:
        (model,) = models([count])
        _, low, high = value(model, 64, 64)
        assert low <= min(other(64, 64) for other in counts) * 1.000001
        assert high >= max(other(64, 64) for other in counts) * 0.999999
    for d, count in zip((2, 3), counts, strict=True):
        model = models([count, halo(1, d), halo(2, d)], TABLE + MORE)[0]
        assert value(model, 64, 64)[0] == pytest.approx(count(64, 64))


def test_nothing_is_counted_with_one_rank() -> None:
    (model,) = models([lambda p, n: 130.0 * (p > 1) * p])
    assert value(model, 1, 64)[0] == 0
    _, low, high = value(model, 64, 64)
    assert low <= 130 * 64 <= high  # 0, 1, 2 is also the number of neighbours, or log2(p)
    (model,) = models([lambda p, n: 130.0 * (p > 1) * p], TABLE + MORE)
    assert value(model, 64, 64)[0] == pytest.approx(130 * 64)


def test_sums_of_counts_that_are_explained_are_exact() -> None:
    first, second = (lambda p, n: 60.0 * (n - 2) ** 2 * n), (lambda p, n: 3.0 * p * (n + 1))
    counts: list[Count] = [first, second, lambda p, n: 2 * first(p, n) + 5 * second(p, n)]
    model = models(counts)[2]
    assert value(model, 64, 100)[0] == pytest.approx(counts[2](64, 100), rel=1e-6)


def test_counts_with_errors_have_intervals() -> None:
    inside = 0
    for seed in range(20):
        error = np.random.default_rng(seed).normal(scale=0.02, size=len(TABLE))
        vector = np.array([50 * n**2 * (1 + e) for (p, n), e in zip(TABLE, error, strict=True)]).round()
        (model,) = fit(np.array(TABLE), ("p", "n"), [vector])
        middle, low, high = value(model, 8, 64)
        assert middle == pytest.approx(50 * 64**2, rel=0.15)
        inside += low <= 50 * 64**2 <= high
    assert inside >= 16


def test_equal_and_proportional_counts_are_modeled_once() -> None:
    found = models([lambda p, n: 4.0 * n**2, lambda p, n: 12.0 * n**2, lambda p, n: 4.0 * n**2])
    assert len({model.parts[0][0] for model in found}) == 1
    assert [value(model, 8, 10)[0] for model in found] == pytest.approx([400, 1200, 400])


def test_more_parameters_and_scattered_points() -> None:
    points = [(1, 8, 3), (2, 8, 5), (4, 16, 3), (2, 32, 7), (1, 24, 4), (4, 12, 9), (8, 8, 6), (1, 16, 11), (2, 20, 2)]
    vector = np.array([9.0 * (n - 2) * n * k for p, n, k in points])
    (model,) = fit(np.array(points, dtype=np.float64), ("p", "n", "k"), [vector])
    assert model.at((16, 100, 50)).quantile(0.5) == pytest.approx(9 * 98 * 100 * 50, rel=1e-9)


def test_experiments_without_ranks() -> None:
    points = np.array([[8.0], [12.0], [16.0], [24.0]])
    (model,) = fit(points, ("n",), [3 * points[:, 0] ** 2 * (points[:, 0] - 2)], None)
    assert model.at((100,)).quantile(0.5) == pytest.approx(3 * 100**2 * 98, rel=1e-9)


def test_prices_of_factors_are_those_of_probabilities() -> None:
    axes = axes_of(np.array(TABLE), ("p", "n"), ProcessGrid("p", "balanced", 3), len(TABLE))
    assert sum(2.0**-factor.bits for factor in factors_of(axes)) == pytest.approx(1)


def test_distributions() -> None:
    coin, die = Distribution(np.array([0.0, 1.0])), Distribution(np.arange(1.0, 7.0))
    assert coin.plus(die).quantile(0.99) == pytest.approx(7)
    assert coin.times(die).quantile(0.5) == pytest.approx(0)
    assert Distribution.mixture([(3.0, coin.scaled(5)), (1.0, Distribution(2.0))]).quantile(0.6) == pytest.approx(2)
    many = Distribution(np.arange(1000.0))
    assert Distribution.mixture([(1.0, many)]).values.size <= 64


def test_a_parameter_may_be_called_as_an_extent_of_the_grid() -> None:
    points = [(p, px) for p in (1.0, 2.0, 4.0, 8.0) for px in (3.0, 5.0, 9.0, 11.0)]
    vector = np.array([7.0 * px * balanced(int(p), 2)[0] for p, px in points])
    (model,) = fit(np.array(points), ("p", "px"), [vector])
    assert model.at((64, 100)).quantile(0.5) == pytest.approx(7 * 100 * 8)


def test_codes_treat_their_dimensions_alike_also_where_no_run_divides_one() -> None:
    # with p = 1, 2, 4 no run divides the third dimension: n + 2·pz and n + 2 are the same there
    ghosts = models([halo(2, 3)], known=[ProcessGrid("p", "balanced", 3, "MPI_Cart_create")])[0]
    assert value(ghosts, 64, 96)[0] == halo(2, 3)(64, 96)
    assert "(n + 2·pz)" in ghosts.text


def test_a_size_is_divided_along_all_dimensions_or_none() -> None:
    cells = models([halo(0, 3)], known=[ProcessGrid("p", "balanced", 3, "MPI_Cart_create")])[0]
    middle, low, high = value(cells, 64, 96)
    assert middle == pytest.approx(96**3)
    assert 0.9 * middle < low <= middle <= high < 1.1 * middle  # not four times as many, one per part of z
