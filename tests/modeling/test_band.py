# SPDX-License-Identifier: Apache-2.0
"""Name measured times outside the intervals of the models, unless chance explains them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.band import outside_of_band
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.report.model_views import outside_notes, ranking_view

SIZES = np.array([100.0, 200, 300, 400, 500, 600])


def measured(times: FloatArray) -> Experiment:
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    return Experiment("runs", ("n",), SIZES[:, None], tree, {"time": METRICS["time"]}, {"time": times[None]})


def noisy(seed: int) -> FloatArray:
    return (1e-3 * SIZES)[:, None] * (1 + 0.02 * np.random.default_rng(seed).standard_normal((6, 5)))


def test_nothing_is_said_of_models_that_fit() -> None:
    for seed in range(5):
        experiment = measured(noisy(seed))
        assert outside_of_band(analyze(experiment), experiment) is None


def test_a_value_that_the_models_ignore_is_named() -> None:
    analysis = analyze(measured(noisy(1)))
    times = noisy(1)
    times[3] *= 2.2
    disturbed = measured(times)
    found = outside_of_band(analysis, disturbed)
    assert found is not None and (found.points, found.of, found.point) == (1, 6, (400.0,))
    assert found.upper < 0.5 < found.measured
    (note,) = outside_notes(analysis, disturbed)
    assert note.startswith("the measured time is outside of the 90 % interval of the models at 1 of 6 points")
    assert note in ranking_view(analysis, disturbed, {"n": 1000.0}, "time", False, 5).notes


def test_points_that_share_processors_do_not_count() -> None:
    analysis, times = analyze(measured(noisy(1))), noisy(1)
    times[3] *= 2.2
    shared = replace(measured(times), oversubscribed=np.arange(6) == 3)
    assert outside_of_band(analysis, shared) is None
