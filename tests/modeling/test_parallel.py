"""Models do not depend on who fits them, but for the last digits of sums."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from quipu.agent.cli.jobs import modeling_by
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import NoModel, fit_models
from quipu.modeling.pmnf.parallel import LEAST_BATCH, batches, distributed

TIME = Metric("time", "s", "cost")
P = np.array([4.0, 8, 16, 32, 64])


def _texts(values: np.ndarray, executed: np.ndarray) -> list[object]:
    models = fit_models(P[:, None], values, TIME, ("p",), executed=executed)
    return [model.reason if isinstance(model, NoModel) else str(model) for model in models]


def test_models_of_workers_are_the_same() -> None:
    random = np.random.default_rng(0)
    values = random.uniform(1, 9, (3 * LEAST_BATCH, 1, 1)) * P[None, :, None] + random.uniform(
        0, 1, (3 * LEAST_BATCH, 5, 3)
    )
    executed = random.random((3 * LEAST_BATCH, 5)) > 0.05
    alone = _texts(values, executed)
    with ThreadPoolExecutor(3) as pool, distributed(pool.map, 3):
        assert _texts(values, executed) == alone
    with modeling_by("2"):
        assert _texts(values, executed) == alone


def test_batches_hold_every_path_once() -> None:
    for paths in (500, 501, 9999):
        found = np.concatenate([np.arange(paths)[part] for part in batches(paths, 4)])
        assert (found == np.arange(paths)).all()


@pytest.mark.parametrize("jobs", ["0", "-1", "many", ""])
def test_bad_numbers_of_jobs(jobs: str) -> None:
    with pytest.raises(ModelingError, match="number of processes"), modeling_by(jobs):
        pass
