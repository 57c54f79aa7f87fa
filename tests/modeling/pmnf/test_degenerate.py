# SPDX-License-Identifier: Apache-2.0
"""Data of any kind: constants, zeros, negatives, NaN, one point, duplicates, huge and tiny, parameters below 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, NoModel, Options, deviations, find_changes, fit_models, to_json
from quipu.modeling.pmnf.options import SELECTORS, Selector

TIME = Metric("time", "s", "cost")
BLOCKS = Metric("blocks", "1", "effort")

_wild = st.floats(allow_nan=True, allow_infinity=True, width=64)
_axes = st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.0, 3.0, 1e-9, 1e12]), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([TIME, BLOCKS]), st.integers(1, 3), st.sampled_from(SELECTORS))
@pytest.mark.filterwarnings("error")
def test_anything_gives_a_model_or_a_reason(
    data: st.DataObject, metric: Metric, parameters: int, selector: Selector
) -> None:
    columns = [data.draw(_axes) for _ in range(parameters)]
    count = min(map(len, columns))
    points = np.array([column[:count] for column in columns]).T
    values = np.array([data.draw(st.lists(_wild, min_size=count * 2, max_size=count * 2)) for _ in range(2)])
    happened = data.draw(st.sampled_from([None, np.ones((2, count), dtype=bool)]))
    options = Options(selector=selector)
    names = ("n", "p", "q")[:parameters]
    for model in fit_models(points, values.reshape(2, count, 2), metric, names, options, happened):
        assert isinstance(model, Model | NoModel)
        if isinstance(model, Model):
            to_json(model)
            assert np.isfinite(model.constant) and all(np.isfinite(t.coefficient) for t in model.terms)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([TIME, BLOCKS]), st.integers(0, 2), st.integers(6, 9), st.integers(1, 3))
@pytest.mark.filterwarnings("error")
def test_anything_has_noise_and_may_change(
    data: st.DataObject, metric: Metric, paths: int, count: int, repetitions: int
) -> None:
    points = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.5, 1, 2, 4, 8, 1e9]), min_size=count, max_size=count)))
    size = paths * count * repetitions
    numbers = st.one_of(_wild, st.sampled_from([0.0, 1.0, 2.0, 1e300, 5e-324]))
    values = np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)), dtype=float)
    values = values.reshape(paths, count, repetitions)
    assert len(deviations(values)) == paths
    for change in find_changes(points[:, None], values, metric, ("n",)):
        assert change is None or change.last < change.first


def test_visits_that_are_not_measured_or_zero_leave_models_or_reasons() -> None:
    points = np.array([[4.0], [8.0], [16.0]])
    values = np.array([[[1.0], [2.0], [4.0]], [[1.0], [2.0], [4.0]]])
    never = np.array([[False, False, False], [True, True, True]])
    without, model = fit_models(points, values, TIME, ("p",), executed=never)
    assert without == NoModel("measured, but executed in no configuration")
    assert isinstance(model, Model)
