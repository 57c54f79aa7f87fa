# SPDX-License-Identifier: Apache-2.0
"""Changes of behaviour, comparison of models, and noise analysis."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Factor, Model, Options, Term, compare, deviations, find_changes, fit_models

TIME = Metric("time", "s", "cost")
P = np.asarray(2.0 ** np.arange(1, 11), np.float64)


def _noisy(values: FloatArray, noise: float, seed: int, repetitions: int = 5) -> FloatArray:
    random = np.random.default_rng(seed)
    return values[..., None] * (1 + noise * random.uniform(-1, 1, (*values.shape, repetitions)))


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_an_algorithm_that_switches(noise: float) -> None:
    """Logarithmic up to 64 processes, linear from 128 on."""
    exact = np.where(P <= 64, 3 + 2 * np.log2(P), 0.5 * P)
    found = find_changes(P[:, None], _noisy(np.repeat(exact[None], 20, axis=0), noise, 1), TIME, ("p",))
    right = [c is not None and c.parameter == "p" and (c.last, c.first) == (64, 128) for c in found]
    assert np.mean(right) >= 0.8
    change = next(c for c in found if c is not None and c.last == 64)
    assert change.below.lead("p")[0] < 1 and change.above.lead("p") == (1, 0)
    assert str(change).startswith("changes between p=64 and p=128: ")


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_predictions_follow_the_last_behaviour(noise: float) -> None:
    exact = np.where(P <= 32, 100 + 20 * np.log2(P), 0.5 * P)
    values = _noisy(np.repeat(exact[None], 10, axis=0), noise, 1)
    for model in fit_models(P[:, None], values, TIME, ("p",)):
        assert isinstance(model, Model)
        assert model.predict((4096.0,)).value == pytest.approx(2048, rel=0.1)
        assert any(note.startswith("holds from p=64 on, where the behaviour changes: ") for note in model.notes)
        assert model.ranges == ((64.0, 1024.0),)


def test_what_seems_a_change_may_be_none() -> None:
    """Configurations deviate by more than their repetitions: functions of ranges fit by coincidence."""
    random = np.random.default_rng(5)
    ranks, far = np.asarray(2.0 ** np.arange(1, 13), np.float64), 2.0**13
    power, rest = -random.uniform(0.4, 0.9, (300, 1)), random.uniform(0.0, 0.1, (300, 1))
    times = (ranks**power + rest) * np.exp(0.03 * random.standard_normal((300, ranks.size)))
    held = []
    truth = (far**power + rest)[:, 0].tolist()
    for model, true in zip(fit_models(ranks[:, None], _noisy(times, 0.005, 6), TIME, ("p",)), truth, strict=True):
        assert isinstance(model, Model)
        if any("where the behaviour changes" in note for note in model.notes):
            prediction = model.predict((far,))
            held.append(prediction.lower <= true <= prediction.upper)
    assert len(held) > 50
    assert np.mean(held) > 0.9


def test_the_last_of_several_behaviours_is_followed() -> None:
    """Sizes that exceed one cache after the other, and a program that allocates differently from 64 elements on."""
    sizes = np.asarray(2.0 ** np.arange(24), np.float64)
    per_element = np.where(sizes < 2**12, 1e-9, np.where(sizes < 2**18, 3e-9, 8e-9))
    values = _noisy(np.repeat((per_element * sizes + np.where(sizes < 64, 1e-6, 2e-5))[None], 3, axis=0), 0.02, 4, 10)
    for model in fit_models(sizes[:, None], values, TIME, ("n",)):
        assert isinstance(model, Model)
        assert model.at(n=2.0**26) == pytest.approx(8e-9 * 2**26, rel=0.03)
        assert model.ranges[0][0] >= 2**17
        assert sum("where the behaviour changes" in note for note in model.notes) == 1
    for change in find_changes(sizes[:, None], values, TIME, ("n",)):
        assert change is not None
        assert change.first >= 2**17
        assert change.model_at({"n": 2.0**26}).at(n=2.0**26) == pytest.approx(8e-9 * 2**26, rel=0.03)


def test_one_behaviour_is_followed_as_a_whole() -> None:
    exact = np.repeat(3 * P[None] + 7, 50, axis=0)
    found = fit_models(P[:, None], _noisy(exact, 0.05, 5), TIME, ("p",))
    assert all(isinstance(model, Model) and model.ranges == ((2.0, 1024.0),) for model in found)
    changed = _noisy(np.where(P <= 32, 100 + 20 * np.log2(P), 0.5 * P)[None], 0.01, 1)
    few = slice(4, 9)  # once each, too few to say what is noise
    (alone,) = fit_models(P[few, None], changed[:, few, :1], TIME, ("p",))
    assert isinstance(alone, Model) and alone.ranges == ((32.0, 512.0),)
    (other,) = fit_models(P[:, None], changed, TIME, ("p",), Options(selector="extra-p"))
    assert isinstance(other, Model) and other.ranges == ((2.0, 1024.0),)


def test_a_change_that_single_runs_show_is_followed() -> None:
    changed = _noisy(np.repeat(np.where(P <= 32, 100 + 20 * np.log2(P), 0.5 * P)[None], 10, axis=0), 0.01, 1, 1)
    for model in fit_models(P[:, None], changed, TIME, ("p",)):
        assert isinstance(model, Model)
        assert model.ranges == ((64.0, 1024.0),)
        assert model.at(p=4096) == pytest.approx(2048, rel=0.1)


def test_single_runs_that_scatter_are_not_divided_where_functions_fit_by_luck() -> None:
    """Two or three coefficients fit three or four values by coincidence; single runs do not show this."""
    few = P[:7]
    scattered = few * np.log2(2 * few) * (1 + 0.02 * np.random.default_rng(7).standard_normal((60, few.size)))
    assert find_changes(few[:, None], scattered[..., None], TIME, ("p",)) == [None] * 60
    exact = np.where(few <= 8, 5.0, 3 + 2 * few)
    assert find_changes(few[:, None], exact[None, :, None], TIME, ("p",)) != [None]


def test_one_behaviour_is_not_divided() -> None:
    random = np.random.default_rng(2)
    exponents = random.choice([0.5, 1.0, 1.5, 2.0], 100)
    exact = random.uniform(1, 100, (100, 1)) + random.uniform(1, 100, (100, 1)) * P[None] ** exponents[:, None]
    found = find_changes(P[:, None], _noisy(exact, 0.05, 3), TIME, ("p",))
    assert np.mean([change is None for change in found]) >= 0.95


def test_too_few_values_to_divide() -> None:
    values = _noisy(np.array([[1.0, 2, 3, 100, 200]]), 0.0, 0)
    assert find_changes(P[:5, None], values, TIME, ("p",)) == [None]


def test_comparison_of_models() -> None:
    linear = Model(("p",), 1.0, (Term(2.0, (Factor("p", Fraction(1)),)),))
    other = Model(("p",), 0.0, (Term(2.0, (Factor("p", Fraction(3, 2), 1),)),))
    result = compare(other, linear, [4.0])
    assert result.exponents == {"p": 0.5} and result.logarithms == {"p": 1}
    assert result.exponent_distance == 0.5 and not result.same_order
    assert result.relative_error == pytest.approx(32 / 9 - 1)
    assert compare(linear, linear, [7.0]).same_order
    with pytest.raises(ModelingError, match="cannot be compared"):
        compare(linear, Model(("n",), 1.0), [4.0])


def test_deviations_from_the_mean() -> None:
    quiet, loud, single = (_noisy(np.ones((1, 8)), noise, 4, n) for noise, n in ((0.01, 5), (0.8, 5), (0.1, 1)))
    (calm,) = deviations(quiet)
    assert calm.level == pytest.approx(0.005, rel=0.3) and not calm.warning
    assert calm.standard == pytest.approx(0.01 / np.sqrt(3), rel=0.3)
    assert calm.worst <= 0.02 and calm.repetitions == (5, 5)
    assert "cannot support" in deviations(loud)[0].warning
    assert "no repetitions" in deviations(single)[0].warning
    spike = quiet.copy()
    spike[0, 3, 2] = 4.0
    assert deviations(spike)[0].worst_point == 3
    assert deviations(np.full((1, 2, 2), np.nan))[0].warning == "not measured"
