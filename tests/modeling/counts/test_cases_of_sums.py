# SPDX-License-Identifier: Apache-2.0
"""The laws that a formula keeps as alternatives have the interval of the prediction."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from quipu.modeling.counts.distribution import Distribution
from quipu.modeling.counts.program import Model, fit

POINTS = np.array(list(itertools.product((1.0, 2.0, 4.0), (16.0, 24.0, 32.0, 48.0))))


def test_alternatives_of_a_sum_have_the_quantiles_of_its_prediction() -> None:
    p, n = POINTS.T
    few_ranks = np.where(p == 1, 0.0, np.where(p == 2, 72.0, 240.0))  # several laws explain three values
    vectors = [few_ranks, 8 * n * (p - 1), 5 * n * p + 3 * n * np.log2(p)]
    model = Model.total([(1.0, own) for own in fit(POINTS, ["p", "n"], vectors)])
    far = (16.0, 64.0)
    predicted = model.at(far)
    assert predicted.values.size > 5
    values, weights = [], []
    for law in model.cases(far):
        grid = next(own for own in model.program.grids.values() if own.grid == law.grid)
        values.append(sum(case.value(grid.place(far)) for case in law.parts))
        weights.append(law.weight)
    kept = Distribution(np.array(values), np.array(weights))
    for share in (0.05, 0.5, 0.95):
        assert kept.quantile(share) == pytest.approx(predicted.quantile(share), rel=0.05)
