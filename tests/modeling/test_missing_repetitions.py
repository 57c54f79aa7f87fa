# SPDX-License-Identifier: Apache-2.0
"""A call path that lacks repetitions of a configuration counts in sums with the mean of its other repetitions."""

from __future__ import annotations

import numpy as np
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.report.tree_views import configuration_rows, experiment_view
from quipu.report.views import statistics

NAN = np.nan


def experiment() -> Experiment:
    tree = CallTree((Region("main", "main"), Region("f", "f")), np.array([0, 1]), np.array([-1, 0]))
    values = np.array([[[10.0, 10.0, 10.0], [1.0, NAN, NAN]], [[90.0, NAN, 110.0], [NAN, NAN, NAN]]])
    return Experiment("x", ("p",), np.array([[1.0], [2.0]]), tree, {"time": Metric("time", "s")}, {"time": values})


def test_sums_contain_the_mean_of_the_other_repetitions() -> None:
    data = experiment()
    assert data.program("time").tolist()[0] == [100.0, 110.0, 120.0]
    assert data.inclusive("time")[0, 0].tolist() == [100.0, 110.0, 120.0]
    assert data.inclusive("time")[1, 0].tolist() == [90.0, 100.0, 110.0]


def test_what_no_call_path_has_stays_unmeasured() -> None:
    data = experiment()
    assert np.isnan(data.inclusive("time")[:, 1, 1:]).all()
    assert np.isnan(data.inclusive("time")[1, 1]).all()
    assert data.inclusive("time")[0, 1, 0] == 1.0


def test_views_of_a_configuration_add_up_the_same() -> None:
    data = experiment()
    view = experiment_view(data, {"p": 1})
    assert statistics(view.scoped("time", "inclusive"), "mean").value.tolist() == [110.0, 100.0]
    first, second = configuration_rows(data)
    assert (first.repetitions, first.total) == (3, 110.0)
    assert (second.repetitions, second.total) == (1, 1.0)
