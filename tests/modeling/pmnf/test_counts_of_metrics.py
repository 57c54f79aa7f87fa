# SPDX-License-Identifier: Apache-2.0
"""Counts of several metrics are modeled like each metric alone, equal counts once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, NoModel, Options, fit_models, to_json
from quipu.modeling.pmnf.modeler import fit_counts
from quipu.modeling.process_grid import assumed

POINTS = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (8.0, 12, 16, 24)])
P, N = POINTS.T
BLOCKS = Metric("blocks", "1", "effort")
EXACT = [3 * N**2 / P + 5, 7 * N * np.log2(P) + 2, np.where(P > 1, 4.0, 0.0), 2 * N * (P - 1) / P, 0 * N, 8 * N + 1]


def _counts(seed: int) -> np.ndarray:
    """Return counts (N, C, 2) of call paths, exact and not, of which some are alike and one was not measured."""
    random = np.random.default_rng(seed)
    inexact = [np.round((N**1.5 + 40 * P) * random.uniform(0.98, 1.02, len(N))) for _ in range(3)]
    rows = np.array([*EXACT, *inexact, np.full(len(N), np.nan)])
    return np.repeat(rows[random.permutation(np.concatenate([np.arange(len(rows)), [0, 3, 6]]))][:, :, None], 2, axis=2)


def _documents(models: Sequence[Model | NoModel]) -> list[object]:
    return [model.reason if isinstance(model, NoModel) else to_json(model) for model in models]


@pytest.mark.parametrize("options", [Options(), Options(grids=assumed("p"))])
def test_models_are_those_of_each_metric_by_itself(options: Options) -> None:
    counts = [_counts(1), _counts(2)[:5], _counts(3)]
    executed = [np.nan_to_num(own[:, :, 0]) > 0 for own in counts]
    for flags in (None, executed):
        together = fit_counts(POINTS, counts, ("p", "n"), options, flags)
        for number, (own, models) in enumerate(zip(counts, together, strict=True)):
            alone = fit_models(POINTS, own, BLOCKS, ("p", "n"), options, None if flags is None else flags[number])
            for one, other in zip(_documents(models), _documents(alone), strict=True):
                assert str(one) == str(other) or one == pytest.approx(other)


def test_call_paths_that_count_the_same_have_the_same_model() -> None:
    twice = np.repeat(_counts(4), 2, axis=0)
    (models,) = fit_counts(POINTS, [twice], ("p", "n"))
    assert all(one == other for one, other in zip(_documents(models[::2]), _documents(models[1::2]), strict=True))


def test_no_metrics_and_wrong_shapes() -> None:
    assert fit_counts(POINTS, [], ("p", "n")) == []
    assert fit_counts(POINTS, [np.empty((0, len(POINTS), 2)), _counts(1)[:1]], ("p", "n"))[0] == []
    with pytest.raises(ModelingError, match="values have shape"):
        fit_counts(POINTS, [_counts(1), _counts(1)[:, :3]], ("p", "n"))
    with pytest.raises(ModelingError, match="as many repetitions"):
        fit_counts(POINTS, [_counts(1), _counts(1)[:, :, :1]], ("p", "n"))
