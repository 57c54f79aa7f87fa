# SPDX-License-Identifier: Apache-2.0
"""Tensor-completion models: planted models are recovered, conventions hold, hard inputs end well."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.tensor import TensorModel, trend
from quipu.modeling.tensor.als import Decomposition, Penalty, Rows, solve_mode, started
from quipu.modeling.tensor.columns import fit_columns
from quipu.modeling.tensor.explain import main_effects, pair_effects
from quipu.modeling.tensor.modes import modes_of
from quipu.modeling.tensor.positive import fit_positive
from quipu.modeling.tensor.powers import fit_powers
from quipu.modeling.tensor.storage import restored, stored
from quipu.modeling.tensor.tune import best_configurations
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

Array = NDArray[np.float64]
QUICK: dict[str, Any] = {"rank": 2, "smoothness": 1e-6, "ridge": 1e-4, "derive": False, "time_budget": 0.01}


def planted(rows: int, seed: int = 0, noise: float = 0.03) -> tuple[Array, Array]:
    """Times of a matrix product with a solver: n·m work, p processes, three solvers."""
    random = np.random.default_rng(seed)
    n, m = np.exp(random.uniform(3, 8, rows)), np.exp(random.uniform(3, 6, rows))
    p, solver = 2.0 ** random.integers(0, 6, rows), random.integers(0, 3, rows)
    times = 1e-6 * n * m / p**0.8 * np.array([1.0, 1.6, 0.7])[solver] * np.exp(noise * random.standard_normal(rows))
    return np.column_stack([n, m, p, solver]), times


def error(model: TensorModel, x: Array, times: Array) -> float:
    return float(np.abs(np.log(model.predict(x) / times)).mean())


@pytest.fixture(scope="module")
def fitted() -> TensorModel:
    return TensorModel(categorical=[3], time_budget=0.4).fit(*planted(600))


@parametrize_with_checks([TensorModel(**QUICK, extrapolation="hold")])  # type: ignore[untyped-decorator]
def test_conventions_of_scikit_learn(estimator: TensorModel, check: Any) -> None:
    check(estimator)


def test_a_planted_model_is_recovered(fitted: TensorModel) -> None:
    assert error(fitted, *planted(400, seed=1)) < 0.05
    assert fitted.modes_[3].kind == "categorical"


def test_the_interval_holds_what_it_says(fitted: TensorModel) -> None:
    x, times = planted(1000, seed=2)
    _, low, high = fitted.predict_interval(x)
    assert 0.83 <= np.mean((times >= low) & (times <= high)) <= 0.97


def test_the_same_seed_gives_the_same_model() -> None:
    x, times = planted(200)
    first, second = (TensorModel(**QUICK, random_state=3).fit(x, times).predict(x) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_it_continues_beyond_what_was_measured() -> None:
    x, times = planted(900)
    inner, outer = x[:, 0] <= 800, x[:, 0] > 1200
    model = TensorModel(categorical=[3], time_budget=0.3).fit(x[inner], times[inner])
    assert error(model, x[outer], times[outer]) < 0.15
    flags = model.extrapolated(x[outer])
    assert flags[:, 0].all()
    narrow = model.predict_interval(x[inner][:50])
    wide = model.predict_interval(x[outer][:50])
    assert np.mean(wide[2] / wide[1]) > np.mean(narrow[2] / narrow[1])


def test_slopes_of_few_values_are_those_of_the_outermost() -> None:
    values = np.log(np.repeat([1.0, 2.0, 4.0], 20))
    logs = np.where(values < 0.1, 0.0, np.where(values < 1.0, 1.0, 1.3))
    np.testing.assert_allclose(trend._slopes([values], logs)[0] * np.log(2.0), [0.65, 0.3], atol=0.4)
    assert trend._slopes([values], logs)[0, 1] * np.log(2.0) == pytest.approx(0.3, abs=0.01)
    two = np.log(np.repeat([1.0, 2.0], 20))
    np.testing.assert_allclose(trend._slopes([two], two * 0.5)[0], 0.5, atol=1e-4)


def test_a_sum_of_powers_and_logarithms_is_found() -> None:
    random = np.random.default_rng(0)
    x = np.exp(random.uniform(0, 5, (600, 2)))
    times = 1e-3 * (4.0 * np.log(np.e * x[:, 0] / x[:, 0].min()) + x[:, 1] * x[:, 0] ** 0.5)
    noisy = np.log(times) + 0.02 * random.standard_normal(600)
    noisy[::50] += 3.0
    found = fit_powers(x, noisy, (0, 1))
    ratio = found.logs(x) - np.log(times)
    assert np.abs(ratio - np.median(ratio)).mean() < 0.03
    far = np.array([[2000.0, 500.0]])
    exact = np.log(1e-3 * (4.0 * np.log(np.e * 2000.0 / x[:, 0].min()) + 500.0 * 2000.0**0.5))
    assert found.logs(far)[0] - np.median(ratio) == pytest.approx(exact, abs=0.15)


@pytest.mark.parametrize("form", ["damped", "logarithmic", "linear", "powers"])
def test_far_outside_times_stay_positive_and_finite(form: str) -> None:
    x, times = planted(200)
    model = TensorModel(categorical=[3], extrapolation=form, time_budget=0.05).fit(x, times)
    far = np.array([[1e300, 1e300, 1e300, 0.0], [0.0, -5.0, 1e-300, 9.0]])
    predicted, low, high = model.predict_interval(far)
    assert np.isfinite(predicted).all()
    assert (predicted > 0.0).all()
    assert (low <= predicted).all()
    assert (predicted <= high).all()


def test_few_and_noisy_rows_have_a_log_additive_model() -> None:
    x, times = planted(40, noise=0.02)
    model = TensorModel(categorical=[3], time_budget=0.1).fit(x, times)
    assert model.additive_
    assert error(model, *planted(400, seed=1, noise=0.0)) < 0.1
    x, times = planted(10, noise=0.02)
    _, low, high = TensorModel(categorical=[3], time_budget=0.1).fit(x, times).predict_interval(x)
    assert np.isfinite(high / low).all()
    x, times = planted(1000, noise=0.6)
    assert error(TensorModel(categorical=[3], time_budget=0.3).fit(x, times), *planted(400, seed=1, noise=0.0)) < 0.2


def test_positive_factors_continue_along_a_line() -> None:
    x, times = planted(600)
    inner = x[:, 0] <= 800
    model = TensorModel(categorical=[3], loss="mlogq2", **{**QUICK, "rank": 3}).fit(x[inner], times[inner])
    assert model.positive_ is not None
    assert all((factor > 0).all() for factor in model.positive_.factors)
    assert error(model, x[inner], times[inner]) < 0.2
    assert error(model, x[~inner], times[~inner]) < 0.6


def test_newton_lowers_the_loss() -> None:
    x, times = planted(300)
    logs = np.log(times)
    modes = modes_of(x, [3])
    positive = fit_positive(modes, x, logs, 2, 1e-4, np.random.default_rng(0))
    assert np.mean((positive.logs(modes, x) - logs) ** 2) < 0.1 * np.var(logs)


def test_a_mode_solves_its_normal_equations() -> None:
    x, times = planted(200)
    modes = modes_of(x, [3])
    rows = Rows(modes, x, np.log(times))
    random = np.random.default_rng(0)
    others = random.uniform(0.5, 1.5, (200, 2)).astype(np.float32)
    for mode, basis in zip(modes, rows.bases, strict=True):
        right = np.asarray(basis.transposed @ (others * rows.target[:, None]), dtype=float)
        factor = solve_mode(mode, basis.normal(others, None), right, Penalty(1e-9, 1e-15), rows.count)
        residual = rows.target - (others * basis.at(factor)).sum(axis=1)
        slope = basis.transposed @ (others * residual[:, None])
        assert np.abs(slope).max() < 2e-2 * np.abs(right).max()


def test_rows_in_parts_are_one_sweep() -> None:
    x, times = planted(400, noise=0.0)
    modes = modes_of(x, [3])
    target = (np.log(times) - np.log(times).mean()) / np.log(times).std()
    start = started(modes, 2, np.random.default_rng(0))
    whole, parts = Decomposition(list(start)), Decomposition(list(start))
    for _ in range(8):
        whole.sweep_parts(modes, x, target, Penalty(), 400)
        parts.sweep_parts(modes, x, target, Penalty(), 150)
    rows = Rows(modes, x, target)
    assert np.abs(rows.predicted(whole.factors) - target).mean() < 0.1
    assert np.abs(rows.predicted(parts.factors) - rows.predicted(whole.factors)).mean() < 0.02


def test_more_rows_update_the_model() -> None:
    x, times = planted(800)
    inner = np.flatnonzero((x[:, 0] < 800) & (x[:, 3] < 2))
    model = TensorModel(categorical=[3], time_budget=0.2).fit(x[inner], times[inner])
    model.partial_fit(x, times)
    assert error(model, x, times) < 0.1
    assert 2.0 in model.modes_[3].knots
    fresh = TensorModel(**QUICK).partial_fit(x, times)
    assert error(fresh, x, times) < 0.3


@pytest.mark.parametrize(
    ("x", "times"),
    [
        ([[1.0, 2.0], [2.0, 3.0], [4.0, 1.0]], [1.0, 2.0, 3.0]),
        ([[1.0], [1.0], [1.0], [1.0]], [1.0, 2.0, 1.0, 2.0]),
        ([[0.0, 5.0]] * 30, [2.0] * 30),
        ([[float(i), -float(i)] for i in range(40)], [5.0] * 40),
        ([[1e-300 * (i + 1), 1e300] for i in range(20)], [float(i + 1) for i in range(20)]),
    ],
)
def test_small_and_degenerate_data(x: list[list[float]], times: list[float]) -> None:
    model = TensorModel(time_budget=0.05).fit(x, times)
    assert np.isfinite(model.predict(x)).all()
    assert (model.predict(x) > 0).all()


def test_twelve_modes_and_missing_cells() -> None:
    random = np.random.default_rng(0)
    x = random.integers(1, 5, (400, 12)).astype(float)
    times = np.exp(0.2 * x.sum(axis=1) + 0.01 * random.standard_normal(400))
    model = TensorModel(**{**QUICK, "rank": 3}).fit(x[:300], times[:300])
    assert error(model, x[300:], times[300:]) < 0.25


@pytest.mark.parametrize(
    "wrong",
    [
        {"categorical": [7]},
        {"loss": "l1"},
        {"extrapolation": "guess"},
        {"rank": 0},
        {"spacing": ["odd"] * 4},
        {"knots": [None]},
    ],
)
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TensorModel(**wrong).fit(*planted(20))


def test_times_must_be_positive() -> None:
    x, times = planted(20)
    times[3] = 0.0
    with pytest.raises(ValueError, match="times must be positive, but 1 are not"):
        TensorModel().fit(x, times)


def test_pipeline_and_grid_search() -> None:
    x, times = planted(80)
    model = make_pipeline(FunctionTransformer(), TensorModel(**QUICK))
    search = GridSearchCV(model, {"tensormodel__rank": [1, 2]}, cv=2).fit(x, times)
    assert search.best_params_["tensormodel__rank"] in (1, 2)
    assert pickle.loads(pickle.dumps(clone(search.best_estimator_).fit(x, times))).predict(x).shape == (80,)


def columns_of(x: Array, times: Array) -> dict[str, Any]:
    names = ("n", "block size", "p", "solver")
    columns: dict[str, Any] = dict(zip(names, x.T, strict=True))
    return columns | {"solver": [("cg", "gmres", "direct")[int(one)] for one in x[:, 3]], "time_s": times}


def test_a_stored_model_predicts_the_same() -> None:
    model, x, _, _ = fit_columns(columns_of(*planted(300)), "time_s", time_budget=0.05)
    document, content = stored(model)
    again = restored(json.loads(json.dumps(document)), content, "m.json")
    assert again.levels == model.levels
    np.testing.assert_allclose(again.model.predict(x), model.model.predict(x), rtol=1e-4)
    far = x * np.array([10.0, 1.0, 2.0, 1.0])
    np.testing.assert_allclose(again.model.predict(far), model.model.predict(far), rtol=1e-3)
    width = [np.log(high / low) for _, low, high in (one.model.predict_interval(x) for one in (model, again))]
    np.testing.assert_allclose(width[0], width[1], rtol=0.3)
    again.model.partial_fit(x, model.model.predict(x))


@pytest.mark.parametrize("damage", ["kind", "version", "rank", "knots", "bytes", "scale"])
def test_a_damaged_model_is_refused(damage: str) -> None:
    model, *_ = fit_columns(columns_of(*planted(40)), "time_s", time_budget=0.01)
    document, content = stored(model)
    changes: dict[str, Any] = {"kind": "x", "version": 9, "rank": 99, "knots": 0, "bytes": 0, "scale": -1.0}
    if damage == "bytes":
        content = content[:100]
    elif damage == "knots":
        document["modes"][0]["parameters"] = [17]
    else:
        document[damage] = changes[damage]
    with pytest.raises(FormatError, match=r"m\.json"):
        restored(document, content, "m.json")


def test_bad_rows_are_left_out_with_a_note() -> None:
    columns = columns_of(*planted(60))
    columns["n"][:5] = np.nan
    columns["time_s"][5:8] = (0.0, -1.0, np.inf)
    model, x, _, notes = fit_columns(columns, "time_s", time_budget=0.01)
    assert len(x) == 52
    assert "5 rows are left out: no number in some parameter (such as n in row 0)" in notes[0]
    assert "3 rows are left out: time_s is not positive and finite (row 5 has 0)" in notes[1]
    assert model.categorical == ("solver",)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "nothing"}, "no column 'nothing'"),
        ({"target": "solver"}, "must hold numbers, not texts"),
        ({"parameters": ["n", "time_s"]}, "is the target"),
        ({"categorical": ["q"]}, "no column 'q'"),
        ({"parameters": ["n"], "categorical": ["p"]}, "not among the parameters"),
    ],
)
def test_wrong_columns_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelingError, match=words):
        fit_columns(columns_of(*planted(30)), **{"target": "time_s", "time_budget": 0.01, **options})


def test_effects_and_best_configuration() -> None:
    model, *_ = fit_columns(columns_of(*planted(500)), "time_s", time_budget=0.2)
    effects = main_effects(model)
    assert effects[0].parameter == "n"
    assert sum(one.share for one in effects) == pytest.approx(1.0, abs=0.15)
    assert pair_effects(model, ["n", "p"])[0].share < 0.05
    best = best_configurations(model, {"n": 100.0, "block size": 50.0}, {}, ["p <= 8"])[0]
    assert (best.values["p"], best.values["solver"]) == (8.0, "direct")
    with pytest.raises(ModelingError, match="no configuration fulfils"):
        best_configurations(model, {}, {}, ["p > 100"])
    with pytest.raises(ModelingError, match="no parameter"):
        best_configurations(model, {"q": 1.0}, {})
