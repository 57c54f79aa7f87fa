# SPDX-License-Identifier: Apache-2.0
"""Counts of levels of a rank's part of a domain divided by a chain of ranks, log2(n/p)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.process_grid import ProcessGrid

VISITS = Metric("visits", "1", "effort")
CHAIN = ProcessGrid("p", "balanced", 1, "of messages")
POINTS = np.array(list(product([1.0, 2, 4, 8], [32.0, 64, 128, 256])))


def model_of(values: FloatArray) -> Model:
    (model,) = fit_models(POINTS, values[None, :, None], VISITS, ("p", "n"), Options(grids=(CHAIN,)))
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(("each", "alone", "once"), [(5.0, 5.0, 0.0), (20.0, 20.0, 20.0), (2.0, 6.0, 0.0)])
def test_levels_of_a_share(each: float, alone: float, once: float) -> None:
    """A cycle ends where a rank has one row; one process, which has no neighbour, ends before."""
    p, n = POINTS.T
    model = model_of(each * np.log2(n / p) + alone * (p > 1) + once)
    assert model.at(p=32, n=1024) == pytest.approx(each * 5 + alone + once)


def test_what_is_no_level_of_a_share_stays_what_it_is() -> None:
    p, n = POINTS.T
    assert model_of(3 * np.log2(n) + 8 * (p - 1) / p).at(p=64, n=1024) == pytest.approx(30 + 8 * 63 / 64)
