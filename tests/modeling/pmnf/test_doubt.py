# SPDX-License-Identifier: Apache-2.0
"""Intervals and notes where measurements leave something open; models beyond one function per parameter."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.catalogue import COUNTS_MISSED, TIMES_MISSED
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, add, fit_models, from_json, to_json
from quipu.modeling.pmnf.model import evaluate
from quipu.modeling.pmnf.options import DEFAULT

TIME = Metric("time", "s", "cost")
BLOCKS = Metric("blocks", "1", "effort")
P = np.array([2.0, 4, 8, 16, 32, 64])[:, None]


def _model(points: FloatArray, exact: FloatArray, noise: float, names: tuple[str, ...] = ("p",)) -> Model:
    random = np.random.default_rng(3)
    values = exact[None, :, None] * (1 + noise * random.uniform(-1, 1, (1, len(exact), 5)))
    (model,) = fit_models(points, values, TIME if noise else BLOCKS, names)
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_parameters_that_change_together_are_not_told_apart(noise: float) -> None:
    points = np.concatenate([P, 2 * P], axis=1)
    model = _model(points, 3 * points[:, 1], noise, ("p", "n"))
    assert any("p, n change together" in note for note in model.notes)
    on, off = model.predict((128, 256)), model.predict((512, 5))
    assert on.upper / on.lower < 1.5
    assert off.lower < 15 and off.upper > 1536  # 3·n is 15, and what it is there, 6·p, is 3072


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_parameter_that_is_0_somewhere_is_known_like_others(noise: float) -> None:
    points = np.array([0.0, 1, 2, 4, 8, 16])[:, None]
    assert _model(points, points[:, 0] + 1, noise).notes == ()
    tied = _model(np.concatenate([points, 3 * points], axis=1), points[:, 0] + 1, noise, ("p", "n"))
    assert any("p, n change together" in note for note in tied.notes)
    alone = _model(np.concatenate([points, np.zeros_like(points)], axis=1), points[:, 0] + 1, noise, ("p", "n"))
    assert any("one value of n" in note for note in alone.notes)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_parameter_with_one_value_is_open(noise: float) -> None:
    points = np.concatenate([P, np.full_like(P, 100.0)], axis=1)
    model = _model(points, 3 * points[:, 0] + 7, noise, ("p", "n"))
    assert any("one value of n" in note for note in model.notes)
    here, there = model.predict((64, 100)), model.predict((64, 200))
    assert here.upper / here.lower < 1.2 and there.upper / there.lower > 3


def test_one_configuration_says_nothing_of_growth() -> None:
    model = _model(np.array([[4.0]]), np.array([0.271]), 0.02)
    assert model.predict((4,)).upper < 0.3
    assert model.predict((4096,)).upper > 271


def test_a_form_that_misses_says_so_and_widens_its_interval() -> None:
    model = _model(P, np.exp(P[:, 0] / 10), 0.005)
    assert TIMES_MISSED.is_in(model.notes)
    prediction = model.predict((128,))
    assert prediction.upper / prediction.lower > 4


@pytest.mark.parametrize(
    "form",
    [
        lambda p: 1000 / p + 2 * p,
        lambda p: 300 / p + 20 * np.log2(p),
        lambda p: 5 - 4 / p,
        lambda p: p**3 / 900 + 5 * p,
    ],
)
def test_sums_of_two_functions_of_one_parameter(form: Callable[[float | FloatArray], FloatArray]) -> None:
    prediction = _model(P, form(P[:, 0]), 0.01).predict((128,))
    assert prediction.value == pytest.approx(form(128.0), rel=0.06)
    assert prediction.lower <= form(128.0) <= prediction.upper


def test_predictions_follow_the_printed_model() -> None:
    random = np.random.default_rng(4)
    values = 7 * (1 + 0.1 * random.uniform(-1, 1, (200, 6, 5)))
    off = 0
    for model in fit_models(P, values, TIME, ("p",)):
        assert isinstance(model, Model)
        prediction = model.predict((1024,))
        assert prediction.value == model.at(p=1024)
        assert prediction.lower <= prediction.value <= prediction.upper
        off += abs(prediction.value / 7 - 1) > 0.2
    assert off <= 4


def test_sums_and_products_of_scattered_points() -> None:
    random = np.random.default_rng(5)
    logarithms = random.uniform(np.log([2.0, 10.0, 100.0]), np.log([64.0, 160.0, 1600.0]), (45, 3))
    points: FloatArray = np.round(np.exp(logarithms)).astype(np.float64)
    p, n, s = points.T
    exact = np.stack([3 * s + n * np.log2(p), n**1.5 * s + 40 * p**2, 5 * n + 0.1 * p * s, n**2 / p + s])
    far = np.array([[128.0, 320, 3200]])
    truth = [3 * 3200 + 320 * 7, 320**1.5 * 3200 + 40 * 128**2, 5 * 320 + 12.8 * 3200, 320**2 / 128 + 3200]
    for model, true in zip(fit_models(points, exact[:, :, None], TIME, ("p", "n", "s")), truth, strict=True):
        assert isinstance(model, Model)
        assert model.evaluate(far)[0] == pytest.approx(true, rel=0.01)


def test_open_exponents_survive_json_and_sums() -> None:
    model = _model(P, 3 * P[:, 0] + 100, 0.05)
    again = from_json(json.loads(json.dumps(to_json(model))))
    assert again.predict((512,)) == model.predict((512,))
    error = model.standard_error((512,))
    assert add([model, model]).standard_error((512,)) == pytest.approx(2**0.5 * error, rel=1e-6)


def test_sums_of_models_of_one_size_are_as_sure_as_their_parts() -> None:
    """The dependence on n is not determined; at the measured n this causes no uncertainty, for any growth in p."""
    points = np.concatenate([P, np.full_like(P, 4096.0)], axis=1)
    steep, flat = (_model(points, 1e-3 * P[:, 0] ** power + 0.05, 0.05, ("p", "n")) for power in (2, 0.5))
    whole = add([steep, flat])
    for p in (64, 512):
        parts = [model.standard_error((p, 4096)) ** 2 for model in (steep, flat)]
        assert whole.standard_error((p, 4096)) ** 2 == pytest.approx(sum(parts), rel=0.6)
    assert whole.standard_error((64, 8192)) > 5 * whole.standard_error((64, 4096))


def test_split_posteriors_are_printed_by_their_median() -> None:
    random = np.random.default_rng(5)
    points = np.array([4.0, 8, 16, 32, 64])[:, None]
    exact = 900 + 200 * np.log2(points[:, 0])
    values = exact[None, :, None] * (1 + 0.1 * random.uniform(-1, 1, (300, 5, 5)))
    models = [model for model in fit_models(points, values, TIME, ("p",)) if isinstance(model, Model)]
    splits = 0
    for model in models:
        first = 1 - sum(other.weight for other in model.alternatives)
        seen = [other for other in model.alternatives if not other.hidden]
        if first < max((other.weight for other in seen), default=0.0):
            splits += 1
            own = model.at(p=128)
            below = sum(o.weight for o in seen if evaluate(("p",), o.constant, o.terms, [[128]])[0] < own)
            half = 0.5 * (first + sum(other.weight for other in seen))
            assert below <= half <= below + first
    assert splits > 5


def test_single_functions_are_rarely_taken_for_sums() -> None:
    random = np.random.default_rng(8)
    points = np.array([4.0, 8, 16, 32, 64])[:, None]
    exact = 300 + 40 * points[:, 0] ** 0.5 * np.log2(points[:, 0])
    values = exact[None, :, None] * (1 + 0.05 * random.uniform(-1, 1, (300, 5, 5)))
    models = [model for model in fit_models(points, values, TIME, ("p",)) if isinstance(model, Model)]
    assert sum(len(model.terms) > 1 for model in models) <= 6


def test_a_new_configuration_may_miss_by_as_much_as_the_measured_ones_do() -> None:
    """Times alternate between two algorithms at odd powers of two, each measured precisely."""
    p: FloatArray = np.asarray(2.0 ** np.arange(1, 13)[:, None], dtype=np.float64)
    exact = 5 * p[:, 0] * (1 + 0.08 * (-1.0) ** np.arange(12))
    model = _model(p, exact, 0.002)
    inside = [model.predict(tuple(x)) for x in p.tolist()]
    held = [own.lower <= value <= own.upper for own, value in zip(inside, exact.tolist(), strict=True)]
    assert sum(held) >= 10
    assert inside[-1].upper / inside[-1].lower < 1.6
    assert TIMES_MISSED.is_in(model.notes)


def test_a_constant_that_misses_the_counts_says_so() -> None:
    """Square grids of processes need fewer steps than oblong ones; deviations of 2 % are ignored."""
    points = np.array([1.0, 2, 4, 8, 16, 32])[:, None]
    by_shape, nearly = np.array([[240.0, 348, 240, 348, 240, 348], [240.0, 243, 240, 243, 240, 243]])
    far, near = (fit_models(points, own[None, :, None], BLOCKS, ("p",))[0] for own in (by_shape, nearly))
    assert isinstance(far, Model) and isinstance(near, Model)
    assert not far.terms and COUNTS_MISSED(percent=18.1) in far.notes
    assert not any("misses" in note for note in near.notes)


def test_a_model_does_not_have_the_misfit_of_another_one() -> None:
    """The loads of all visits are more predictable than the number of visits."""
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16, 32) for n in (100.0, 200, 300)])
    visits = np.where(np.log2(points[:, 0]) % 2 == 0, 24.0, 35.0)
    loads = 50.0 * points[:, 1] ** 2 + 2.0 * visits
    tree = CallTree((Region("main", "main"),), np.zeros(1, dtype=int), np.array([-1]))
    values = {name: own[None, :, None] for name, own in (("visits", visits), ("loads", loads), ("flops", 0 * visits))}
    experiment = Experiment("v", ("p", "n"), points, tree, {name: METRICS[name] for name in values}, values)
    found = fit_metrics(experiment, list(values), DEFAULT)
    notes = {name: own[0].notes for name, own in found.items() if isinstance(own[0], Model)}
    said = {name: COUNTS_MISSED.is_in(own) for name, own in notes.items()}
    assert said == {"visits": True, "loads": False, "flops": False}
