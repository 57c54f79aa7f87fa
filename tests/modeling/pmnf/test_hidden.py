# SPDX-License-Identifier: Apache-2.0
"""Parameters that never change together: hidden terms widen intervals and cause a note."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, NoModel, fit_models
from quipu.modeling.pmnf.crossing.hidden import _means, never_together
from quipu.modeling.pmnf.model.serialize import from_json, to_json

TIME = Metric("time", "s", "cost")
BLOCKS = Metric("blocks", "1", "effort")
GRID = np.array([(p, n) for p in (4.0, 8, 16, 32, 64) for n in (10.0, 20, 30, 40, 50)])
LINES = GRID[(GRID[:, 0] == 4) | (GRID[:, 1] == 10)]


def constant(points: np.ndarray, noise: float) -> Model:
    random = np.random.default_rng(1)
    values = 10.0 * (1 + noise * random.uniform(-1, 1, (1, len(points), 5)))
    (model,) = fit_models(points, values, TIME, ("p", "n"))
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(
    ("points", "sets"),
    [
        (LINES, [(0, 1)]),
        (GRID, []),
        (np.vstack([LINES, [[64.0, 50.0]]]), []),
        (GRID[:5], []),
        (np.array([(1.0, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2)]), [(0, 1), (0, 2), (1, 2), (0, 1, 2)]),
        (np.array([(1.0, 1, 1), (2, 2, 1), (1, 1, 2)]), [(0, 2), (1, 2)]),
    ],
)
def test_sets_of_parameters_that_never_change_together(points: np.ndarray, sets: list[tuple[int, ...]]) -> None:
    assert never_together(points) == sets


def test_on_lines_a_product_may_hide_beneath_the_noise_and_on_a_grid_it_may_not() -> None:
    lines, grid = constant(LINES, 0.05), constant(GRID, 0.05)
    target = (128.0, 100.0)
    assert grid.predict(target).upper < 2.0 * grid.predict(target).value
    predicted = lines.predict(target)
    # as large as the noise at the end of a line, and so 64 and 8 times as large with both
    assert predicted.lower > 5.0
    assert predicted.upper > 12.0
    assert predicted.value == pytest.approx(10.0, rel=0.05)
    assert any("p, n never change together" in note for note in lines.notes)
    assert not any("together" in note for note in grid.notes)
    assert sum(other.weight for other in lines.alternatives) < 0.25


def test_heavy_noise_may_hide_a_term_on_a_grid() -> None:
    found = constant(GRID, 0.75)
    weights = [other.weight for other in found.alternatives if other.hidden]
    assert 0.02 < sum(weights) < 0.2
    assert found.predict((128.0, 100.0)).lower < 10.0 < found.predict((128.0, 100.0)).upper
    assert not any("together" in note for note in found.notes)


def test_a_parameter_with_the_value_0_hides_nothing_of_the_others() -> None:
    with_zero = np.column_stack([LINES, np.arange(len(LINES)) % 2])
    values = 10.0 * (1 + 0.05 * np.random.default_rng(1).uniform(-1, 1, (1, len(LINES), 5)))
    (model,) = fit_models(with_zero, values, TIME, ("p", "n", "s"))
    assert isinstance(model, Model)
    assert any("p, n never change together" in note for note in model.notes)


def test_many_parameters_have_few_hidden_terms() -> None:
    """Single parameters, pairs and all together, because the number of all subsets doubles with each parameter."""
    points = np.random.default_rng(2).choice([1.0, 2, 4, 8], (40, 8))
    values = 10.0 * (1 + 0.75 * np.random.default_rng(3).uniform(-1, 1, (1, 40, 3)))
    (model,) = fit_models(points, values, TIME, tuple("abcdefgh"))
    assert isinstance(model, Model)
    assert sum(other.hidden for other in model.alternatives) <= 2 * (8 + 28 + 1)


def test_the_less_noise_the_less_hides() -> None:
    target = (128.0, 100.0)
    widths = [constant(LINES, noise).predict(target).upper for noise in (0.001, 0.01, 0.1)]
    assert widths == sorted(widths)
    (count,) = fit_models(LINES, np.full((1, len(LINES), 2), 7.0), BLOCKS, ("p", "n"))
    assert isinstance(count, Model)
    assert count.predict(target).upper == 7.0
    assert not count.alternatives


def test_hidden_products_are_kept_in_files() -> None:
    model = constant(LINES, 0.05)
    again = from_json(to_json(model))
    assert again == model
    assert any(other.hidden for other in again.alternatives)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_a_term_that_is_a_few_percent_of_the_largest_value(seed: int) -> None:
    """3·log2(p) plus a p² term of 1 to 10 % at p = 64, hardly visible there, which dominates at p = 1024."""
    p = np.array([2.0, 4, 8, 16, 32, 64])
    random = np.random.default_rng(seed)
    shares = np.geomspace(0.01, 0.1, 30)
    exact = 3 * np.log2(p) + (18 * shares / (1 - shares))[:, None] * (p / 64) ** 2
    values = exact[:, :, None] * (1 + 0.05 * random.uniform(-1, 1, (30, 6, 5)))
    held = 0
    for model, share in zip(fit_models(p[:, None], values, TIME, ("p",)), shares.tolist(), strict=True):
        assert isinstance(model, Model)
        predicted = model.predict((1024.0,))
        truth = 30 + 18 * share / (1 - share) * 256
        held += predicted.lower <= truth <= predicted.upper
    assert held >= 22


def test_what_the_values_exclude_does_not_hide() -> None:
    """Times with very little noise at large values exclude hidden terms."""
    p = np.array([2.0, 4, 8, 16, 32, 64])
    values = (3 * p)[None, :, None] * (1 + 0.002 * np.random.default_rng(2).uniform(-1, 1, (1, 6, 5)))
    (model,) = fit_models(p[:, None], values, TIME, ("p",))
    assert isinstance(model, Model)
    predicted = model.predict((128.0,))
    assert predicted.upper / predicted.lower < 1.05


def test_intervals_hold_a_cubic_term_beside_a_linear_one() -> None:
    """A p³ term of 2 to 20 % at p = 64, mostly hidden by noise of 5 %, dominates at p = 1024."""
    p = np.array([2.0, 4, 8, 16, 32, 64])
    shares = np.geomspace(0.02, 0.2, 60)[:, None]
    noise = 1 + 0.05 * np.random.default_rng(4).uniform(-1, 1, (60, 6, 5))
    values = ((1 - shares) * p / 64 + shares * (p / 64) ** 3)[:, :, None] * noise
    truths = ((1 - shares) * 16 + shares * 16**3)[:, 0].tolist()
    held = 0
    for model, truth in zip(fit_models(p[:, None], values, TIME, ("p",)), truths, strict=True):
        assert isinstance(model, Model)
        predicted = model.predict((1024.0,))
        held += predicted.lower <= truth <= predicted.upper
    assert held >= 42


def test_where_nothing_has_an_effect_less_hides() -> None:
    p = np.array([2.0, 4, 8, 16, 32, 64])
    noise = 1 + 0.05 * np.random.default_rng(5).uniform(-1, 1, (40, 6, 5))
    constants, lines = (fit_models(p[:, None], form[None, :, None] * noise, TIME, ("p",)) for form in (np.ones(6), p))

    def hiding(models: list[Model | NoModel], depends: bool) -> float:
        """Return the mean weight of hidden terms of the models that depend on p, or of the others."""
        found = [model for model in models if isinstance(model, Model) and model.depends_on("p") == depends]
        assert len(found) > 20
        return float(np.mean([sum(other.weight for other in model.alternatives if other.hidden) for model in found]))

    assert 0.0 < hiding(constants, False) < 0.6 * hiding(lines, True)


@pytest.mark.parametrize("likelihoods", [[1.0, 1, 1, 1], [0.0, 0, 0, 1], [1.0, 0.5, 0.25, 0]])
def test_parts_of_a_posterior_have_its_mean(likelihoods: list[float]) -> None:
    sizes = np.array([0.01, 0.1, 0.5, 1.0])
    (parts,) = _means(np.array([[likelihoods]]), sizes)[0]
    assert (np.diff(parts) >= 0).all()
    assert parts.mean() == pytest.approx(np.average(sizes, weights=likelihoods))
