# SPDX-License-Identifier: Apache-2.0
"""Models of many parameters use a limited number of them, those that explain the values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import FloatArray
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.many_parameters import MOST_PARAMETERS, influential
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.model.serialize import from_json, to_json
from quipu.modeling.pmnf.modeler import fit_models

NAMES = tuple(f"x{number}" for number in range(16))


def sample(seed: int = 0, configurations: int = 60) -> FloatArray:
    random = np.random.default_rng(seed)
    return random.choice([2.0, 4.0, 8.0, 16.0, 32.0], (configurations, len(NAMES)))


def test_counts_of_two_of_sixteen_parameters_are_exact() -> None:
    points = sample()
    values = np.stack([points[:, 3] ** 2, 7 * points[:, 11], points[:, 0] * points[:, 15]])[:, :, None]
    models = fit_models(points, values, METRICS["visits"], NAMES)
    assert [str(model) for model in models] == ["x3²", "7·x11", "x0·x15"]
    assert all(isinstance(model, Model) and model.parameters == NAMES and not model.notes for model in models)


def test_what_is_not_searched_is_noted() -> None:
    points = sample(1)
    values = points.sum(axis=1)[None, :, None] * np.random.default_rng(2).uniform(0.7, 1.4, (1, 60, 2))
    (model,) = fit_models(points, values, METRICS["time"], NAMES)
    assert isinstance(model, Model)
    (note,) = [note for note in model.notes if "searched together" in note]
    assert note.startswith("16 parameters are too many to be searched together: of ")
    assert "is not modeled (for many parameters: quipu tensor)" in note
    assert model.ranges == ((2.0, 32.0),) * 16
    place = dict.fromkeys(NAMES, 64.0)
    found = model.predict(model.point(place))
    assert found.lower < found.value < found.upper
    again = from_json(json.loads(json.dumps(to_json(model))))
    assert again.predict(again.point(place)) == found
    with pytest.raises(ModelingError, match="missing x0"):
        model.point({})


@pytest.mark.parametrize("seed", range(3))
def test_the_parameters_that_matter_are_found(seed: int) -> None:
    points = sample(seed)
    assert set(influential(points, points[:, 2] * points[:, 9] ** 2 / points[:, 14])) >= {2, 9, 14}
    assert set(influential(points, points[:, 2] - 50 * points[:, 9])) >= {2, 9}
    nothing = influential(points, np.full(60, np.nan))
    assert len(nothing) == MOST_PARAMETERS
    assert len(influential(points[:, :MOST_PARAMETERS], points[:, 0])) == MOST_PARAMETERS


def test_parameters_that_are_constant_do_not_count() -> None:
    points = sample(3)
    points[:, 2:] = 5.0
    assert influential(points, points[:, 0]) == (0, 1)
    (model,) = fit_models(points, (points[:, 0] * 3)[None, :, None], METRICS["visits"], NAMES)
    assert str(model) == "3·x0"
