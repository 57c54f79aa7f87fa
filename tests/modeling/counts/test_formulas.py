# SPDX-License-Identifier: Apache-2.0
"""Laws as models: their printed formulas are evaluated by hand, and files of models contain them."""

from __future__ import annotations

import itertools
from math import ceil, floor, log2

import numpy as np
import pytest
from quipu.modeling.counts.factors import axes_of, factors_of
from quipu.modeling.counts.formulas import NotConvertible, per_rank, terms_of_law
from quipu.modeling.counts.models import models_of
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region
from quipu.modeling.pmnf.model import Model, Term, collect, from_json, to_json
from quipu.modeling.process_grid import ProcessGrid

POINTS = np.array(list(itertools.product((1.0, 2.0, 4.0, 6.0, 12.0), (8.0, 12.0, 16.0, 24.0, 32.0))))
GRIDS = [ProcessGrid("p", "balanced", dimensions, "declared") for dimensions in (1, 2, 3)]


def model_of(text: str, grid: ProcessGrid, mean: bool = False) -> Model:
    constant, terms = terms_of_law(text, ("p", "n"), grid)
    found = collect(0.0, per_rank([Term(constant, ()), *terms], grid)) if mean else (constant, terms)
    return Model(("p", "n"), *found)


def by_hand(formula: str, p: float, n: float, grid: ProcessGrid) -> float:
    """Evaluate a formula as a person does who knows the extents of the process grid."""
    names = dict(zip(("px", "py", "pz"), grid.extents(np.array([p]))[0].tolist(), strict=False))
    return float(eval(formula, {"log2": log2, "ceil": ceil, "floor": floor}, {**names, "p": p, "n": n}))


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid.dimensions}D")
def test_each_factor_has_its_values_as_a_model(grid: ProcessGrid) -> None:
    axes = axes_of(POINTS, ("p", "n"), grid, len(POINTS))
    for factor in factors_of(axes):
        model, expected = model_of(factor.text, grid), factor.values
        np.testing.assert_allclose(model.evaluate(POINTS), expected, rtol=1e-9, atol=1e-9, err_msg=factor.name)
        printed = [by_hand(model.python, p, n, grid) for p, n in POINTS.tolist()]
        np.testing.assert_allclose(printed, expected, rtol=1e-9, atol=1e-9, err_msg=factor.name)
        assert from_json(to_json(model)) == model


@pytest.mark.parametrize(
    ("law", "dimensions", "formula"),
    [
        ("22·p", 3, "22"),
        ("8·(n + 2·px)·(n + 2·py)", 2, "8·n²/p + 16·n/py + 16·n/px + 32"),
        ("(px - 1)·py·n", 2, "n·(px-1)/px"),
        ("n·p·sum(1 - 1/pd)", 3, "3·n - n/pz - n/py - n/px"),
        ("(n)·(3·p + 2·p·log2(n/p))", 1, "2·n·log2(n) - 2·n·log2(p) + 3·n"),
        ("p·2^ceil(log2(n))", 1, "2^⌈log2(n)⌉"),
    ],
)
def test_laws_per_rank_have_their_shortest_form(law: str, dimensions: int, formula: str) -> None:
    model = model_of(law, GRIDS[dimensions - 1], mean=True)
    assert str(model) == formula
    assert from_json(to_json(model)) == model


@pytest.mark.parametrize("law", ["unknown(n)", "sin(n)", "ceil(2)", "n +"])
def test_functions_outside_the_grammar_are_not_convertible(law: str) -> None:
    with pytest.raises(NotConvertible):
        terms_of_law(law, ("p", "n"), GRIDS[2])


def test_parameters_may_have_any_name() -> None:
    constant, terms = terms_of_law("4·lambda^2·(lambda + 2·px) + pd", ("lambda", "pd", "p"), GRIDS[1])
    assert str(Model(("lambda", "pd", "p"), constant, terms)) == "4·lambda³ + 8·lambda²·px + pd"


def experiment(counts: FloatArray) -> Experiment:
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    return Experiment(
        "x", ("p", "n"), POINTS, tree, {"blocks": Metric("blocks", "1", "effort", "sum")}, {"blocks": counts}
    )


def test_the_formula_of_a_call_path_predicts_what_its_law_predicts() -> None:
    extents = GRIDS[1].extents(POINTS[:, 0])
    sums = 7 * np.prod([POINTS[:, 1] + 2 * own for own in extents.T], axis=0) + 30 * POINTS[:, 0]
    counts = count_models(experiment((sums / POINTS[:, 0])[None, :, None]))
    assert counts is not None
    (model,) = models_of(counts, "blocks")
    assert isinstance(model, Model)
    assert model is not None and model.quality is not None
    point = {"p": 24.0, "n": 64.0}
    (law,) = counts.predict(point, "blocks")
    formula = model.predict((24.0, 64.0))
    assert formula.value == pytest.approx(law.value)
    assert model.quality.smape == pytest.approx(0, abs=1e-9)
    assert (formula.lower, formula.upper) == pytest.approx((law.lower, law.upper))


@pytest.mark.parametrize("name", ["sum", "m", "log2", "px", "pd", "ceil", "max", "levels", "lambda", "v0_", "e", "p2"])
def test_parameters_may_have_the_names_of_functions_and_extents(name: str) -> None:
    p, n = POINTS.T
    extents = GRIDS[1].extents(p)
    sums = [p * n**2, (n + 2 * extents[:, 0]) * (n + 2 * extents[:, 1]), 5 * p * np.ceil(np.log2(n)), (p - 1) * n]
    values = np.array(sums)[:, :, None] / p[None, :, None]
    tree = CallTree((Region("f", "f"),), np.zeros(len(sums), dtype=np.int64), np.full(len(sums), -1))
    measured = {"blocks": Metric("blocks", "1", "effort")}
    counts = count_models(Experiment("x", ("p", name), POINTS, tree, measured, {"blocks": values}, grids=(GRIDS[1],)))
    assert counts is not None
    for path, model in enumerate(models_of(counts, "blocks")):
        assert isinstance(model, Model) and model.quality is not None
        assert model.quality.rms_relative < 1e-9, f"{counts.text('blocks', path)} is {model}"
