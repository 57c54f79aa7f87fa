# SPDX-License-Identifier: Apache-2.0
"""Data frames as input of tensor models: a value that is no number is an error with its column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest
from quipu.modeling.errors import ModelingError
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.columns import fit_columns

QUICK: dict[str, Any] = {"time_budget": 0.01}


def frame() -> pandas.DataFrame:
    sizes = np.repeat([100, 200, 400, 800], 4)
    ranks = np.tile([1, 2, 4, 8], 4)
    return pandas.DataFrame({"size": sizes, "ranks": ranks, "seconds": 1e-3 * sizes / ranks})


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pandas.array([1] * 15 + [None], dtype="Int64"), r"column 'ranks' contains <NA> in row 15"),
        ([1.0] * 15 + [np.nan], r"column 'ranks' contains nan in row 15"),
        (["row"] + ["col"] * 15, r"column 'ranks' holds the text 'row' in row 0"),
        (pandas.Categorical(["a", "b"] * 8), r"column 'ranks' holds the text 'a' in row 0"),
        (pandas.date_range("2020-01-01", periods=16), r"column 'ranks' contains Timestamp.* in row 0"),
    ],
)
def test_rows_of_a_frame_that_are_no_numbers(column: Any, words: str) -> None:
    data = frame().assign(ranks=column)
    with pytest.raises(ValueError, match=words):
        TensorModel(**QUICK).fit(data[["size", "ranks"]], data["seconds"])
    fitted = TensorModel(**QUICK).fit(frame()[["size", "ranks"]], frame()["seconds"])
    with pytest.raises(ValueError, match=words):
        fitted.predict(data[["size", "ranks"]])


def test_times_that_are_no_numbers() -> None:
    data = frame().astype({"seconds": "Float64"})
    data.loc[3, "seconds"] = pandas.NA
    with pytest.raises(ValueError, match=r"column 'seconds' contains <NA> in row 3"):
        TensorModel(**QUICK).fit(data[["size", "ranks"]], data["seconds"])


@pytest.mark.parametrize("kind", ["Int64", "category", "object", "float32"])
def test_numbers_of_any_kind_are_the_same(kind: str) -> None:
    data = frame()[["size", "ranks"]]
    plain = TensorModel(**QUICK).fit(data, frame()["seconds"]).predict(data)
    assert TensorModel(**QUICK).fit(data.astype(kind), frame()["seconds"]).predict(data).tolist() == plain.tolist()


def test_columns_of_a_frame() -> None:
    data = frame().assign(layout=pandas.Categorical(["row", "col"] * 8), note=pandas.Timestamp("2020-01-01"))
    data["ranks"] = data["ranks"].astype("Int64")
    data.loc[2, "ranks"] = pandas.NA
    names = ("size", "ranks", "layout")
    model, x, _, notes = fit_columns(data, "seconds", names, time_budget=0.01)
    assert model.levels == {"layout": ("col", "row")}
    assert len(x) == 15
    assert notes[0].startswith("1 row is left out: no number in some parameter (such as ranks in row 2)")
    assert np.isnan(model.matrix(data)[2, 1])
    with pytest.raises(ModelingError, match=r"column 'note' holds Timestamp.* in row 0: numbers or texts are needed"):
        fit_columns(data, "seconds", time_budget=0.01)
    mixed = data.assign(ranks=[*range(1, 16), "many"])
    with pytest.raises(ModelingError, match="column 'ranks' holds numbers and the text 'many' in row 15"):
        fit_columns(mixed, "seconds", names, time_budget=0.01)
    with pytest.raises(ModelingError, match=r"a column has no name \(' '\)"):
        fit_columns({"size": [1, 2, 3], " ": [1, 2, 3], "seconds": [1, 2, 3]}, "seconds")
