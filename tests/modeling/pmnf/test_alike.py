# SPDX-License-Identifier: Apache-2.0
"""Hypotheses that the points do not distinguish."""

from __future__ import annotations

import numpy as np
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, fit_models

TIME = Metric("time", "s", "cost")


def test_on_crossing_lines_a_sum_comes_before_sums_with_a_product() -> None:
    p, n = 2.0 ** np.arange(1, 6), 10.0 * np.arange(1, 6)
    points = np.array([*((each, 10.0) for each in p), *((2.0, each) for each in n[1:])])
    # p·n + n, p·n + p and p + n are the same functions on the lines, with other coefficients
    random = np.random.default_rng(11)
    sizes = random.uniform(1.0, 5.0, (60, 2)) * (20.0, 10.0)
    exact = 30.0 + sizes[:, :1] * points[:, 0] + sizes[:, 1:] * points[:, 1]
    values = exact[:, :, None] * (1.0 + 0.002 * random.uniform(-1, 1, (*exact.shape, 5)))
    models = [model for model in fit_models(points, values, TIME, ("p", "n")) if isinstance(model, Model)]
    products = [model for model in models if any(len(term.factors) > 1 for term in model.terms)]
    assert len(models) == 60 and not products
