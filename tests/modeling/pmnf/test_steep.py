# SPDX-License-Identifier: Apache-2.0
"""Counts that grow faster than the library: high powers, and powers of 2ⁿ where n is the logarithm of a size."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
from quipu.modeling.expectations import order_text
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models, from_json, to_json

BLOCKS = Metric("blocks", "1", "effort")
N = np.array([5.0, 6, 7, 8, 9, 10])


def model_of(values: FloatArray, points: FloatArray = N[:, None], names: tuple[str, ...] = ("n",)) -> Model:
    (model,) = fit_models(points, values[None, :, None], BLOCKS, names)
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (3 * N**4, "3·n⁴"),
        (3 * N**5 + N, "3·n⁵ + n"),
        (2 * N**6 + 7, "2·n⁶ + 7"),
        (N**7, "n⁷"),
        (5 * 4**N + 7 * 2**N + 30, "5·4^n + 7·2^n + 30"),
        (N * 2**N, "2^n·n"),
        (8**N + 4**N + N, "8^n + 4^n + n"),
        (3 * 2**N / 2 + N**2, "1.5·2^n + n²"),
    ],
)
def test_exact_functions_are_found(values: FloatArray, text: str) -> None:
    model = model_of(values)
    assert str(model) == text
    assert not model.notes
    prediction = model.predict((14.0,))
    assert prediction.lower == prediction.value == prediction.upper
    assert from_json(to_json(model)) == model
    assert eval(model.python, {"n": 9.0, "log2": np.log2}) == pytest.approx(model.at(n=9.0))


def test_several_parameters() -> None:
    points = np.array(list(product([1.0, 2, 4, 8], [5.0, 6, 7, 8])))
    p, n = points.T
    assert str(model_of(4**n / p + n * 2**n, points, ("p", "n"))) == "4^n/p + 2^n·n"
    assert str(model_of(3 * n**4 / p + n**3, points, ("p", "n"))) == "3·n⁴/p + n³"


def test_counts_that_deviate_follow_the_size_too() -> None:
    model = model_of(np.round(4**N * (1 + 0.01 * np.sin(9 * N))))
    prediction = model.predict((14.0,))
    assert prediction.value == pytest.approx(4.0**14, rel=0.05)
    assert prediction.lower < 4.0**14 < prediction.upper
    assert model.ranges == ((5.0, 10.0),)
    growing = model_of(np.array([float(factorial(int(n))) for n in N])).predict((14.0,))
    assert growing.lower < factorial(14) < growing.upper


def test_other_counts_stay_as_they_are() -> None:
    # A parameter whose values are far apart is no logarithm, and what three terms of the library explain needs no 2^n.
    assert str(model_of(5 * N**3 + 2 * N**2 + N)) == "5·n³ + 2·n² + n"
    far = np.array([8.0, 16, 32, 64, 128, 256])
    assert "^n" not in str(model_of(np.round(far**2.6 * (1 + 0.01 * np.sin(far))), far[:, None]))


def test_what_nothing_explains_is_said() -> None:
    model = model_of(np.array([3.0, 1e6, 5.0, 2e6, 9.0, 1e6]))
    assert any("no candidate function reproduces them" in note for note in model.notes)


def test_exponentials_lead_all_powers() -> None:
    assert order_text(model_of(5 * 4**N + N**2).leading) == "4^n"
    assert order_text(model_of(N * 2**N + N**2).leading) == "2^n·n"


def test_counts_that_deviate_are_as_open_as_those_of_the_size_itself() -> None:
    points = np.array(list(product([1.0, 2, 4, 8, 16], [14.0, 15, 16, 17, 18])))
    p, n = points.T
    work = np.where(n > 14, 387.5, 355.0)  # a size that the compiler knows, and makes less of
    counts = work * 2**n / p + 159000 + 40 * np.sin(5 * n + p)
    model = model_of(counts, points, ("p", "n"))
    size = model_of(counts, np.column_stack([p, 2**n]), ("p", "n"))
    assert "2^n" in str(model)
    for ranks, scale in ((16.0, 18.0), (64.0, 18.0), (64.0, 20.0)):
        own, other = model.predict((ranks, scale)), size.predict((ranks, 2**scale))
        assert own.value == pytest.approx(other.value)
        assert own.lower == pytest.approx(other.lower, rel=0.05)
        assert own.upper == pytest.approx(other.upper, rel=0.05)
        assert own.upper < 1.5 * own.lower
    assert model.predict((16.0, 25.0)).upper > 1.5 * model.predict((16.0, 25.0)).lower
