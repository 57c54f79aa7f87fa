# SPDX-License-Identifier: Apache-2.0
"""Residuals of small sets of functions, and models of counts that are independent of other call paths."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, fit_models
from quipu.modeling.pmnf.fit.projection import residual_bases, residual_makers, squared_residuals, squares_left

X = np.array([2.0, 4, 8, 16, 32])
TABLE = np.stack([X, X**2, np.log2(X), X**0.5]) / np.array([[32.0], [1024], [5], [32**0.5]])
PAIRS = np.array(list(combinations(range(4), 2)))


@pytest.mark.parametrize("size", [1e2, 1e6, 1e9])
def test_squares_of_residuals_are_those_of_least_squares(size: float) -> None:
    random = np.random.default_rng(1)
    exact = size * (3 * TABLE[0] + random.uniform(1, 5, (20, 3, 1)) * TABLE[2])
    values = exact + random.uniform(-0.5, 0.5, exact.shape)
    found = squared_residuals(residual_makers(TABLE, PAIRS), values, 300.0)
    for path in range(len(values)):
        for number, pair in enumerate(PAIRS):
            columns = np.stack([np.ones(5), *TABLE[pair]], axis=1)
            rest = values[path].T - columns @ np.linalg.lstsq(columns, values[path].T, rcond=None)[0]
            true = float((rest**2).sum())
            if true > 301.0:
                assert found[path, number] == np.inf
            elif true < 299.0:
                assert found[path, number] == pytest.approx(true, rel=1e-3, abs=2e-3)
    left = squares_left(residual_bases(TABLE, PAIRS), values[:, 0])
    assert left[:, 1] == pytest.approx(
        squared_residuals(residual_makers(TABLE, PAIRS), values[:, :1], 1e9)[:, 1], abs=1e-2
    )


def test_models_of_counts_do_not_depend_on_the_call_paths_beside_them() -> None:
    random = np.random.default_rng(2)
    points = np.array([(p, n) for p in (1.0, 2, 4, 8) for n in (4096.0, 8192, 16384, 32768)])
    p, n = points.T
    kinds = [
        3 * n * p + 7,
        np.ceil(n / p) + 2,
        n * np.log2(p) * random.normal(1, 0.01, len(p)) + n,
        np.ceil(n**0.5 / 3),
    ]
    values = np.round(np.stack(kinds * 5))[:, :, None]
    blocks = Metric("blocks", "1", "effort")
    together = fit_models(points, values, blocks, ("p", "n"))
    for number in range(len(kinds)):
        (alone,) = fit_models(points, values[number : number + 1], blocks, ("p", "n"))
        beside = together[number + len(kinds)]
        assert isinstance(alone, Model) and isinstance(beside, Model)
        assert str(alone) == str(beside)
