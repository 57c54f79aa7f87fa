# SPDX-License-Identifier: Apache-2.0
"""Metrics and noise of the evaluation: ED, RE, the patterns, and models that the noise does not pull up."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from artificial_noise import Pattern, draw, inject
from priors_accuracy import exponent_deviation
from quipu.modeling.analysis import analyze
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.modeling.pmnf import Factor, Model, Term
from quipu.modeling.priors import PathModel
from quipu.modeling.priors.one_sided import Undisturbed, one_sided_weights

# Mean and standard deviation of each pattern: the densities integrated over [0, 1], with what is clipped at 1.
MOMENTS = {
    Pattern.NONE: (0.0, 0.0),
    Pattern.UNIFORM: (0.5, 0.2887),
    Pattern.TRUNCATED_NORMAL: (0.4598, 0.2827),
    Pattern.SCALED_POISSON: (0.9874, 0.0185),
    Pattern.SCALED_EXPONENTIAL: (0.6321, 0.3581),
}


def _time_models(experiment: Experiment) -> tuple[PathModel, ...]:
    return analyze(experiment).models("time")


@pytest.mark.parametrize("pattern", list(Pattern))
def test_patterns_have_their_moments(pattern: Pattern) -> None:
    found = draw(pattern, (200, 1000), np.random.default_rng(3))
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    mean, deviation = MOMENTS[pattern]
    assert found.mean() == pytest.approx(mean, abs=0.003)
    assert found.std() == pytest.approx(deviation, abs=0.003)


def test_truncated_normal_has_its_density() -> None:
    found = draw(Pattern.TRUNCATED_NORMAL, (100_000,), np.random.default_rng(5))
    low, high = (found < 0.1).mean(), (found > 0.9).mean()
    assert low / high == pytest.approx(np.exp((0.95**2 - 0.05**2) / 2), rel=0.05)


def test_noise_is_relative_additive_and_on_a_share_of_the_values() -> None:
    values = np.array([[1e-6, 5.0, np.nan]] * 10_000)
    noisy = inject(values, Pattern.UNIFORM, 0.75, np.random.default_rng(1), 0.5)
    excess = noisy / values - 1.0
    assert np.isnan(noisy[:, 2]).all()
    assert np.nanmin(excess) >= 0.0
    assert np.nanmax(excess) <= 0.75
    assert (excess[:, :2] == 0).mean() == pytest.approx(0.5, abs=0.02)
    assert (inject(values, Pattern.NONE, 0.75, np.random.default_rng(1))[:, :2] == values[:, :2]).all()


@pytest.mark.parametrize(("intensity", "share"), [(-0.1, 1.0), (0.1, 1.5), (0.1, -1.0), (float("nan"), 0.5)])
def test_impossible_noise_is_refused(intensity: float, share: float) -> None:
    with pytest.raises(ModelingError, match="intensity"):
        inject(np.ones((1, 1)), Pattern.UNIFORM, intensity, np.random.default_rng(0), share)


def test_exponent_deviation_compares_powers_only() -> None:
    model = Model(("p", "n"), 1.0, (Term(2.0, (Factor("n", Fraction(3, 2)),)), Term(1.0, (Factor("p", log=2),))))
    assert exponent_deviation(model.lead("p"), (Fraction(0), 0)) == 0
    assert exponent_deviation(model.lead("n"), (Fraction(1), 1)) == Fraction(1, 2)


@pytest.mark.parametrize("pattern", [pattern for pattern in Pattern if pattern is not Pattern.NONE])
def test_noise_on_half_of_the_values_does_not_pull_models_up(pattern: Pattern) -> None:
    """One measurement per configuration, half of them up to 75 % too long: predictions keep to 10 %."""
    grid = np.array([(p, n) for p in (2.0, 4, 8, 16, 32) for n in (100.0, 200, 300, 400, 500)])
    p, n = grid.T
    random = np.random.default_rng(17)
    paths = 200
    tree = CallTree((Region("f", "f"),), np.zeros(paths, dtype=np.int64), np.full(paths, -1))
    blocks = np.tile(7 + 3 * n**2 * np.log2(p), (paths, 1))[:, :, None]
    values = {"blocks": blocks, "visits": np.ones_like(blocks)}
    values["time"] = inject(2e-9 * blocks, pattern, 0.75, random, 0.5)
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    models = _time_models(Experiment("noisy", ("p", "n"), grid, tree, metrics, values))
    errors = []
    for entry in models:
        assert isinstance(entry.model, Model)
        assert entry.model.leading == {"p": (Fraction(0), 1), "n": (Fraction(2), 0)}
        truth = 2e-9 * (7 + 3 * 600**2 * 6)
        errors.append(abs(float(entry.model.evaluate([[64, 600]])[0]) - truth) / truth)
    assert np.mean(errors) < 0.1


def test_what_all_repetitions_share_is_no_noise() -> None:
    """Two of five sizes always take 2.5 times as long: they count fully; one of ten would count as noise."""
    random = np.random.default_rng(2)
    clean = np.array([[1.0, 1.0, 1.0, 2.5, 2.5] * 2])
    repetitions = clean[:, :, None] * (1 + 0.02 * random.uniform(size=(1, 10, 5)))
    values, lowest = repetitions.reshape(1, -1), Undisturbed.of(repetitions)
    fitted = np.full_like(values, 1.5)
    many = clean.repeat(5, axis=1) > 2
    assert one_sided_weights(values, fitted, undisturbed=lowest)[many].min() > 0.95
    assert one_sided_weights(values, fitted)[many].max() < 0.75
    few = np.ones((1, 50))
    few[:, :5] = 2.5
    assert (
        one_sided_weights(few, np.ones_like(few), undisturbed=Undisturbed.of(few.reshape(1, 10, 5)))[0, :5].max() < 0.1
    )
    late = values.copy()
    late[:, 1::5] *= 1.6  # one repetition of each configuration
    assert one_sided_weights(late, np.where(many, 2.5, 1.0), undisturbed=lowest)[:, 1::5].max() < 0.3


@pytest.mark.parametrize("seed", range(3))
def test_noise_on_half_of_the_repetitions_does_not_hide_between_configurations_that_differ(seed: int) -> None:
    """Configurations deviate by a fifth from the model, and half of the five repetitions of each take 75 % longer."""
    random = np.random.default_rng(seed)
    grid = np.array([(p, n) for p in (2.0, 4, 8, 16, 32) for n in (100.0, 200, 300, 400, 500)])
    blocks = (3 * grid[:, 1] ** 2)[None, :, None]
    off = np.exp(0.2 * random.normal(size=(1, len(grid), 1)))
    times = 2e-9 * blocks * off * np.exp(0.03 * random.normal(size=(1, len(grid), 5)))
    values = {
        "blocks": blocks,
        "visits": np.ones_like(blocks),
        "time": inject(times, Pattern.SCALED_POISSON, 0.75, random, 0.5),
    }
    tree = CallTree((Region("f", "f"),), np.array([0]), np.array([-1]))
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    (entry,) = _time_models(Experiment("noisy", ("p", "n"), grid, tree, metrics, values))
    assert isinstance(entry.model, Model)
    ratio = entry.model.evaluate(grid) / (2e-9 * blocks[0, :, 0])
    assert np.median(ratio) == pytest.approx(np.median(off), rel=0.12)
