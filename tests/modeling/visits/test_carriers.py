# SPDX-License-Identifier: Apache-2.0
"""Of many call paths with random visits, few are tried for the counts of one, including the right one."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, Options
from quipu.modeling.visits import by_visits
from quipu.modeling.visits.carriers import may_follow
from quipu.modeling.visits.through_visits import Sum

MANY, CARRIER, LAST = 30, 20, 30
N = np.array([16.0, 24, 32, 40, 48, 64, 80, 96])


def siblings(repetitions: int) -> Experiment:
    """Return a caller of MANY functions that are visited at random, and of one that is once for each of n and 3·v."""
    random = np.random.default_rng(8)
    noise = 1 + 0.05 * random.standard_normal((MANY, len(N), repetitions))
    visits = np.round(100 * N[None, :, None] * noise)
    visits = np.concatenate([np.ones((1, len(N), repetitions)), visits, [3 * visits[CARRIER] + N[:, None]]])
    regions = tuple(Region(name, name) for name in ("main", *(f"f{number}" for number in range(MANY + 1))))
    tree = CallTree(regions, np.arange(MANY + 2), np.array([-1] + [0] * (MANY + 1)))
    metrics = {"visits": METRICS["visits"]}
    return Experiment("siblings", ("n",), N[:, None], tree, metrics, {"visits": visits})


@pytest.mark.parametrize("repetitions", [1, 2, 5])
def test_few_of_many_call_paths_are_tried(repetitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    search = by_visits._sums_of_runs

    def counted(experiment: Experiment, values: FloatArray, visits: FloatArray) -> dict[int, Sum]:
        tried.append(1)
        return search(experiment, values, visits)

    monkeypatch.setattr(by_visits, "_sums_of_runs", counted)
    experiment = siblings(repetitions)
    found = fit_metrics(experiment, experiment.metrics, Options())["visits"]
    carrier, last = found[1 + CARRIER], found[1 + LAST]
    assert isinstance(carrier, Model) and isinstance(last, Model)
    assert last.at(n=512) == pytest.approx(3 * carrier.at(n=512) + 512, rel=1e-9)
    assert len(tried) <= (8 if repetitions < 3 else 1) * MANY


def test_counts_of_other_runs_follow_no_visits() -> None:
    visits = np.array([[[3.0, 5.0, 9.0], [4.0, 4.0, 6.0]], [[3.0, 6.0, 8.0], [4.0, 4.0, 6.0]]])
    assert may_follow(7 + 2 * visits[0], visits).tolist() == [True, False]
    assert may_follow(np.array([[1.0, 1.0, 1.0], [8.0, 9.0, 7.0]]), visits).tolist() == [False, False]
    unknown = np.where(visits == 9, np.nan, visits)
    assert may_follow(7 + 2 * visits[0], unknown).tolist() == [True, False]
