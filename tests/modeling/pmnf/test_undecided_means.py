# SPDX-License-Identifier: Apache-2.0
"""Counts that do not determine their extrapolation: benchmarks/undecided_means.py, undecided_paths.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from undecided_means import columns_of, extremes, means_of, undecided
from undecided_paths import undecided_of

SIZES = np.array([16.0, 24, 32, 40, 48, 64])
Count = Callable[[FloatArray], FloatArray]


def _iterations(sizes: FloatArray) -> FloatArray:
    return 2.57 * sizes + 2.7


def _runs(count: Count, sizes: FloatArray, deviation: float, seed: int) -> FloatArray:
    random = np.random.default_rng(seed)
    return np.round(count(sizes)[:, None] + deviation * random.standard_normal((sizes.size, 5)))


def test_both_functions_agree_with_the_means() -> None:
    means = means_of(SIZES, _runs(_iterations, SIZES, 0.8, 1))
    found = extremes(means, 512.0)
    assert found is not None
    assert found[0].value <= _iterations(np.array([512.0]))[0] <= found[1].value
    for own in found:
        names, sizes = zip(*own.coefficients, strict=True)
        off = (columns_of(names, SIZES) @ np.array(sizes) - means.values) / np.sqrt(means.variances)
        assert (off**2).mean() < 4.0
        assert columns_of(names, np.array([512.0]))[0] @ np.array(sizes) == pytest.approx(own.value)


@pytest.mark.parametrize("deviation", [0.001, 0.003, 0.01])
def test_the_truth_is_between_the_extremes(deviation: float) -> None:
    """The value of a function of loops is between the extremes nine times in ten."""
    sizes, random, inside = np.array([300.0, 500, 900, 1500, 2600, 4500]), np.random.default_rng(1), []
    counts: list[Count] = [
        lambda n: 31 * n,
        lambda n: 37 * n * np.log2(n) - 18 * n,
        lambda n: 0.25 * n**2 + 60 * n,
        lambda n: 2.5 * n + 9 * np.log2(n),
        lambda n: 30 * n + 90 * n**0.5,
    ]
    for count in 20 * counts:
        runs = np.round(count(sizes)[:, None] * (1 + deviation * random.standard_normal((sizes.size, 5))))
        found = extremes(means_of(sizes, runs), 36000.0)
        if found is not None:
            inside.append(found[0].value <= count(np.array([36000.0]))[0] <= found[1].value)
    assert np.mean(inside) > 0.85
    assert len(inside) >= 85


def test_larger_sizes_and_more_precise_runs_decide() -> None:
    assert undecided(SIZES, _runs(_iterations, SIZES, 0.8, 1), 512.0) is not None
    assert undecided(32 * SIZES, _runs(_iterations, 32 * SIZES, 0.8, 1), 32 * 512.0) is None
    assert undecided(SIZES, 1000.0 * _iterations(SIZES)[:, None] + np.arange(5.0), 512.0) is None


@pytest.mark.parametrize("seed", range(5))
def test_what_no_simple_function_gives_is_not_undecided(seed: int) -> None:
    sizes = np.array([1e3, 2e3, 4e3, 8e3, 16e3, 32e3])
    alternating = _runs(lambda n: 30 * n * (1 + 0.1 * (np.round(np.log2(n / 1000)) % 2)), sizes, 5.0, seed)
    assert undecided(sizes, alternating, 256000.0) is None


def test_variances_follow_the_runs() -> None:
    """Deviations proportional to the value, and rounding if runs hardly differ."""
    sizes = np.array([1e3, 2e3, 4e3, 8e3, 16e3, 32e3])
    runs = 10 * sizes[:, None] * (1 + 0.01 * np.array([-1.0, -0.5, 0, 0.5, 1]))
    means = means_of(sizes, runs)
    assert np.ptp(np.sqrt(means.variances) / means.values) < 1e-9
    alike = np.full((6, 5), 28.0) + np.arange(6.0)[:, None]
    alike[0, 0] += 1
    assert means_of(SIZES, alike).variances == pytest.approx(1 / 30 / 5 + np.exp(-4 * np.pi**2 / 30) / 12, rel=0.1)


def test_what_depends_on_an_undecided_number_is_undecided() -> None:
    """A loop of n² cells in each iteration, and n² cells before; not what is done once."""
    random = np.random.default_rng(2)
    visits = _runs(_iterations, SIZES, 0.8, 1)
    far = np.round(_iterations(np.array([512.0]))[:, None] + random.integers(-3, 4, (1, 5)))
    cells = SIZES[:, None] ** 2

    def counts(iterations: FloatArray, squares: FloatArray) -> FloatArray:
        return np.stack([3 * squares + 0 * iterations, (squares + 3) * iterations + 7 * squares])

    experiment = Experiment(
        "solver",
        ("n",),
        SIZES[:, None],
        CallTree((Region("main", "main"), Region("solve", "solve")), np.array([0, 1]), np.array([-1, 0])),
        {name: METRICS[name] for name in ("visits", "blocks")},
        {"visits": np.stack([np.ones_like(visits), visits]), "blocks": counts(visits, cells)},
    )
    beyond = {"visits": np.concatenate([np.ones_like(far), far]), "blocks": counts(far, np.array([[512.0**2]]))[:, 0]}
    found = undecided_of(experiment, 512, beyond)
    assert set(found) == {(1, "visits"), (1, "blocks")}
    low, high = found[1, "blocks"].values
    assert low <= (512**2 + 3) * float(far.mean()) + 7 * 512**2 <= high


def test_whole_numbers_that_a_polynomial_gives_are_decided() -> None:
    counts = {"visits": np.repeat(np.stack([np.ones(6), SIZES + 1])[:, :, None], 5, axis=2)}
    tree = CallTree((Region("main", "main"), Region("row", "row")), np.array([0, 1]), np.array([-1, 0]))
    experiment = Experiment("loops", ("n",), SIZES[:, None], tree, {"visits": METRICS["visits"]}, counts)
    assert not undecided_of(experiment, 512, {"visits": np.array([[1.0] * 5, [513.0] * 5])})
