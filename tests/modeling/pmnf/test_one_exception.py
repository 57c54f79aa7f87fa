# SPDX-License-Identifier: Apache-2.0
"""Counts that are exact but at one configuration, and power laws where counts scatter by factors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.catalogue import COUNTS_MISSED, LEFT_OUT_COUNT, LEFT_OUT_POINT
from quipu.modeling.experiment import FloatArray
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.changes.one_exception import but_for_one
from quipu.modeling.pmnf.options import NoModel
from quipu.modeling.process_grid import assumed

from ..one_count import predicted

VISITS = METRICS["visits"]
POINTS = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0), (32.0, 64.0, 128.0, 256.0))))
P, N = POINTS.T


def without(values: FloatArray, options: Options | None = None) -> tuple[Model | NoModel, dict[int, tuple[int, Model]]]:
    """Return the model of visits (C,), and what takes its place."""
    own = options or Options()
    counts, executed = values[None, :, None], (values > 0)[None]
    models = fit_models(POINTS, counts, VISITS, ("p", "n"), own, executed)
    return models[0], but_for_one(models, POINTS, counts, executed, VISITS, ("p", "n"), own)


def test_one_odd_configuration_is_an_exception() -> None:
    values = 20 * np.log2(N / P) + 60 / P
    odd = int(np.flatnonzero((P == 16) & (N == 32))[0])
    values[odd] = 47.5
    former, found = without(values)
    assert isinstance(former, Model) and former.predict((64.0, 512.0)).value < 40
    place, model = found[0]
    assert place == odd
    assert {LEFT_OUT_POINT(point="p=16, n=32"), LEFT_OUT_COUNT(counted=47.5, expected=23.75)} <= set(model.notes)
    prediction = model.predict((64.0, 512.0))
    assert prediction.value == pytest.approx(60.9375)
    assert prediction.lower < 40  # the former model may be right, too
    assert model.quality is not None and model.quality.rms_relative > 0.1


def test_messages_of_a_grid_with_an_iteration_less() -> None:
    per_iteration = {1.0: 0.0, 2.0: 1.0, 4.0: 3.0, 8.0: 7.0, 16.0: 9.0}
    values = np.array([20 * per_iteration[p] for p in P.tolist()])
    values[(P == 16) & (N == 128)] *= 19 / 20
    _, found = without(values, Options(grids=assumed("p")))
    assert found[0][1].predict((64.0, 512.0)).value == pytest.approx(292.5, rel=0.01)


@pytest.mark.parametrize("place", ["largest", "two"])
def test_what_predictions_follow_is_no_exception(place: str) -> None:
    values = 20 * np.log2(N / P) + 60 / P
    values[(P == 16) & ((N == 256) if place == "largest" else (N <= 64))] += 30
    assert not without(values)[1]


@pytest.mark.filterwarnings("error")
def test_what_was_not_measured_is_no_exception() -> None:
    values = 20 * np.log2(N / P) + 60 / P
    values[(P == 16) & (N == 32)] = 47.5
    values[(P == 8) & (N == 64)] = np.nan
    assert without(values)[1][0][1].predict((64.0, 512.0)).value == pytest.approx(60.9375)


def test_what_is_exact_everywhere_has_none() -> None:
    assert not without(20 * np.log2(N / P) + 60 / P)[1]


def test_counts_that_scatter_by_factors_follow_a_power_law() -> None:
    """Counts from 84 to 77491; the formula with the smallest relative errors has a constant of 147.5."""
    counts = {
        2: (105.0, 84.5, 264, 595),
        4: (281.75, 1310, 1796, 4885),
        8: (1089.25, 4467.9, 12232, 30668),
        16: (2993.9, 14109, 38395, 77491),
    }
    points = np.array(list(product(counts, (8.0, 12.0, 16.0, 20.0))), dtype=float)
    values = np.concatenate([np.array(own, dtype=float) for own in counts.values()])
    (model,) = fit_models(points, values[None, :, None], METRICS["blocks"], ("p", "n"))
    assert isinstance(model, Model)
    assert COUNTS_MISSED.is_in(model.notes)
    found = np.array([predicted(points, values, ("p", "n"), point).value for point in points.tolist()])
    assert np.abs(np.log(found / values)).max() < np.log(4)
    prediction, fewer, smaller = (
        predicted(points, values, ("p", "n"), place) for place in ((32.0, 24.0), (16.0, 24.0), (32.0, 12.0))
    )
    assert prediction.value > 2 * max(fewer.value, smaller.value)  # both exponents are above 1
    assert prediction.lower < prediction.value / 1.2 and prediction.upper > 1.2 * prediction.value
