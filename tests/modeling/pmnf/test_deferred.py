# SPDX-License-Identifier: Apache-2.0
"""Deferred parts of models: alternatives and covariances, and models at the largest values."""

from __future__ import annotations

import pickle

import numpy as np
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, Options, fit_models, from_json, to_json
from quipu.modeling.pmnf.model import Deferred
from quipu.modeling.pmnf.modeler import fit_with_doubt

TIME = Metric("time", "s", "cost")
POINTS = np.array([2.0, 4, 8, 16, 32])[:, None]


def _noisy(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    random = np.random.default_rng(7)
    values = 3.0 + random.uniform(1, 9, (number, 1, 1)) * POINTS[None]
    return values * (1 + 0.05 * random.uniform(-1, 1, (number, 5, 5)))


def test_a_deferred_tuple_is_made_once_and_is_as_the_tuple() -> None:
    asked: list[int] = []

    def make(number: int) -> tuple[str, ...]:
        asked.append(number)
        return "a", "b", "c"

    lazy = Deferred(make, 4)
    assert not asked
    assert lazy == ("a", "b", "c") and lazy == Deferred(make, 5) and lazy != ("a",)
    assert len(lazy) == 3 and list(lazy) == ["a", "b", "c"] and lazy[1:] == ("b", "c") and "b" in lazy
    assert hash(lazy) == hash(("a", "b", "c")) and repr(lazy) == "('a', 'b', 'c')"
    assert asked == [4, 5]
    copied = pickle.loads(pickle.dumps(lazy))
    assert type(copied) is tuple and copied == lazy


def test_models_are_the_same_in_other_processes_and_in_documents() -> None:
    for model in fit_models(POINTS, _noisy(6), TIME, ["p"]):
        assert isinstance(model, Model)
        assert pickle.loads(pickle.dumps(model)) == model
        again = from_json(to_json(model))
        assert again == model and type(again.covariance) is tuple and type(again.alternatives) is tuple
        assert sum(other.weight for other in model.alternatives) < 1.0
        size = 1 + len(model.terms)
        assert np.shape(model.covariance) == (2 * size + 1, 2 * size + 1)


def test_models_at_the_largest_values_need_no_search_of_their_own() -> None:
    missed = np.where(POINTS.T > 8, 40.0, 2.0)[:, :, None] * np.linspace(0.999, 1.001, 5)
    values = np.concatenate([_noisy(3), missed])
    found = fit_with_doubt(POINTS, values, TIME, ["p"], Options(also_at_largest=True))
    alone = fit_with_doubt(POINTS, values[3:], TIME, ["p"], Options(at_largest=True)).models[0]
    assert list(found.nearest) == [3]
    assert str(found.nearest[3]) == str(alone) != str(found.models[3])
    assert not fit_with_doubt(POINTS, values, TIME, ["p"]).nearest
