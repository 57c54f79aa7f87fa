# SPDX-License-Identifier: Apache-2.0
"""Planted cost functions with noise, and changes that must not affect a model."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.data.noise import combine
from quipu.modeling.pmnf.fit.weights import count_weights
from quipu.modeling.pmnf.hypotheses.library import EXPONENTS, Library, forms
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.model.serialize import to_json
from quipu.modeling.pmnf.modeler import fit_models
from quipu.modeling.pmnf.options import NoModel, Options

TIME = Metric("time", "s", "cost")
BLOCKS = Metric("blocks", "1", "effort")


def _grid(*axes: tuple[float, ...]) -> FloatArray:
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def _planted(
    count: int, points: FloatArray, far: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray, list[list[Fraction]]]:
    """Return values at `points` and at `far` of random sums and products with exponents of the library."""
    random = np.random.default_rng(seed)
    everywhere = np.concatenate([points, far[None]])
    values, exponents = [], []
    for number in range(count):
        constant, total, own = random.uniform(1, 1000), np.zeros(len(everywhere)), []
        product = np.ones(len(everywhere))
        for column in everywhere.T:
            i, j = EXPONENTS[random.integers(1, len(EXPONENTS))], int(random.integers(0, 3))
            part = random.uniform(1, 1000) * column ** float(i) * np.log2(column) ** j
            total, product = total + part, product * part
            own.append(i)
        values.append(constant + (total if number % 2 else product))
        exponents.append(own)
    table = np.array(values)
    return table[:, :-1], table[:, -1], exponents


def _noisy(values: FloatArray, noise: float, repetitions: int, seed: int) -> FloatArray:
    random = np.random.default_rng(seed)
    repeated = np.repeat(values[:, :, None], repetitions, axis=2)
    return repeated * (1 + noise * random.uniform(-1, 1, repeated.shape))


def _hits(models: list[Model | NoModel], far: FloatArray, truth: FloatArray) -> float:
    predicted = np.array([m.predict(far.tolist()).value for m in models if isinstance(m, Model)])
    assert len(predicted) == len(truth)
    return float((np.abs(predicted / truth - 1) <= 0.05).mean())


ONE = _grid((4.0, 8, 16, 32, 64))
TWO = _grid((4.0, 8, 16, 32, 64), (10.0, 20, 30, 40, 50))


@pytest.mark.parametrize(("noise", "least"), [(0.02, 0.97), (0.05, 0.93), (0.1, 0.8)])
def test_one_parameter(noise: float, least: float) -> None:
    far = np.array([128.0])
    values, truth, exponents = _planted(400, ONE, far, 1)
    models = fit_models(ONE, _noisy(values, noise, 5, 2), TIME, ("p",))
    assert _hits(models, far, truth) >= least
    leads = [m.lead("p")[0] for m in models if isinstance(m, Model)]
    close = [abs(lead - own[0]) <= Fraction(1, 4) for lead, own in zip(leads, exponents, strict=True)]
    assert np.mean(close) >= 0.85


@pytest.mark.parametrize("dense", [True, False])
def test_two_parameters(dense: bool) -> None:
    points = TWO if dense else TWO[(TWO[:, 0] == 4) | (TWO[:, 1] == 10)]
    far = np.array([128.0, 60.0])
    values, truth, _ = _planted(60, points, far, 3)
    models = fit_models(points, _noisy(values, 0.05, 5, 4), TIME, ("p", "n"))
    assert _hits(models, far, truth) >= (0.95 if dense else 0.5)


def test_three_parameters() -> None:
    points = _grid((4.0, 8, 16, 32), (10.0, 20, 30, 40), (1000.0, 2000, 3000, 4000))
    far = np.array([64.0, 50.0, 5000.0])
    values, truth, _ = _planted(20, points, far, 5)
    models = fit_models(points, _noisy(values, 0.05, 3, 6), TIME, ("p", "n", "s"))
    assert _hits(models, far, truth) >= 0.9


def test_values_without_noise() -> None:
    far = np.array([128.0, 60.0])
    values, truth, _ = _planted(100, TWO, far, 15)
    assert _hits(fit_models(TWO, values[:, :, None], TIME, ("p", "n")), far, truth) == 1.0


@pytest.mark.parametrize("dense", [True, False])
def test_four_parameters_with_much_noise(dense: bool) -> None:
    """Products need all four functions at once; intervals must cover functions that the search misses."""
    points = _grid((4.0, 8, 16, 32), (10.0, 20, 30, 40), (1000.0, 2000, 3000, 4000), (2.0, 4, 6, 8))
    if not dense:
        points = points[(points == points.min(axis=0)).sum(axis=1) >= 3]
    far = np.array([64.0, 50, 5000, 10])
    values, truth, _ = _planted(80, points, far, 16)
    models = fit_models(points, _noisy(values, 0.1, 5, 17), TIME, ("p", "n", "s", "t"))
    assert _hits(models, far, truth) >= (0.97 if dense else 0.6)
    predictions = [m.predict(far.tolist()) for m in models if isinstance(m, Model)]
    inside = [p.lower <= true <= p.upper for p, true in zip(predictions, truth, strict=True)]
    assert np.mean(inside) >= 0.8


def test_models_are_not_low_where_there_is_noise() -> None:
    """Weights from noisy values would make them low by twice the variance of the noise, 0.5 % here."""
    values = np.full((200, TWO.shape[0]), 7.0)
    models = fit_models(TWO, _noisy(values, 0.2, 5, 18), TIME, ("p", "n"))
    constants = [m.constant for m in models if isinstance(m, Model) and m.is_constant]
    assert len(constants) > 150
    assert np.mean(constants) == pytest.approx(7.0, rel=2e-3)


def test_parameters_without_effect_are_left_out() -> None:
    values = (5 + 2 * TWO[:, 1] ** 2)[None] * np.ones((100, 1))
    models = fit_models(TWO, _noisy(values, 0.05, 3, 8), TIME, ("p", "n"))
    without = [m.lead("p") == (0, 0) for m in models if isinstance(m, Model)]
    assert np.mean(without) >= 0.9


def test_strong_scaling() -> None:
    values = (1e-3 * TWO[:, 1] ** 2 / TWO[:, 0])[None] * np.ones((50, 1))
    for model in fit_models(TWO, _noisy(values, 0.03, 3, 9), TIME, ("p", "n")):
        assert isinstance(model, Model)
        assert model.at(p=128, n=60) == pytest.approx(3.6 / 128, rel=0.2)


def test_scattered_points() -> None:
    random = np.random.default_rng(10)
    points = np.stack([random.uniform(2, 64, 20), random.uniform(10, 100, 20)], axis=1)
    values = np.stack([3 + 0.1 * points[:, 1] * points[:, 0], 5 + points[:, 1] ** 2])
    product, square = fit_models(points, _noisy(values, 0.01, 3, 11), TIME, ("p", "n"))
    assert isinstance(product, Model) and isinstance(square, Model)
    assert product.at(p=128, n=200) == pytest.approx(2563, rel=0.1)
    assert square.at(p=128, n=200) == pytest.approx(40005, rel=0.1)


def test_points_with_more_repetitions_count_more_but_not_beyond_what_repetitions_explain() -> None:
    counts = np.array([[4.0, 1.0, 1.0, 4.0]])
    one, nothing = np.array([0.01]), np.array([0.0])
    assert count_weights(np.full((1, 4), 3.0)) == pytest.approx(np.ones((1, 4)))
    assert count_weights(counts)[0, 0] == pytest.approx(2.0 * count_weights(counts)[0, 1])
    assert count_weights(counts, one, np.array([1e3])) == pytest.approx(np.ones((1, 4)), rel=1e-4)
    assert count_weights(counts, nothing, nothing) == pytest.approx(np.ones((1, 4)))

    points = np.array([[2.0], [4], [8], [16], [32], [64]])
    counts = np.where(np.arange(6) == 4, 1, 8)
    values = 3 * points[None] * np.ones((200, 6, 8)) * (1 + 0.1 * np.random.default_rng(5).uniform(-1, 1, (200, 6, 8)))
    values = np.where(np.arange(8) < counts[:, None], values, np.nan)
    means = np.nanmean(values, axis=2, keepdims=True)
    spread = [
        np.mean(
            [
                abs(model.at(x=256) / 768 - 1)
                for model in fit_models(points, own, TIME, ("x",))
                if isinstance(model, Model)
            ]
        )
        for own in (values, means)
    ]
    assert spread[0] < 0.9 * spread[1]


def test_an_outlier_among_repetitions_does_no_harm() -> None:
    values = _noisy((1e-3 * ONE[:, 0])[None], 0.02, 5, 12)
    spoiled = values.copy()
    spoiled[0, 4, 2] *= 30
    clean, robust = (fit_models(ONE, v, TIME, ("p",))[0] for v in (values, spoiled))
    assert isinstance(clean, Model) and isinstance(robust, Model)
    assert robust.at(p=128) == pytest.approx(clean.at(p=128), rel=0.05)


def test_wide_noise_has_no_outliers_on_one_side() -> None:
    """Of times between 0 and twice the mean, five may have a median near 0; the large ones are valid, too."""
    random = np.random.default_rng(11)
    truth = ONE[:, 0] ** 2
    values = truth[:, None] * random.uniform(0.0, 2.0, (400, len(ONE), 5))
    missing = combine(values).centre / values.mean(axis=2) < 0.75
    assert missing.mean() < 0.01
    growing = [model for model in fit_models(ONE, values, TIME, ("p",)) if isinstance(model, Model) and model.terms]
    assert len(growing) >= 0.97 * len(values)


@pytest.mark.parametrize(("noise", "factor"), [(0.02, 1.5), (0.1, 3.0), (0.3, 10.0), (1.0, 1000.0)])
def test_single_disturbed_repetitions_are_left_out(noise: float, factor: float) -> None:
    random = np.random.default_rng(7)
    clean = random.uniform(1 - noise, 1 + noise, (300, len(ONE), 5))
    disturbed = np.arange(5) == random.integers(0, 5, (300, 1, 1))
    disturbed = disturbed & (np.arange(len(ONE)) == 2)[:, None]
    centre = combine(np.where(disturbed, factor * clean, clean)).centre[:, 2]
    kept = np.where(disturbed, 0.0, clean).sum(axis=2)[:, 2] / 4.0
    assert (np.abs(centre / kept - 1) < 0.01).mean() > 0.9


def test_intervals_hold_the_truth() -> None:
    far = np.array([128.0])
    values, truth, _ = _planted(300, ONE, far, 13)
    inside = []
    for model, true in zip(fit_models(ONE, _noisy(values, 0.05, 5, 14), TIME, ("p",)), truth, strict=True):
        assert isinstance(model, Model)
        prediction = model.predict(far.tolist())
        assert prediction.extrapolates and prediction.lower <= prediction.value <= prediction.upper
        inside.append(prediction.lower <= true <= prediction.upper)
    assert 0.8 <= np.mean(inside) <= 1.0


_times = st.lists(st.floats(0.1, 100), min_size=5, max_size=5)


@settings(max_examples=25)
@given(_times, st.permutations(range(5)), st.sampled_from([TIME, BLOCKS]))
def test_order_of_points_does_not_matter(times: list[float], order: list[int], metric: Metric) -> None:
    values = np.array(times)[None, :, None]
    (one,) = fit_models(ONE, values, metric, ("p",))
    (other,) = fit_models(ONE[order], values[:, order], metric, ("p",))
    assert isinstance(one, Model) and isinstance(other, Model)
    assert to_json(one) == to_json(other)


@settings(max_examples=25)
@given(_times, st.integers(-40, 40))
def test_units_of_time_do_not_matter(times: list[float], power: int) -> None:
    values = np.array(times)[None, :, None]
    (one,) = fit_models(ONE, values, TIME, ("p",))
    (other,) = fit_models(ONE, values * 2.0**power, TIME, ("p",))
    assert isinstance(one, Model) and isinstance(other, Model)
    assert [t.factors for t in one.terms] == [t.factors for t in other.terms]
    assert other.at(p=100) == pytest.approx(one.at(p=100) * 2.0**power, rel=1e-6)


def test_bad_arguments_are_refused() -> None:
    values = np.ones((1, 5, 1))
    with pytest.raises(ModelingError, match="there are 2 parameters"):
        fit_models(ONE, values, TIME, ("p", "n"))
    with pytest.raises(ModelingError, match="parameter p has a negative"):
        fit_models(-ONE, values, TIME, ("p",))
    with pytest.raises(ModelingError, match="different names"):
        fit_models(TWO, np.ones((1, 25, 1)), TIME, ("p", "p"))
    with pytest.raises(ModelingError, match="expected"):
        fit_models(ONE, np.ones((1, 4, 1)), TIME, ("p",))
    with pytest.raises(ModelingError, match="another unit"):
        fit_models(ONE * 1e40, values, TIME, ("p",))


def test_two_values_are_called_a_guess() -> None:
    (model,) = fit_models(ONE[:2], np.array([[[1.0], [2.0]]]), TIME, ("p",))
    assert isinstance(model, Model)
    assert "guess" in model.notes[0]


def test_forms_of_two_parameters() -> None:
    assert set(forms(2)) == {
        (),
        ((0,),),
        ((1,),),
        ((0, 1),),
        ((0,), (1,)),
        ((0,), (0, 1)),
        ((0, 1), (1,)),
        ((0,), (0, 1), (1,)),
    }
    assert len(forms(5)) == 203


def test_user_defined_library() -> None:
    options = Options(library=Library(exponents=(Fraction(1), Fraction(2)), logarithms=(0,), negative=()))
    (model,) = fit_models(ONE, (ONE[:, 0] ** 1.5)[None, :, None], TIME, ("p",), options)
    assert isinstance(model, Model)
    assert {t.exponents("p") for t in model.terms} <= {(Fraction(1), 0), (Fraction(2), 0)}
    with pytest.raises(ModelingError):
        Library(exponents=())


def test_two_repetitions_that_differ_are_kept_where_others_have_more() -> None:
    """In campaigns that repeat some points; four in two pairs are all far from their median, too."""
    random = np.random.default_rng(5)
    values = 3.0 * ONE.T[:, :, None] ** 2 * (1 + 0.01 * random.normal(size=(1, len(ONE), 4)))
    values[0, 1, :2] *= [1.0, 1.3]
    values[0, 3, :2] *= [1.0, 1.2]
    values[0, [1, 3], 2:] = np.nan
    values[0, 4] *= [1.0, 1.0, 1.4, 1.4]
    repetitions = combine(values)
    assert repetitions.centre[0, [1, 3, 4]] == pytest.approx(3.0 * ONE[[1, 3, 4], 0] ** 2 * [1.15, 1.1, 1.2], rel=0.03)
    (model,) = fit_models(ONE, values, TIME, ("p",))
    assert isinstance(model, Model)
    assert model.at(p=128) == pytest.approx(3.0 * 128**2, rel=0.2)
