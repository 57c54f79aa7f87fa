# SPDX-License-Identifier: Apache-2.0
"""Combinations of parameters without rows: predictions, their marks, and files with them."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.columns import ColumnModel, fit_columns, hidden_pairs
from quipu.modeling.tensor.storage import restored, stored
from quipu.modeling.tensor.tune import best_configurations

Array = NDArray[np.float64]
LIMIT = 30.0


def wanted(x: Array) -> Array:
    """Time of a program of two parts, in the logarithm of which the parameters interact."""
    return np.asarray(x[:, 0] * np.sqrt(x[:, 1]) + 30.0 * x[:, 1])


def with_a_hole(count: int, seed: int = 0) -> tuple[Array, Array]:
    """Return rows without any where both parameters are above 30, and their times with noise of 3 %."""
    random = np.random.default_rng(seed)
    x = np.exp(random.uniform(0.0, np.log(100.0), (2 * count, 2)))
    x = x[~(x > LIMIT).all(axis=1)][:count]
    return x, wanted(x) * np.exp(0.03 * random.standard_normal(len(x)))


def in_the_hole(count: int) -> Array:
    return np.random.default_rng(9).uniform(45.0, 95.0, (count, 2))


@pytest.fixture(scope="module")
def holed() -> TensorModel:
    return TensorModel(time_budget=0.5).fit(*with_a_hole(2000))


def test_combinations_without_rows_are_named(holed: TensorModel) -> None:
    assert holed.support_.pairs == [(0, 1)]
    assert holed.hidden(in_the_hole(200)).all()
    assert not holed.extrapolated(in_the_hole(200)).any()
    rows = with_a_hole(500, seed=1)[0]
    assert not holed.hidden(rows[(rows < 25.0).any(axis=1)]).any()


def test_intervals_hold_where_no_row_is_near() -> None:
    x = np.random.default_rng(8).uniform(1.2 * LIMIT, 2.0 * LIMIT, (300, 2))
    covered = []
    for seed in range(4):
        model = TensorModel(time_budget=0.5).fit(*with_a_hole(2000, seed))
        times, low, high = model.predict_interval(x)
        covered.append(np.mean((wanted(x) >= low) & (wanted(x) <= high)))
        assert np.abs(np.log(times / wanted(x))).mean() < 0.2
        near = with_a_hole(500, seed=seed + 4)[0]
        near = near[(near < 20.0).all(axis=1)]
        _, low_near, high_near = model.predict_interval(near)
        assert np.median(high / low) > 1.1 * np.median(high_near / low_near)
    assert np.mean(covered) > 0.9


def test_a_model_stays_as_near_to_additive_as_at_its_rows(holed: TensorModel) -> None:
    support = holed.support_
    x = np.random.default_rng(3).uniform(1.0, 100.0, (500, 2))
    wild = np.random.default_rng(4).normal(0.0, 600.0, 500)
    held = support.bounded(x, wild) - support.additive(x)
    assert held.min() >= support.lowest - 1e-9
    assert held.max() <= support.highest + 1e-9
    rows, _ = with_a_hole(2000)
    logs = np.log(holed.predict(rows))
    np.testing.assert_allclose(support.bounded(rows, logs), logs)


def test_a_parameter_that_others_determine() -> None:
    """A second measured time among the parameters: nearly no combination of it with the others has rows."""
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(0.0, np.log(64.0), (3000, 3)))
    times = x[:, 0] * x[:, 1] * (1.0 + x[:, 2] / 20.0) * np.exp(0.02 * random.standard_normal(len(x)))
    columns: dict[str, Any] = dict(zip("abc", x.T, strict=True))
    columns |= {"again": 3.0 * times * np.exp(0.05 * random.standard_normal(len(x))), "time": times}
    model, *_ = fit_columns(columns, "time", time_budget=0.5)
    found = best_configurations(model, {"a": 60.0, "b": 60.0}, {"a": [60.0], "b": [60.0]})
    assert not any(one.hidden for one in found)
    assert all(times.min() / 3.0 < one.time < times.max() for one in found)
    far = np.array([[60.0, 60.0, 60.0, columns["again"].min()]])
    assert {"a*again", "b*again"} <= set(hidden_pairs(model, far)[0])
    assert times.min() / 3.0 < model.model.predict(far)[0] < times.max()


def test_where_nothing_else_is_asked_for_hidden_combinations_are_looked_at() -> None:
    x, times = with_a_hole(2000)
    model, *_ = fit_columns({"n": x[:, 0], "m": x[:, 1], "time": times}, "time", time_budget=0.1)
    found = best_configurations(model, {"n": 90.0}, {"m": [80.0, 90.0]})
    assert [one.hidden for one in found] == [("n*m",)] * 2


def test_few_rows_are_not_called_hidden() -> None:
    random = np.random.default_rng(0)
    for seed in range(20):
        x = np.random.default_rng(seed).uniform(1.0, 50.0, (60, 4))
        model = TensorModel(time_budget=0.01).fit(x, x[:, 0] * np.exp(0.1 * random.standard_normal(60)))
        assert not model.hidden(np.random.default_rng(seed + 100).uniform(2.0, 49.0, (100, 4))).any()


def test_new_rows_close_a_hole(holed: TensorModel) -> None:
    x, times = with_a_hole(2000)
    model = TensorModel(time_budget=0.1).fit(x, times)
    stored_before = restored(*stored(ColumnModel(("n", "m"), {}, "time", model)), "m.json").model
    more = np.random.default_rng(5).uniform(LIMIT, 100.0, (1500, 2))
    for each in (model, stored_before):
        assert each.hidden(in_the_hole(200)).all()
        each.partial_fit(more, wanted(more))
        assert not each.hidden(in_the_hole(200)).any()
        assert np.abs(np.log(each.predict(in_the_hole(200)) / wanted(in_the_hole(200)))).mean() < 0.1


def test_what_is_supported_is_stored(holed: TensorModel) -> None:
    document, content = stored(ColumnModel(("n", "m"), {}, "time", holed))
    again = restored(json.loads(json.dumps(document)), content, "m.json").model
    x = np.vstack([in_the_hole(50), with_a_hole(50, seed=3)[0]])
    assert np.array_equal(again.hidden(x), holed.hidden(x))
    for one, other in zip(again.predict_interval(x), holed.predict_interval(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02)


def test_a_file_of_arrays_by_name_and_without_support_is_read(holed: TensorModel) -> None:
    import hashlib

    document, content = stored(ColumnModel(("n", "m"), {}, "time", holed))
    with np.load(io.BytesIO(content)) as joined:
        parts = {name: joined[name] for name in joined.files}
    named: dict[str, Any] = {}
    for name, shape in document["arrays"].items():
        single = name.startswith(("factor", "scores")) or (name.startswith("spread") and "_" not in name)
        which = "singles" if single or name in ("support_effects", "support_missing") else "doubles"
        size = int(np.prod(shape))
        named[name], parts[which] = parts[which][:size].reshape(shape), parts[which][size:]
    file = io.BytesIO()
    np.savez_compressed(file, **{name: array for name, array in named.items() if not name.startswith("support")})
    old = {key: value for key, value in document.items() if key not in ("arrays", "supported", "cells")}
    old["sha256"] = hashlib.sha256(file.getvalue()).hexdigest()
    again = restored(old, file.getvalue(), "m.json").model
    x, _ = with_a_hole(100, seed=6)
    np.testing.assert_allclose(again.predict(x), holed.predict(x), rtol=1e-3)
    assert not again.hidden(in_the_hole(5)).any()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("supported", [0]),
        ("supported", [0, 7]),
        ("supported", [1, 1]),
        ("cells", [15, 16]),
        ("cells", [2**40, 2**40]),
        ("arrays", {"low": [2]}),
        ("arrays", {"low": [2**60]}),
    ],
)
def test_damage_is_an_error_that_names_the_file(holed: TensorModel, key: str, value: object) -> None:
    document, content = stored(ColumnModel(("n", "m"), {}, "time", holed))
    document[key] = value
    with pytest.raises(FormatError, match=r"m\.json"):
        restored(document, content, "m.json")


def test_values_that_overflow() -> None:
    x, times = with_a_hole(100)
    with pytest.raises(ValueError, match=r"column 1 holds values beyond 1e\+100"):
        TensorModel(time_budget=0.01).fit(x * np.array([1.0, 1e120]), times)
    wide = np.exp(np.random.default_rng(138).uniform(-100.0, 100.0, (90, 2)))
    spread = np.exp(np.random.default_rng(1).uniform(-300.0, 300.0, 90))
    model = TensorModel(time_budget=0.01).fit(wide, spread)
    assert np.isfinite(model.predict(np.vstack([wide, 1e3 * wide]))).all()
