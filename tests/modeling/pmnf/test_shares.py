# SPDX-License-Identifier: Apache-2.0
"""Counts of a process's share of a whole: functions of n/p, which sums of functions of n and p only approximate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.options import NoModel

from ..counted import fit_counts

BLOCKS = Metric("blocks", "1", "effort")
GRIDS = {
    "powers of two": [(p, n) for p in (1.0, 2, 4, 8) for n in (400.0, 800, 1200, 1600, 2000)],
    "squares": [(p, n) for p in (4.0, 9, 16, 25, 36) for n in (1000.0, 2000, 3000, 5000, 8000)],
}
FAR = np.array([[64.0, 16000.0], [64.0, 2000.0]])
Function = Callable[[FloatArray, FloatArray], FloatArray]


def fitted(points: FloatArray, counts: FloatArray) -> Model:
    (model,) = fit_counts(points, counts[None, :, None], ("p", "n"))
    assert not isinstance(model, NoModel)
    return model


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda p, n: 20 * n / p * np.log2(n / p) + 86 * n / p,
        lambda p, n: 2 * n / p * np.log2(n / p) - 1.5 * n / p,
        lambda p, n: 3 * n**2 / p * np.log2(n**2 / p),
        lambda p, n: 5 * n / p * np.log2(p) + 7 * n / p,
        lambda p, n: 10 * n * np.log2(n / p) + 3 * n,
    ],
    ids=["sort", "negative", "matrix", "merging", "steps"],
)
def test_functions_of_shares_are_found(function: Function, grid: str) -> None:
    points = np.array(GRIDS[grid])
    model = fitted(points, np.round(function(*points.T)))
    assert model.evaluate(FAR) == pytest.approx(function(*FAR.T), rel=0.005), str(model)


def test_three_numbers_of_parts_do_not_confirm_three_functions_of_them() -> None:
    points = np.array([(p, n) for p in (4.0, 9, 16) for n in (48.0, 96, 144, 192, 240)])
    p, n = points.T
    for exponent in (-0.15, -0.3, -0.45, -0.7):
        assert fitted(points, n * p**exponent).covariance != ()
