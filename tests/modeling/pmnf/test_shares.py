# SPDX-License-Identifier: Apache-2.0
"""Counts of a process's share of a whole: functions of n/p, which sums of functions of n and p only approximate."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import total_ordering
from random import Random

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.forms.shares import Share
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models
from quipu.modeling.pmnf.options import NoModel

BLOCKS = Metric("blocks", "1", "effort")
GRIDS = {
    "powers of two": [(p, n) for p in (1.0, 2, 4, 8) for n in (400.0, 800, 1200, 1600, 2000)],
    "squares": [(p, n) for p in (4.0, 9, 16, 25, 36) for n in (1000.0, 2000, 3000, 5000, 8000)],
}
FAR = np.array([[64.0, 16000.0], [64.0, 2000.0]])
Function = Callable[[FloatArray, FloatArray], FloatArray]


def fitted(points: FloatArray, counts: FloatArray) -> Model:
    (model,) = fit_models(points, counts[None, :, None], BLOCKS, ("p", "n"))
    assert not isinstance(model, NoModel)
    return model


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda p, n: 20 * n / p * np.log2(n / p) + 86 * n / p,
        lambda p, n: 2 * n / p * np.log2(n / p) - 1.5 * n / p,
        lambda p, n: 3 * n**2 / p * np.log2(n**2 / p),
        lambda p, n: 0.5 * (n / p) ** 2 + 3 * n / p * np.log2(n / p),
        lambda p, n: 5 * n / p * np.log2(p) + 7 * n / p,
        lambda p, n: 10 * n * np.log2(n / p) + 3 * n,
    ],
    ids=["sort", "negative", "matrix", "pairs", "merging", "steps"],
)
def test_functions_of_shares_are_found(function: Function, grid: str) -> None:
    points = np.array(GRIDS[grid])
    model = fitted(points, np.round(function(*points.T)))
    assert model.evaluate(FAR) == pytest.approx(function(*FAR.T), rel=0.005), str(model)


def test_functions_of_shares_and_of_parts_are_found_together() -> None:
    points = np.array(GRIDS["powers of two"])
    for own in (lambda p: 300 * p, lambda p: 300 * p * np.log2(p)):
        p, n = points.T
        model = fitted(points, np.round(20 * n / p * np.log2(n / p) + 86 * n / p + own(p)))
        truth = [20 * n / p * np.log2(n / p) + 86 * n / p + own(p) for p, n in FAR]
        assert model.evaluate(FAR) == pytest.approx(truth, rel=0.005), str(model)


@pytest.mark.parametrize("processes", [(4.0, 16, 64), (2.0, 4, 8, 16)])
def test_three_sizes_tell_a_function_of_the_share_from_one_of_the_parts(processes: tuple[float, ...]) -> None:
    """n/p·log2(n/p) is two functions of n, and one of the share."""
    points = np.array([(p, n) for p in processes for n in (100.0, 200, 400)])
    p, n = points.T
    model = fitted(points, np.round(21 * n / p * np.log2(n / p) + 10 * p))
    truth = [21 * n / p * np.log2(n / p) + 10 * p for p, n in FAR]
    assert model.evaluate(FAR) == pytest.approx(truth, rel=0.005), str(model)


@total_ordering
class Counted:
    """A key whose comparisons are counted."""

    compared = 0

    def __init__(self, key: float) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counted) and self.key == other.key

    def __lt__(self, other: Counted) -> bool:
        Counted.compared += 1
        return self.key < other.key

    __hash__ = None  # type: ignore[assignment]


def comparisons(p: float, n: float, search: bool) -> int:
    """Return the comparisons of sorting the share of one of p processes, or of searching each key in it."""
    random = Random(f"{p} {n}")
    keys = sorted(random.random() for _ in range(round(n / p)))
    share = [Counted(key) for key in keys]
    if not search:
        random.shuffle(share)
    Counted.compared = 0
    if search:
        for _ in keys:
            bisect_left(share, Counted(random.random()))
    else:
        share.sort()
    return Counted.compared


@pytest.mark.parametrize("search", [False, True], ids=["sort", "search"])
def test_what_is_counted_of_sorting_and_searching_shares_is_predicted(search: bool) -> None:
    points = np.array([(p, n) for p in (1.0, 2, 4, 8) for n in (2000.0, 4000, 6000, 8000, 10000)])
    model = fitted(points, np.array([comparisons(p, n, search) for p, n in points], dtype=np.float64))
    for p, n in ((64.0, 80000.0), (8.0, 80000.0)):
        truth = comparisons(p, n, search)
        assert model.evaluate([(p, n)])[0] == pytest.approx(truth, rel=0.01), str(model)
        found = model.predict((p, n))
        assert found.upper / found.lower < 1.2


def test_three_numbers_of_parts_do_not_confirm_three_functions_of_them() -> None:
    points = np.array([(p, n) for p in (4.0, 9, 16) for n in (48.0, 96, 144, 192, 240)])
    p, n = points.T
    for exponent in (-0.15, -0.3, -0.45, -0.7):
        assert fitted(points, n * p**exponent).covariance != ()


def test_deviations_of_a_share_are_those_of_its_parameters() -> None:
    """An interval has the same relative width at all points with the same share."""
    random = np.random.default_rng(3)
    points = np.array(GRIDS["powers of two"])
    p, n = points.T
    counts = (20 * n / p * np.log2(n / p) + 86 * n / p) * (1 + 0.003 * random.normal(size=p.size))
    model = fitted(points, counts)
    far, alike = (model.predict(point) for point in ((64.0, 64000.0), (2.0, 2000.0)))
    assert far.value == pytest.approx(alike.value)
    assert (far.lower, far.upper) == pytest.approx((alike.lower, alike.upper))
    assert far.upper / far.lower < 1.05


def fitted_shares(counts: FloatArray, left: float, former: int) -> list[bool]:
    """Return whether shares n/p alone, and with p, are fitted to counts that a model leaves so much of."""
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (4099.0, 8191, 16411, 32771, 65521)])
    own = counts[None], np.array([left]), np.array([former])
    return [bool(Share(1, 0, 1, alone).may_explain(points, *own)[0]) for alone in (True, False)]


def test_shares_are_fitted_only_to_counts_that_they_may_explain_with_as_many_coefficients() -> None:
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (4099.0, 8191, 16411, 32771, 65521)])
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal((20, len(points)))
    share, p = points[:, 1] / points[:, 0], points[:, 0]
    sort, merging = share * np.log2(share), share * np.log2(share) + 100 * p
    for own in noise:
        left = float((own - own.mean()).std())
        assert not any(fitted_shares(30 * share * own, left, 1))  # c·n/p, as near as noise allows
        assert fitted_shares(sort * own, 1.2 * left, 3)[0]  # three coefficients in place of one
        assert fitted_shares(sort * own, 5 * left, 1)[0]
        assert fitted_shares(merging * own, 1.2 * left, 3)[1]


def test_one_larger_count_at_the_last_size_is_no_power_of_the_share() -> None:
    """Extra work of one rank at one size is also 12·(n/96)⁹/p: (n³/p)³·p²."""
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (32.0, 48, 64, 96)])
    counts = 20.0 + 12.0 / points[:, 0] * (points[:, 1] == 96.0)
    prediction = fitted(points, counts).predict((64.0, 256.0))
    assert prediction.value < 40.0
    assert prediction.lower < 20.2 < prediction.upper
