# SPDX-License-Identifier: Apache-2.0
"""Tensor models: held-out rows, choice of the trend, progress, and invalid archives."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.progress import shares, shown_by, steps
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.als import Decomposition, Penalty, Rows, averaged, started
from quipu.modeling.tensor.columns import ColumnModel, fit_columns
from quipu.modeling.tensor.explain import continuations
from quipu.modeling.tensor.folds import configurations, held_out_folds
from quipu.modeling.tensor.growth import error_by_rows
from quipu.modeling.tensor.modes import Mode, modes_of
from quipu.modeling.tensor.selection import Budget, Candidate, Search
from quipu.modeling.tensor.storage import restored, stored
from quipu.modeling.tensor.trend import choose_trend
from quipu.modeling.tensor.tune import best_configurations

Array = NDArray[np.float64]


@pytest.mark.parametrize(("rows", "distinct"), [(400, 60), (6000, 900)])
def test_repetitions_are_held_out_together(rows: int, distinct: int) -> None:
    random = np.random.default_rng(0)
    x = random.permutation(distinct)[random.integers(0, distinct, rows)][:, None] * np.ones(2)
    folds = held_out_folds(x)
    for train, test in folds:
        assert len(train) + len(test) == rows
        assert not set(x[train, 0]) & set(x[test, 0])
        assert 0.1 * rows < len(test) < 0.5 * rows
    if rows < 4000:
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(rows))


@pytest.mark.parametrize("most", [0, 4])
def test_a_configuration_with_most_rows_trains(most: int) -> None:
    group = np.repeat([0, 1, 2, 3, 4], [6000 if one == most else 300 for one in range(5)])
    x = np.concatenate([np.arange(5), group])[:, None].astype(float)
    for train, test in held_out_folds(x):
        assert most in x[train, 0]
        assert 300 <= len(test) <= 1300


def test_all_combinations_of_categories_are_held_out_by_rows() -> None:
    x = np.array([[a, b] for _ in range(9) for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0)])
    for train, test in held_out_folds(x, [0, 1]):
        assert len(np.unique(x[train], axis=0)) == 6
        assert len(test)
    for train, test in held_out_folds(x, [0]):
        assert not {tuple(row) for row in x[train]} & {tuple(row) for row in x[test]}


def test_few_configurations_are_held_out_by_rows() -> None:
    x = np.repeat([[1.0], [2.0], [3.0]], 8, axis=0)
    assert configurations(x).tolist() == [0] * 8 + [1] * 8 + [2] * 8
    for train, _ in held_out_folds(x):
        assert len(np.unique(x[train])) == 3


def test_intervals_hold_new_configurations_after_repeated_ones() -> None:
    random = np.random.default_rng(1)

    def data(count: int, repetitions: int) -> tuple[Array, Array]:
        x = np.exp(random.uniform(0, 6, (count, 2)))
        times = x[:, 0] * (1 + x[:, 1]) * np.exp(0.2 * random.standard_normal(count))
        x, times = np.repeat(x, repetitions, axis=0), np.repeat(times, repetitions)
        return x, times * np.exp(0.01 * random.standard_normal(len(x)))

    x, times = data(60, 5)
    model = TensorModel(time_budget=0.2).fit(x, times)
    x, times = data(600, 1)
    inside = ~model.extrapolated(x).any(axis=1)
    _, low, high = model.predict_interval(x[inside])
    assert 0.8 <= np.mean((times[inside] >= low) & (times[inside] <= high)) <= 0.98


@pytest.mark.parametrize("values", [4, 5, 9])
def test_a_power_law_of_few_values_goes_on(values: int) -> None:
    random = np.random.default_rng(values)
    x = np.column_stack([2.0 ** random.integers(0, values, 300), random.uniform(1, 50, 300)])
    logs = np.log(1e-3 * x[:, 0] ** 1.3 * (1 + x[:, 1])) + 0.02 * random.standard_normal(300)
    trend = choose_trend("auto", modes_of(x), x, logs)
    inside, far = np.array([[2.0 ** (values - 1), 20.0]]), np.array([[2.0 ** (values + 2), 20.0]])
    assert trend.step(inside, far)[0] == pytest.approx(1.3 * 3 * np.log(2.0), abs=0.25)


def test_growth_over_few_values_falls_off_by_other_parameters() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, 4, 800), 2.0 ** random.integers(10, 20, 800)])

    def slope(size: Array) -> Array:  # small messages feel the first node beyond the own one most
        return 1.5 - 0.1 * np.log(size / 1024)

    growth = slope(x[:, 1]) * np.log1p(np.log(x[:, 0]) / 0.6)
    logs = growth + 0.5 * np.log(x[:, 1]) + 0.02 * random.standard_normal(len(x))
    trend = choose_trend("auto", modes_of(x), x, logs)
    assert trend.forms(0) == ("logarithmic",)
    inside, far = np.array([[8.0, 2.0**10], [8.0, 2.0**19]]), np.array([[128.0, 2.0**10], [128.0, 2.0**19]])
    steps = slope(inside[:, 1]) * np.log((0.6 + np.log(128.0)) / (0.6 + np.log(8.0)))
    assert trend.step(inside, far) == pytest.approx(steps, abs=0.15)


def test_a_logarithmic_trend_is_stored() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, 5, 300), random.uniform(1, 9, 300)])
    times = np.log(2.0 * x[:, 0]) * x[:, 1]
    model, *_ = fit_columns(
        {"n": x[:, 0], "m": x[:, 1], "time": times}, "time", extrapolation="logarithmic", time_budget=0.05
    )
    far = np.array([[200.0, 5.0], [0.1, 20.0]])
    assert restored(*stored(model), "m.json").model.predict(far) == pytest.approx(model.model.predict(far), rel=1e-5)


@pytest.mark.parametrize("nodes", [4, 6])
def test_a_steep_logarithm_over_nodes_goes_on(nodes: int) -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, nodes, 900), np.exp2(random.uniform(10, 20, 900))])

    def times(x: Array) -> Array:  # a collective operation within one node, and over a network, by messages
        return x[:, 1] * 1e-10 + np.log2(x[:, 0]) * (2e-6 + x[:, 1] * 3e-10)

    logs = np.log(times(x)) + 0.03 * random.standard_normal(len(x))
    trend = choose_trend("powers", modes_of(x), x, logs)
    far = np.array([[128.0, 2.0**15], [128.0, 2.0**19]])
    inside = np.minimum(far, x.max(axis=0))
    assert trend.step(inside, far) == pytest.approx(np.log(times(far) / times(inside)), abs=0.15)


def test_growth_over_few_values_does_not_speed_up_beyond() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, 4, 600), np.exp2(random.uniform(10, 20, 600))])
    logs = np.log(1.0 + x[:, 0] ** 2 / 16.0) + 0.3 * np.log(x[:, 1]) + 0.02 * random.standard_normal(600)
    trend = choose_trend("powers", modes_of(x), x, logs)
    places = np.log(8.0) + np.array([0.0, 0.1, 2.0])
    rows = np.column_stack([np.exp(places), np.full(3, 5e4)])
    inside = np.minimum(rows, x.max(axis=0))
    near, far = trend.step(inside, rows)[1:]
    assert near > 0.05
    assert far <= 20.0 * near * 1.01


def test_few_values_have_the_mean_of_the_trends_that_inner_parts_name() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, 4, 800), np.exp2(random.uniform(10, 20, 800))])
    growth = np.array([0.0, 0.7, 1.9, 2.1])[np.log2(x[:, 0]).astype(int)]  # doubles, then levels off
    times = np.exp(growth + 0.5 * np.log(x[:, 1]) + 0.02 * random.standard_normal(len(x)))
    trend = choose_trend("auto", modes_of(x), x, np.log(times))
    assert len(trend.forms(0)) > 1
    assert sum(trend.shares) == pytest.approx(1.0)
    far = np.array([[128.0, 2.0**15]])
    inside = np.minimum(far, x.max(axis=0))
    each = [one.step(inside, far)[0] for one in trend.trends]
    assert max(each) - min(each) > 0.1
    assert trend.step(inside, far)[0] == pytest.approx(np.dot(trend.shares, each))
    model, *_ = fit_columns({"n": x[:, 0], "m": x[:, 1], "time": times}, "time", time_budget=0.05)
    assert len(model.model.trend_.trends) > 1
    again = restored(*stored(model), "m.json").model
    assert again.predict(far) == pytest.approx(model.model.predict(far), rel=1e-5)
    assert np.array_equal(again.extrapolated(far), [[True, False]])


@pytest.mark.parametrize("nodes", [4, 8])
def test_intervals_widen_with_the_distance_and_the_extrapolated_parameter_is_named(nodes: int) -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, nodes, 600), np.exp2(random.uniform(10, 20, 600))])
    times = x[:, 1] * (1 + np.log2(x[:, 0])) * np.exp(0.05 * random.standard_normal(len(x)))
    model = TensorModel(time_budget=0.1).fit(x, times)
    far = np.column_stack([2.0 ** np.arange(nodes - 1, nodes + 5), np.full(6, 2.0**15)])
    _, low, high = model.predict_interval(far)
    assert (np.diff(np.log(high / low)) > 0.01).all()
    assert model.extrapolated(far).tolist() == [[False, False]] + [[True, False]] * 5


def test_what_levels_off_is_not_continued_as_a_power_law() -> None:
    random = np.random.default_rng(0)
    x = np.exp2(random.integers(0, 10, (400, 1)).astype(float))
    logs = np.log(10.0 / (1.0 + 8.0 / x[:, 0])) + 0.01 * random.standard_normal(400)
    trend = choose_trend("auto", modes_of(x), x, logs)
    assert abs(trend.step(np.array([[512.0]]), np.array([[8192.0]]))[0]) < 0.1


def test_progress_of_fit_prediction_and_tuning() -> None:
    said: list[tuple[str, int, int]] = []
    random = np.random.default_rng(0)
    x = random.integers(1, 40, (300, 2)).astype(float)
    columns = {"n": x[:, 0], "m": x[:, 1], "time": x.prod(axis=1)}
    with shown_by(lambda what, done, total: said.append((what, done, total))):
        model, *_ = fit_columns(columns, "time", time_budget=0.1)
        model.model.predict(np.tile(x, (20, 1)))
        best_configurations(model, {}, {}, ["n > 2"])
    kinds = {what for what, _, _ in said}
    assert {"choice of the model, percent", "continuation of the parameters", "predicted parts of the rows"} <= kinds
    assert "configurations" in kinds
    for kind in kinds:
        done = [(one, total) for what, one, total in said if what == kind]
        assert done[-1][0] == done[-1][1]
        assert all(0 <= one <= total for one, total in done)


def test_steps_within_a_work_in_percent_are_silent() -> None:
    said: list[tuple[str, int, int]] = []
    with shown_by(lambda what, done, total: said.append((what, done, total))), shares("all") as done:
        for share in steps("inner", (0.25, 2.0)):
            done(share)
    assert said == [("all, percent", 25, 100), ("all, percent", 99, 100), ("all, percent", 100, 100)]


def test_an_archive_with_objects_is_refused() -> None:
    x = np.arange(1.0, 31.0)
    model, *_ = fit_columns({"n": x, "time": x * 2}, "time", time_budget=0.01)
    document, content = stored(model)
    with np.load(io.BytesIO(content)) as arrays:
        named = {name: arrays[name] for name in arrays.files}
    named["low"] = np.array([{"n": 1}], dtype=object)
    file = io.BytesIO()
    np.savez(file, **named)
    document["sha256"] = hashlib.sha256(file.getvalue()).hexdigest()
    with pytest.raises(FormatError, match=r"m\.json"):
        restored(document, file.getvalue(), "m.json")


def test_an_average_of_decompositions_is_one_of_all_their_components() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 9, (50, 3))
    modes = modes_of(x)
    members = [started(modes, rank, random) for rank in (2, 3)]
    rows = Rows(modes, x, np.zeros(len(x)))
    mean = np.mean([rows.predicted(factors) for factors in members], axis=0)
    assert averaged(members)[0].shape[1] == 5
    np.testing.assert_allclose(rows.predicted(averaged(members)), mean, rtol=1e-5, atol=1e-6)


def test_decompositions_are_averaged_where_held_out_rows_gain() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 9, (1500, 4))
    places = np.sin(x[:, 0] * x[:, 1] / 5) + np.cos(x[:, 2] * x[:, 3] / 9)
    times = np.exp(places + 0.1 * random.standard_normal(len(x)))
    model = TensorModel(derive=False, time_budget=4.0).fit(x, times)
    kept = [step for step in model.steps_ if step.name.startswith("average") and step.kept]
    assert kept
    assert model.rank_ == kept[-1].rank == model.factors_[0].shape[1]
    assert kept[-1].error == min(step.error for step in model.steps_ if step.kept)
    document, content = stored(ColumnModel(("a", "b", "c", "d"), {}, "time", model))
    assert len(str(document)) + len(content) <= model.max_bytes
    assert restored(document, content, "m.json").model.predict(x) == pytest.approx(model.predict(x), rel=1e-5)


def test_a_rank_that_is_given_is_not_multiplied() -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 9, (400, 2))
    model = TensorModel(rank=3, time_budget=0.5).fit(x, np.exp(np.sin(x.prod(axis=1))))
    assert model.rank_ == 3


def test_penalties_of_more_rows_than_the_search_had_are_looser(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 9, (900, 2))
    used: list[float] = []
    sweep = Decomposition.sweep

    def noted(self: Decomposition, modes: Sequence[Mode], rows: Rows, penalty: Penalty, sweeps: int) -> None:
        used.append(penalty.smoothness)
        sweep(self, modes, rows, penalty, sweeps)

    monkeypatch.setattr("quipu.modeling.tensor.model.SEARCH_ROWS", 300)
    monkeypatch.setattr(Decomposition, "sweep", noted)
    model = TensorModel(rank=4, smoothness=1e-7, time_budget=0.1).fit(x, np.exp(np.sin(x.prod(axis=1))))
    assert not model.additive_
    assert used[0] == pytest.approx(1e-7)
    assert used[-1] == pytest.approx(1e-7 * 3.0**-0.8)


def test_a_penalty_must_gain_more_than_as_many_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(1, 9, (60, 2))
    modes = modes_of(x)
    search = Search(x, x[:, 0], held_out_folds(x), Budget(1e12, 10_000), random)
    # every step gains 2 % as sweeps do, whatever it changes
    monkeypatch.setattr(search, "_fitted", lambda changed, _: replace(changed, error=0.98 * changed.error))
    first = Candidate(modes, Penalty(), [Decomposition(started(modes, 2, random)) for _ in search.folds], error=1.0)
    found = search._tune(first, ("smoothness", "ridge"))
    assert [step.name for step in search.steps if step.kept] == ["more sweeps"]
    assert found.penalty == Penalty()


def test_the_error_falls_with_the_rows() -> None:
    random = np.random.default_rng(0)
    x = random.integers(1, 40, (400, 2)).astype(float)
    times = (x[:, 0] + np.sqrt(x[:, 1])) * np.exp(0.05 * random.standard_normal(400))
    model, rows, used, _ = fit_columns({"n": x[:, 0], "m": x[:, 1], "time": times}, "time", time_budget=0.05)
    found = error_by_rows(model, rows, used, time_budget=0.05)
    assert [one.rows for one in found[:3]] == [16, 32, 64]
    assert 250 < found[-1].rows < 400
    assert found[-1].error < 0.08
    assert found[-1].error < 0.7 * found[0].error
    assert error_by_rows(model, rows[:1], used[:1]) == []


def test_continuations_begin_at_the_largest_value() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([2.0 ** random.integers(0, 5, 300), random.uniform(-1, 1, 300), random.integers(0, 3, 300)])
    times = x[:, 0] * np.exp(x[:, 1] + x[:, 2])
    columns = {"n": x[:, 0], "angle": x[:, 1], "kind": x[:, 2], "time": times}
    model, *_ = fit_columns(columns, "time", categorical=["kind"], time_budget=0.05)
    found = {one.parameter: one for one in continuations(model)}
    assert found.keys() == {"n", "angle"}
    for name, one in found.items():
        inside, beyond = np.array(one.values[: one.inside]), np.array(one.values[one.inside :])
        assert inside.max() == pytest.approx(columns[name].max())
        assert (np.diff(beyond) > 0).all()
        assert beyond[0] > inside.max()
        assert (np.diff((one.high - one.low)[one.inside - 1 :]) > 0).all()
        assert one.forms
    assert np.exp(found["n"].logs[-1] - found["n"].logs[found["n"].inside - 1]) == pytest.approx(8.0, rel=0.1)


@pytest.mark.filterwarnings("error")
def test_a_parameter_that_is_zero_in_rows_that_came_later_has_intervals() -> None:
    """Trends are made of some of the rows, in which a parameter may have a logarithm that it has not in all."""
    random = np.random.default_rng(4)
    x = np.column_stack([random.uniform(1.0, 9.0, 400), np.exp(random.uniform(0.0, 5.0, 400))])
    times = (1.0 + x[:, 0]) * x[:, 1] * np.exp(0.02 * random.standard_normal(400))
    model = TensorModel(time_budget=0.05).fit(x, times)
    later = np.array([[0.0, 20.0], [0.0, 40.0]])
    model.partial_fit(later, later[:, 1])
    predicted, low, high = model.predict_interval(np.array([[0.0, 20.0], [5.0, 20.0], [0.0, 1e4]]))
    assert np.isfinite([predicted, low, high]).all()
    assert (low < predicted).all() and (predicted < high).all()
