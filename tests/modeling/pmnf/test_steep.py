# SPDX-License-Identifier: Apache-2.0
"""Counts that grow faster than the library: high powers, and powers of 2ⁿ where n is the logarithm of a size."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, from_json, to_json

from ..counted import fit_counts

BLOCKS = Metric("blocks", "1", "effort")
N = np.array([5.0, 6, 7, 8, 9, 10])


def model_of(values: FloatArray, points: FloatArray = N[:, None], names: tuple[str, ...] = ("n",)) -> Model:
    (model,) = fit_counts(points, values[None, :, None], names)
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (3 * N**4, "3·n⁴"),
        (2 * N**6 + 7, "2·n⁶ + 7"),
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


def test_other_counts_stay_as_they_are() -> None:
    # A parameter whose values are far apart is no logarithm, and what three terms of the library explain needs no 2^n.
    assert str(model_of(5 * N**3 + 2 * N**2 + N)) == "5·n³ + 2·n² + n"
    far = np.array([8.0, 16, 32, 64, 128, 256])
    assert "^n" not in str(model_of(np.round(far**2.6 * (1 + 0.01 * np.sin(far))), far[:, None]))


def test_what_nothing_explains_is_said() -> None:
    model = model_of(np.array([3.0, 1e6, 5.0, 2e6, 9.0, 1e6]))
    assert any("no candidate function reproduces them" in note for note in model.notes)
