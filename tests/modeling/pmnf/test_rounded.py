# SPDX-License-Identifier: Apache-2.0
"""Counts of loops with rounded sizes: the exponents of generated functions are found in nearly all cases."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import Metric
from quipu.modeling.generator import choose_functions
from quipu.modeling.generator.growth import size
from quipu.modeling.pmnf import Model, fit_models

BLOCKS = Metric("blocks", "1", "effort")
POINTS = np.array([(p, n) for p in (128.0, 256, 512, 1024, 2048) for n in (8000.0, 16000, 24000, 32000, 40000)])


@pytest.mark.parametrize("seed", [2, 3])
def test_generated_functions_have_their_stated_order(seed: int) -> None:
    """At most 1 in 200 functions may differ; the loops have two, three and two blocks per step."""
    functions = choose_functions(200, seed)
    counts = [
        [
            4 + sum(w * size(t, {"p": p, "n": n}) for w, t in zip((2, 3, 2), f.computation.totals, strict=False))
            for p, n in POINTS
        ]
        for f in functions
    ]
    models = fit_models(POINTS, np.array(counts, dtype=float)[:, :, None], BLOCKS, ("p", "n"))
    wrong = 0
    for function, model in zip(functions, models, strict=True):
        assert isinstance(model, Model)
        wrong += any(model.leading[x][0] != function.computation.model.leading[x][0] for x in ("p", "n"))
    assert wrong <= 1


def test_functions_that_reproduce_nothing_but_rounding_are_not_believed() -> None:
    """p² fits the counts within one; p²·log2(p), p² and p together reproduce even the rounding."""
    p = np.array([128.0, 256, 512, 1024, 2048])
    (model,) = fit_models(p[:, None], (6 + 2 * np.round(0.61 * p**2))[None, :, None], BLOCKS, ("p",))
    assert isinstance(model, Model)
    assert [term.exponents("p") for term in model.terms] == [(2, 0)]


def test_a_small_term_of_an_exact_count_is_kept() -> None:
    """Whole coefficients are evidence for n, although n² alone is always within a few counts."""
    n = np.array([10.0, 20, 30, 40, 50])
    (model,) = fit_models(n[:, None], (n**2 + n + 3)[None, :, None], BLOCKS, ("n",))
    assert str(model) == "n² + n + 3"


@pytest.mark.parametrize(("power", "log"), [(1 / 3, 0), (0.75, 0), (1 / 4, 1), (2, 0), (0, 2)])
@pytest.mark.parametrize("round_", [np.floor, np.ceil, np.round])
def test_one_rounded_function_is_recovered(power: float, log: int, round_: np.ufunc) -> None:
    x = np.array([100.0, 400, 900, 2500, 6400])
    values = 7 + 2 * round_(1000 * x**power * np.log2(x) ** log)
    (model,) = fit_models(x[:, None], values[None, :, None], BLOCKS, ("x",))
    assert isinstance(model, Model)
    assert [float(model.lead("x")[0]), model.lead("x")[1]] == pytest.approx([power, log])


def test_data_dependent_counts_are_not_taken_for_rounded_ones() -> None:
    """Deviations of 1 % are no rounding: the simple order of growth stays."""
    x = np.array([100.0, 200, 300, 400, 500])
    values = np.round(50 * x**2 * np.array([1.01, 0.99, 1.005, 0.995, 1.0]))
    (model,) = fit_models(x[:, None], values[None, :, None], BLOCKS, ("x",))
    assert isinstance(model, Model)
    assert model.lead("x") == (2, 0)


def test_small_deviations_of_single_runs_are_no_second_function() -> None:
    """Single runs with deviations of 0.1 %: one in ten has a sum of two functions within a few counts by chance."""
    n = np.array([100.0, 200, 400, 800, 1600])
    noise = 1 + 0.001 * np.random.default_rng(5).normal(size=(60, 5))
    models = fit_models(n[:, None], np.round(37 * n * noise)[:, :, None], BLOCKS, ("n",))
    assert sum(str(model).endswith("·n") for model in models) >= 50
    near = [
        abs(model.predict((12800.0,)).value / (37 * 12800) - 1) < 0.01 for model in models if isinstance(model, Model)
    ]
    assert sum(near) >= 50


def test_what_rounding_leaves_open_of_a_sum_is_little() -> None:
    """Two functions fit millions to the last digit: residuals in counts are 0 relative to the values."""
    n = np.array([100.0, 200, 400, 800, 1600])
    counts = np.floor(71.8531 * n**1.5) + np.floor(9.87511 * n * np.log2(n))
    (model,) = fit_models(n[:, None], counts[None, :, None], BLOCKS, ("n",))
    assert isinstance(model, Model)
    prediction = model.predict((12800.0,))
    truth = 71.8531 * 12800**1.5 + 9.87511 * 12800 * np.log2(12800)
    assert prediction.lower <= truth <= prediction.upper < 1.01 * prediction.lower
    assert model.quality is not None
    assert model.quality.rms_relative < 1e-4


def test_multiples_of_a_message_show_nothing_below_it() -> None:
    """Six counts in units of 31744 bytes are small numbers, which sums fit by coincidence: no p·log2(p)²·n - p²."""
    points = np.array([(1.0, 64.0), (2, 64), (4, 64), (4, 96), (4, 128), (8, 64), (16, 64)])
    messages = np.array([0.0, 4, 4, 6, 8, 4, 3])  # n/8·(px + py - 2)/p
    (model,) = fit_models(points, (31744 * messages)[None, :, None], BLOCKS, ("p", "n"))
    assert isinstance(model, Model) and model.quality is not None
    assert model.quality.rms_relative > 1e-3  # no exact function
    assert all(term.coefficient > 0 for term in model.terms)
