# SPDX-License-Identifier: Apache-2.0
"""Tensor models: intervals of rows that the measurements hardly determine."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.unseen import category_half_width

Array = NDArray[np.float64]


def of_categories(factors: Array, rows: int = 20, seed: int = 0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    n = np.geomspace(10.0, 1000.0, rows)
    x = np.array([[code, one] for code in range(len(factors)) for one in n])
    return x, factors[x[:, 0].astype(int)] * x[:, 1] * np.exp(0.03 * random.standard_normal(len(x)))


def quick(x: Array, times: Array, **options: object) -> TensorModel:
    return TensorModel(time_budget=0.05, **options).fit(x, times)  # type: ignore[arg-type]


def test_the_interval_of_an_unseen_category_holds_those_that_were_measured() -> None:
    model = quick(*of_categories(np.array([1.0, 4.0, 10.0])), categorical=[0])
    _, low, high = model.predict_interval([[0.0, 100.0], [9.0, 100.0]])
    assert high[0] / low[0] < 1.5
    assert low[1] < 100.0
    assert high[1] > 1000.0
    assert np.isfinite(high).all()


@pytest.mark.parametrize("loss", ["log", "mlogq2"])
def test_leaving_one_category_out_nine_in_ten_are_inside(loss: str) -> None:
    random = np.random.default_rng(1)
    inside = []
    for count in (3, 4, 6, 9):
        for _ in range(3 if loss == "log" else 1):
            factors = np.exp(random.standard_normal(count))
            x, times = of_categories(factors, 8)
            for out in range(count):
                held = x[:, 0] == out
                model = quick(x[~held], times[~held], categorical=[0], loss=loss)
                _, low, high = model.predict_interval(x[held])
                inside.append(np.mean((low <= times[held]) & (times[held] <= high)))
    assert 0.8 < np.mean(inside) < 0.99


def test_categories_that_hardly_differ_leave_the_interval_narrow() -> None:
    model = quick(*of_categories(np.ones(12)), categorical=[0])
    _, low, high = model.predict_interval([[50.0, 100.0]])
    assert high[0] / low[0] < 1.5


def test_unseen_categories_of_two_parameters_add_up() -> None:
    x = np.array([[a, b] for a in range(3) for b in range(4)], dtype=float)
    model = quick(np.repeat(x, 3, axis=0), np.repeat(np.exp(x[:, 0] + 2.0 * x[:, 1]), 3), categorical=[0, 1])
    rows = np.array([[9.0, 1.0], [1.0, 9.0], [9.0, 9.0]])
    one, other, both = category_half_width(model.modes_, rows, np.log(model.predict(rows)), model._logs, 0.9)
    assert both == pytest.approx(np.hypot(one, other), rel=0.05)


@pytest.mark.parametrize("number", [0.0, -5.0])
@pytest.mark.parametrize("loss", ["log", "mlogq2"])
def test_a_number_without_logarithm_has_an_open_interval(number: float, loss: str) -> None:
    model = quick(*of_categories(np.array([1.0, 4.0])), categorical=[0], loss=loss)
    time, low, high = model.predict_interval([[0.0, number], [0.0, 10.0]])
    assert time[0] == pytest.approx(time[1], rel=0.2)
    assert (low[0], high[0]) == (0.0, np.inf)
    assert np.isfinite(high[1])
    assert model.extrapolated([[0.0, number]]).tolist() == [[False, True]]


def test_another_value_of_what_was_constant_has_an_open_interval() -> None:
    x, times = of_categories(np.array([1.0, 4.0]))
    model = quick(np.column_stack([x, np.full(len(x), 8.0)]), times, categorical=[0])
    _, low, high = model.predict_interval([[0.0, 100.0, 8.0], [0.0, 100.0, 16.0]])
    assert np.isfinite(high).tolist() == [True, False]
    assert low[1] == 0.0
