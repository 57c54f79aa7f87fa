# SPDX-License-Identifier: Apache-2.0
"""Select measurements: the search space, the baseline, and common and separate parts of strategies."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from quipu.modeling.design import STRATEGIES, State
from quipu.modeling.design.baseline import baseline
from quipu.modeling.design.exchanges import Columns, Observations, exchanges
from quipu.modeling.design.posterior import Noise, Posterior, Uncertainty, scatter_of, uncertainties_of
from quipu.modeling.design.program import _evaluated
from quipu.modeling.design.space import Constraint, search_space
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.model import Factor, Model, Term
from quipu.modeling.pmnf.modeler import fit_models
from quipu.modeling.pmnf.options import NoModel

TIME = Metric("time", "s", "cost")
GRID = np.array(list(product([4, 8, 16, 32, 64], [10, 20, 30, 40, 50])), dtype=float)
TARGET = np.array([128.0, 60.0])


def truth(points: FloatArray) -> FloatArray:
    result: FloatArray = 5.0 + 0.1 * points[:, 0] + 1e-3 * points[:, 1] ** 2 * np.log2(points[:, 0])
    return result


def state_of(measured: FloatArray, points: FloatArray = GRID, target: FloatArray = TARGET) -> State:
    rows = np.flatnonzero(~np.isnan(measured[:, 0]))
    names = tuple("pn"[: points.shape[1]])
    models = fit_models(points[rows], measured[None, rows], TIME, names) if len(rows) else [NoModel("nothing")]
    return State(names, points, target, measured[None], tuple(models), truth(points) * points[:, 0])


def nothing(points: FloatArray = GRID) -> FloatArray:
    return np.full((len(points), 4), np.nan)


def noisy(rows: list[int], repetitions: int, noise: float = 0.02) -> FloatArray:
    measured = nothing()
    random = np.random.default_rng(3)
    values = truth(GRID)[rows, None] * (1 + noise * random.uniform(-1, 1, (len(rows), repetitions)))
    measured[np.asarray(rows)[:, None], np.arange(repetitions)] = values
    return measured


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("is_cube(p)", {"p": 27, "n": 1}, {"p": 28, "n": 1}),
        ("is_square(p) and n % 10 == 0", {"p": 49, "n": 30}, {"p": 49, "n": 31}),
        ("is_power(p, 2)", {"p": 1024, "n": 1}, {"p": 1000, "n": 1}),
        ("10 < n <= 20", {"p": 1, "n": 20}, {"p": 1, "n": 10}),
        ("p * 1000 <= n or p == 1", {"p": 1, "n": 5}, {"p": 2, "n": 5}),
        ("n / (p - 1) > 0", {"p": 2, "n": 5}, {"p": 1, "n": 5}),
    ],
)
def test_constraints(text: str, yes: dict[str, float], no: dict[str, float]) -> None:
    predicate = Constraint(text, ("p", "n"))
    assert predicate(yes)
    assert not predicate(no)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n % 10 =", "is not an expression"),
        ("q > 3", "no parameter q; there are: p, n"),
        ("__import__('os')", "no parameter __import__"),
        ("p.real > 1", "p.real cannot be used here"),
        ("(lambda: 1)()", "cannot be used here"),
        ("'a' < p", "'a' cannot be used here"),
        ("is_cube(p, n)", "cannot be evaluated"),
        ("(" * 300 + "p" + ")" * 300, "is not an expression"),
    ],
)
def test_wrong_constraints_are_named(text: str, message: str) -> None:
    with pytest.raises(ModelingError, match="constraint") as error:
        Constraint(text, ("p", "n"))
    assert message in str(error.value)


def test_a_constraint_cannot_use_time_or_memory_without_end() -> None:
    assert not Constraint("p ** (9 ** (9 ** 9)) > 0", ("p",))({"p": 7})


def test_the_search_space_has_what_all_constraints_allow() -> None:
    points = search_space({"p": range(1, 130), "n": [10, 15, 20]}, ["is_cube(p)", "n % 10 == 0"])
    assert points.tolist() == [[p, n] for p in (1, 8, 27, 64, 125) for n in (10, 20)]
    with pytest.raises(ModelingError, match="no point fulfils p > 9"):
        search_space({"p": [1, 2]}, ["p > 9"])
    with pytest.raises(ModelingError, match="more than"):
        search_space({"p": range(2000), "n": range(2000)})


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_baseline_of_a_grid_is_its_lines_through_the_cheapest_corner(m: int) -> None:
    points = np.array(list(product(range(1, 7), repeat=m)), dtype=float)
    chosen = baseline(points, points.prod(axis=1))
    assert len(chosen) == 4 * m + 1
    assert ((points[chosen] > 1).sum(axis=1) <= 1).all()
    assert points[chosen].max() == 5


def test_the_baseline_of_a_space_without_its_corner_has_a_line_for_each_parameter() -> None:
    points = search_space({"p": [1, 8, 27, 64, 125, 216], "n": range(10, 100, 10)}, ["n >= p ** 0.5 * 3 + 10"])
    chosen = points[baseline(points, points.prod(axis=1))]
    for column in range(2):
        rest = chosen[:, 1 - column]
        assert max(len(np.unique(chosen[rest == value, column])) for value in rest) == 5


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("share", [0.01, 0.1, 1.0])
def test_every_strategy_keeps_to_budget_and_repetitions_and_ends(name: str, share: float) -> None:
    strategy, measured = STRATEGIES[name](), nothing()
    costs = truth(GRID) * GRID[:, 0]
    budget = share * costs.sum() * 4
    random = np.random.default_rng(1)
    for _ in range(200):
        chosen = strategy.suggest(state_of(measured), budget, 10)
        if not chosen:
            break
        assert len(chosen) <= 10
        for one in chosen:
            assert one.reason
            assert one.cost == costs[one.candidate]
            assert one.repetition == np.count_nonzero(~np.isnan(measured[one.candidate])) + 1 <= 4
            measured[one.candidate, one.repetition - 1] = truth(GRID)[one.candidate] * random.uniform(0.98, 1.02)
            budget -= one.cost
        assert budget >= 0.0
    else:
        pytest.fail("the strategy does not end")
    if name in ("full", "cpf", "single", "posterior") and share == 1.0:
        assert np.count_nonzero(~np.isnan(measured)) >= 99  # rounding may leave the last run out


def test_the_default_prefers_what_says_more_of_the_target_for_its_cost() -> None:
    first = baseline(GRID, truth(GRID) * GRID[:, 0])
    state = state_of(noisy(first, 1))
    chosen = Posterior().suggest(state, 1e9, 3)
    assert all(0.0 < one.gain <= 1.0 for one in chosen)
    assert "reduces the variance" in chosen[0].reason
    doubts = uncertainties_of(state)
    gains = np.sum([doubt.gains() for doubt in doubts], axis=0) / state.costs
    assert chosen[0].candidate == int(np.argmax(gains))


def test_a_run_in_a_batch_counts_for_those_after_it() -> None:
    first = baseline(GRID, truth(GRID) * GRID[:, 0])
    state = state_of(noisy(first, 2))
    (doubt,) = uncertainties_of(state)
    before, gain = doubt.variance, doubt.gains()[24]
    doubt.measure(24)
    assert math.isclose(before - doubt.variance, gain, rel_tol=1e-6)
    assert doubt.gains()[24] < gain


def test_functions_of_a_parameter_that_measurements_leave_open_are_doubts() -> None:
    first = baseline(GRID, truth(GRID) * GRID[:, 0])
    state = state_of(noisy(first, 3))
    (model,) = state.models
    assert isinstance(model, Model)
    state = replace(state, models=(replace(model, alternatives=(), covariance=()),))
    (open_form,) = uncertainties_of(state)
    (known_form,) = uncertainties_of(replace(state, known_forms=[True]))
    assert open_form.variance > 2.0 * known_form.variance


def test_exchanges_weigh_the_true_function_most_and_predict_as_it_does() -> None:
    truth_of = 5.0 + 2.0 * GRID[:, 0] * np.log2(np.maximum(GRID[:, 0], 1.0)) + 0.1 * GRID[:, 1] ** 2
    model = fit_models(GRID, truth_of[None, :, None], TIME, ("p", "n"))[0]
    assert isinstance(model, Model)
    columns = Columns(("p", "n"), GRID)
    known = Observations(np.arange(len(GRID)), truth_of, 1e3 / truth_of, 20.0)
    found = exchanges(("p", "n"), model.terms, columns, known)
    assert len(found) == 2
    for weights, predictions in found:
        assert weights.sum() == pytest.approx(1.0)
        assert predictions[weights.argmax()] == pytest.approx(truth_of, rel=1e-6)


@pytest.mark.parametrize("name", ["cpf", "cpf2", "gpr"])
def test_strategies_with_more_repetitions_than_there_may_be_go_on_after_the_lines(name: str) -> None:
    measured = np.full((25, 1), np.nan)
    first = baseline(GRID, truth(GRID) * GRID[:, 0])
    measured[first, 0] = truth(GRID)[first]
    state = replace(state_of(nothing()), values=measured[None], repetitions=1)
    assert STRATEGIES[name]().suggest(state, 1e9, 2)


def test_doubt_about_exponents_leads_to_large_runs_where_the_target_is_far() -> None:
    points: FloatArray = np.exp2(np.arange(5.0))[:, None]
    random = np.random.default_rng(4)
    measured = np.full((5, 4), np.nan)
    measured[:, 0] = (100 / points[:, 0] + 1) * random.uniform(0.98, 1.02, 5)
    models = tuple(fit_models(points, measured[None], TIME, ("p",)))
    costs = 100 + points[:, 0]
    state = State(("p",), points, np.array([64.0]), measured[None], models, costs)
    chosen = Posterior().suggest(state, 1e9, 4)
    assert np.mean([points[one.candidate, 0] for one in chosen]) >= 4
    crowded = replace(state, oversubscribed=points[:, 0] > 4)
    assert all(points[one.candidate, 0] <= 4 for one in Posterior().suggest(crowded, 1e9, 4))


def test_without_doubt_a_cheap_run_checks() -> None:
    measured = nothing()
    measured[:, 0] = 7.0
    chosen = Posterior().suggest(state_of(measured), 1e9, 2)
    assert len(chosen) == 2


def test_where_effort_gives_all_forms_time_needs_the_line_of_ranks_alone() -> None:
    measured = nothing()
    measured[0, 0] = truth(GRID)[0]
    known = replace(state_of(measured), known_forms=[True], with_effort=np.arange(len(GRID)), ranks=0)
    assert known.follows_effort
    chosen = Posterior().suggest(known, 1e9, 8)
    assert [GRID[one.candidate].tolist() for one in chosen] == [[8, 10], [16, 10], [32, 10], [64, 10]]
    few = replace(known, with_effort=np.arange(3))  # effort gives no forms without lines of its own
    assert not few.follows_effort
    assert any(GRID[one.candidate, 1] > 10 for one in Posterior().suggest(few, 1e9, 8))
    measured[::5, 0] = truth(GRID)[::5]
    done = replace(state_of(measured), known_forms=[True], with_effort=np.arange(len(GRID)), ranks=0)
    assert not any("line" in one.reason for one in Posterior().suggest(done, 1e9, 4))


def test_states_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ModelingError, match="one value for each parameter"):
        State(("p",), GRID, TARGET, np.zeros((0, 25, 1)), (), np.ones(25))
    with pytest.raises(ModelingError, match="cost above 0"):
        State(("p", "n"), GRID, TARGET, np.zeros((0, 25, 1)), (), np.zeros(25))


def test_no_run_reduces_more_variance_than_there_is() -> None:
    """A prediction of 0 has no noise: the value of one run there is rounding."""
    factors = np.array([[1e-7, 3e-8, 2.0, 5.0], [2e-7, 1e-8, 1.0, 7.0]])
    doubt = Uncertainty(factors, np.array([0.0, 0.0, 1.0]), Noise(0.3), np.zeros(3, dtype=np.int64))
    everything = doubt.variance
    for candidate in (0, 0, 1, 2, 1, 0):
        assert (doubt.gains() <= everything * (1 + 1e-9)).all()
        doubt.measure(candidate)


def test_more_runs_say_nothing_of_what_all_runs_of_a_point_share() -> None:
    """A run after k runs adds the information of k + 1 runs minus that of k: none if the data cause the scatter."""
    plain, shared = Noise(0.1), Noise(0.1, 0.3)
    runs = np.array([0.0, 1.0, 3.0])
    assert plain.of_next(runs) == pytest.approx([0.01, 0.01, 0.01])
    assert shared.of_next(runs)[0] == pytest.approx(0.1)
    assert shared.of_next(runs)[1] == pytest.approx(1 / (1 / 0.095 - 1 / 0.1))
    assert (np.diff(shared.of_next(runs)) > 0).all()


def test_noise_that_repetitions_do_not_explain_is_that_of_points() -> None:
    rng = np.random.default_rng(3)
    x = np.linspace(1.0, 12.0, 12)[:, None]
    model = Model(("p",), 5.0)
    own = 5.0 * (1 + 0.2 * np.array([1.0, -1.0] * 6)[:, None])
    scatter = scatter_of(model, own * (1 + 0.02 * rng.normal(size=(12, 4))), x)
    assert scatter.run == pytest.approx(0.02, rel=0.3)
    assert scatter.configuration == pytest.approx(0.2, rel=0.15)
    alike = scatter_of(model, 5.0 * (1 + 0.02 * rng.normal(size=(12, 4))), x)
    assert alike.configuration == 0.0
    assert alike.run == pytest.approx(0.02, rel=0.3)


@pytest.mark.filterwarnings("error")
def test_what_happens_only_with_too_many_ranks_is_weighed_by_that() -> None:
    """A synchronization that only takes time at 16 oversubscribed ranks, and none at 4 and 8."""
    measured = nothing()
    rows = np.flatnonzero(GRID[:, 0] <= 16)
    measured[rows, :2] = np.where(GRID[rows, :1] == 16, 0.15 + 1e-3 * GRID[rows, 1:], 0.0)
    crowded = replace(state_of(measured), oversubscribed=GRID[:, 0] > 8)
    doubts = uncertainties_of(crowded)
    assert doubts
    assert all(np.isfinite(doubt.gains()).all() for doubt in doubts)


@pytest.mark.parametrize("ranks", [1.0, 128.0])
def test_where_all_candidates_have_one_rank_logarithms_say_nothing(ranks: float) -> None:
    whole = np.array(list(product([1, 2, 4, 8, 16], [10, 20, 30, 40, 50])), dtype=float)
    times = 1e-3 * whole[:, 1] ** 2 * np.log2(whole[:, 0]) + 5.0
    models = fit_models(whole, times[None, :, None], TIME, ("p", "n"))
    points = np.array([[1.0, n] for n in range(10, 100, 10)])
    measured = np.full((len(points), 4), np.nan)
    measured[:5, 0] = np.array([5.0, 5.1, 4.9, 5.05, 4.95])
    known = State(("p", "n"), points, np.array([ranks, 500.0]), measured[None], tuple(models), np.ones(len(points)))
    chosen = Posterior().suggest(known, 100.0, 3)
    assert len(chosen) == 3
    assert all(np.isfinite(one.gain) for one in chosen)


def test_a_model_that_is_not_defined_at_one_point_predicts_the_others() -> None:
    model = Model(("p",), 1.0, (Term(2.0, (Factor("p", log=-1),)),))
    assert _evaluated(model, np.array([[1.0], [4.0], [16.0]])).tolist() == [0.0, 2.0, 1.5]
