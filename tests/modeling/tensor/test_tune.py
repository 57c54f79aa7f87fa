# SPDX-License-Identifier: Apache-2.0
"""Tensor models: the best configuration among measured values, and constraints on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.tensor.columns import ColumnModel, fit_columns, measured_values
from quipu.modeling.tensor.storage import restored, stored
from quipu.modeling.tensor.tune import best_configurations

Array = NDArray[np.float64]


def measured_digits() -> tuple[ColumnModel, Array]:
    """Return a model of values that decimal numbers of twelve digits are not, and these values."""
    values = np.geomspace(1.0, 100.0, 9) / 3.0
    n = np.repeat(values, 3)
    model, *_ = fit_columns({"n": n, "time": 2.0 * n}, "time", time_budget=0.05)
    return model, values


def test_tuning_takes_the_values_that_were_measured() -> None:
    model, values = measured_digits()
    for one in (model, restored(*stored(model), "m.json")):
        assert measured_values(one, "n").tolist() == values.tolist()
        (best,) = best_configurations(one, {}, {}, count=1)
        assert best.values == {"n": values[0]}
        assert best.extrapolated == ()
        one.model.partial_fit([[values[3]], [values[-1] * 1.7]], [2.0 * values[3], 3.4 * values[-1]])
        assert measured_values(one, "n").tolist() == [*values.tolist(), values[-1] * 1.7]


def test_measured_values_outside_of_the_range_are_damage() -> None:
    model, _ = measured_digits()
    model.model.low_ = model.model.low_ * 2.0
    with pytest.raises(FormatError, match="values0"):
        restored(*stored(model), "m.json")


def test_names_and_categories_in_quotes_stand_in_constraints() -> None:
    layouts = ["row,major", "col major"] * 20
    ranks = np.repeat([1.0, 2.0, 4.0, 8.0], 10)
    times = ranks * np.where(np.arange(40) % 2, 3.0, 1.0)
    model, *_ = fit_columns({"layout": layouts, "# ranks [n]": ranks, "time": times}, "time", time_budget=0.05)
    (best,) = best_configurations(model, {}, {}, ['"# ranks [n]" > 2', 'layout == "col major"'], 1)
    assert best.values == {"layout": "col major", "# ranks [n]": 4.0}
    (best,) = best_configurations(model, {}, {}, ['layout != "col major" and "# ranks [n]" >= 8'], 1)
    assert best.values == {"layout": "row,major", "# ranks [n]": 8.0}
