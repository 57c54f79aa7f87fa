# SPDX-License-Identifier: Apache-2.0
"""Selections of regions: within a budget, by PIRA II, and by imbalance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.analysis import analyze
from quipu.modeling.callgraph import Call, CallGraph, CallKind, Function
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, Experiment, Region, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.modeling.refine import (
    HookCost,
    PathCosts,
    extrapolated_point,
    path_costs,
    refine_by_models,
    select_statically,
    select_within,
)
from quipu.modeling.refine.costs import FASTEST
from quipu.modeling.refine.imbalance import imbalanced, imbalances, unmeasured_callees
from quipu.modeling.refine.static import Threshold

HOOK = HookCost(1e-6, 0.4e-6)


def tree_of(*paths: tuple[str, int]) -> CallTree:
    """Return a tree of (region, parent); regions that begin with MPI_ are operations of MPI."""
    names = list(dict.fromkeys(name for name, _ in paths))
    kinds = [RegionKind.MPI if name.startswith("MPI_") else RegionKind.FUNCTION for name in names]
    return CallTree(
        tuple(Region(name, name, kind) for name, kind in zip(names, kinds, strict=True)),
        np.array([names.index(name) for name, _ in paths], dtype=np.int64),
        np.array([parent for _, parent in paths], dtype=np.int64),
    )


TREE = tree_of(("main", -1), ("solve", 0), ("get", 1), ("sweep", 1), ("output", 0), ("MPI_Send", 1))


def test_frequent_small_regions_give_way_to_what_explains_more() -> None:
    time = np.array([0.01, 0.09, 0.3, 0.4, 0.00001, 0.19999])
    visits = np.array([1, 10, 1e6, 1000, 1, 100.0])
    found = select_within(PathCosts(TREE, {}, time, visits), HOOK, budget=0.01)
    kept = {choice.region.name: choice.reason for choice in found.kept}
    assert kept == {
        "main": "main is always kept",
        "solve": "9 % of the program, 39 % with callees too costly to measure",
        "sweep": "40 % of the program",
    }
    dropped = {choice.region.name: choice.reason for choice in found.dropped}
    assert dropped["get"] == "30 % of the program, but measuring it takes 100 %"
    assert dropped["output"].endswith("less than 0.1 %")
    assert found.overhead_share == pytest.approx(1011e-6)
    assert found.coverage == pytest.approx(0.01 + 0.09 + 0.4 + 0.19999)


def test_what_is_too_costly_to_measure_is_time_of_its_callers() -> None:
    """`get` is called too often to be measured; `step`, its caller, too."""
    tree = tree_of(("main", -1), ("solve", 0), ("step", 1), ("get", 2), ("output", 0))
    costs = PathCosts(tree, {}, np.array([0.0, 0.0, 0.0, 0.9, 0.1]), np.array([1, 10, 1e5, 1e6, 1.0]))
    kept = {choice.region.name: choice.reason for choice in select_within(costs, HOOK, budget=0.01).kept}
    assert kept == {
        "main": "main is always kept",
        "solve": "0 % of the program, 90 % with callees too costly to measure",
        "output": "10 % of the program",
    }


def test_waiting_for_other_ranks_does_not_hide_work() -> None:
    """With more ranks than processors, nearly all of the time is in MPI."""
    time, visits = np.array([0.01, 0.09, 0.3, 0.4, 0.2, 0.0]), np.array([1, 10, 10, 10, 10, 100.0])
    alone = {choice.region.name for choice in select_within(PathCosts(TREE, {}, time, visits), HOOK).kept}
    time[5] = 1e4
    loaded = select_within(PathCosts(TREE, {}, time, visits), HOOK)
    assert {choice.region.name for choice in loaded.kept} == alone == {"main", "solve", "get", "sweep", "output"}


def test_callers_are_kept_as_long_as_there_is_budget() -> None:
    time, visits = np.array([0.0, 0.0, 0.5, 0.5, 0.0, 0.0]), np.array([1, 5000, 1, 1, 1, 1.0])
    costs = PathCosts(TREE, {}, time, visits)
    assert {c.region.name for c in select_within(costs, HOOK, 0.05).kept} == {"main", "solve", "get", "sweep"}
    assert {c.region.name for c in select_within(costs, HOOK, 0.004).kept} == {"main", "get", "sweep"}


@given(
    st.lists(st.tuples(st.floats(0.001, 1.0), st.floats(1, 1e5)), min_size=1, max_size=8),
    st.floats(0.001, 0.3),
)
def test_a_selection_keeps_to_the_budget_and_is_at_least_half_of_the_best(
    parts: list[tuple[float, float]], budget: float
) -> None:
    tree = tree_of(("main", -1), *((f"f{number}", 0) for number in range(len(parts))))
    time = np.array([0.0, *(time for time, _ in parts)])
    visits = np.array([0.0, *(visits for _, visits in parts)])
    costs = PathCosts(tree, {}, time, visits)
    found = select_within(costs, HOOK, budget, threshold=0.0)
    assert found.overhead <= budget * costs.total * (1 + 1e-9)
    affordable = (
        sum(time[list(chosen)])
        for size in range(len(parts) + 1)
        for chosen in itertools.combinations(range(1, len(parts) + 1), size)
        if sum(visits[list(chosen)]) * HOOK.pair <= budget * costs.total
    )
    assert found.coverage * costs.total >= 0.5 * max(affordable) * (1 - 1e-9)


def test_what_measuring_took_is_taken_off_where_it_was() -> None:
    visits = np.array([1, 10, 1000, 10, 0, 10.0])
    measured = np.array([1.0, 1.0, 0.001, 1.0, 0.0, 0.5])
    costs = path_costs(TREE, {}, measured, visits, HOOK)
    assert costs.time[2] == pytest.approx(0.001 - 1000 * 0.4e-6)
    assert costs.time[1] == pytest.approx(1.0 - 10 * 0.4e-6 - 1010 * 0.6e-6)
    assert costs.time[5] == 0.5  # MPI is measured in any case


def test_what_hooks_seem_to_take_leaves_the_time_that_instructions_need() -> None:
    """A loop of calls whose hooks seem to take more than all of its time is the program all the same."""
    tree = tree_of(("main", -1), ("sweep", 0), ("often", 1))
    time, visits = np.array([1e-4, 0.5, 0.6]), np.array([1.0, 1.0, 1e6])
    hook, instructions = HookCost(1.2e-6, 0.65e-6), np.array([10.0, 5e6, 2e7])
    assert path_costs(tree, {}, time, visits, hook).time.tolist()[1:] == [0.0, 0.0]
    costs = path_costs(tree, {}, time, visits, hook, instructions=instructions)
    assert costs.time.tolist()[1:] == pytest.approx([FASTEST * 5e6, FASTEST * 2e7])
    kept = {choice.region.name for choice in select_within(costs, hook, 0.05).kept}
    assert kept == {"main", "sweep"}


def test_what_is_not_measured_is_part_of_its_callers() -> None:
    tree = tree_of(("main", -1), ("solve", 0), ("get", 1), ("sweep", 2), ("get", 3), ("get", 0))
    costs = PathCosts(tree, {"n": 1.0}, np.array([1.0, 2, 4, 8, 16, 32]), np.array([1.0, 1, 10, 10, 100, 50]))
    folded = costs.in_callers({tree.regions.index(Region(name, name)) for name in ("get", "main")})
    names = [folded.tree.name(path) for path in range(len(folded.tree))]
    assert names == ["main", "solve", "sweep"]
    assert folded.tree.parent.tolist() == [-1, 0, 1]
    assert folded.time.tolist() == [33.0, 6.0, 24.0]
    assert folded.visits.tolist() == [1.0, 1.0, 10.0]
    assert folded.total == costs.total


def test_bad_arguments() -> None:
    costs = PathCosts(TREE, {}, np.zeros(6), np.ones(6))
    with pytest.raises(ModelingError, match="no region took time"):
        select_within(costs, HOOK)
    with pytest.raises(ModelingError, match="budget"):
        select_within(costs, HOOK, budget=0.0)
    with pytest.raises(ModelingError, match="cost of a visit"):
        HookCost(-1.0)


def graph_of(calls: dict[str, str], statements: dict[str, int]) -> CallGraph:
    names = list(statements)
    functions = tuple(Function(name, name, name, statements=statements[name]) for name in names)
    found = [
        Call(names.index(caller), names.index(callee), CallKind.DIRECT)
        for caller, callees in calls.items()
        for callee in callees.split()
    ]
    return CallGraph(functions, tuple(found))


def test_static_selection_by_aggregated_statements() -> None:
    calls = {"main": "a b", "a": "c", "b": "d e", "d": "f", "f": "d"}
    statements = {"main": 1, "a": 1, "b": 1, "c": 40, "d": 2, "e": 2, "f": 3}
    graph = graph_of(calls, statements)
    # main 50, a 41, b 8, c 40, d 5, e 2, f 5: distinct values 2, 5, 8, 40, 41, 50
    names = {function.key for function in select_statically(graph).kept}
    assert names == {"main", "a", "c"}
    assert select_statically(graph, "median").threshold == 8
    assert select_statically(graph, "maximum").threshold == 25
    assert {f.key for f in select_statically(graph, 5).kept} == {"main", "a", "b", "c", "d", "f"}


def test_extrapolation_point_of_the_paper() -> None:
    points = np.array([[p, n] for p in (1, 2, 4, 9) for n in (100,)], dtype=np.float64)
    assert extrapolated_point(points, ("p", "n")) == {"p": pytest.approx(9 + 8 / 3), "n": 100.0}


def measured_at(*points: tuple[float, dict[str, float]]) -> Experiment:
    """Return an experiment of main and functions below it, by the time of each at the values of n."""
    names = list(dict.fromkeys(name for _, times in points for name in times))
    tree = tree_of(("main", -1), *((name, 0) for name in names if name != "main"))
    values = np.array([[[times.get(region.name, 0.0)] for _, times in points] for region in tree.regions])
    visits = np.ones_like(values)
    where = np.array([[n] for n, _ in points])
    metrics = {name: METRICS[name] for name in ("time", "visits")}
    return Experiment("planned", ("n",), where, tree, metrics, {"time": values, "visits": visits})


def test_filter_only_and_filter_and_expand() -> None:
    """main calls a and b; a calls c, which calls the large d and the small e; b calls f. Measured: main, a, b."""
    calls = {"main": "a b", "a": "c", "c": "d e", "b": "f"}
    graph = graph_of(calls, {"main": 1, "a": 2, "b": 2, "c": 3, "d": 50, "e": 1, "f": 60})
    analysis = analyze(
        measured_at(*((n, {"main": 0.01, "a": 0.02 * n, "b": 0.05}) for n in (1.0, 2.0, 4.0, 8.0, 16.0)))
    )

    def names(n: float, seconds: float, expand: Threshold | None = None) -> set[str]:
        return {function.key for function in refine_by_models(graph, analysis, {"n": n}, seconds, expand)}

    # At the measured points nothing is above 1 s, at the target a is: its model decides, b is constant.
    assert names(16, 1.0) == {"main"}
    assert names(100, 1.0) == {"main", "a"}
    assert names(100, 0.04) == {"main", "a", "b"}
    # Expansion goes from what is relevant to what it calls and nobody has measured, by aggregated statements: c has 54.
    assert names(100, 1.0, 40) == {"main", "a", "c"}
    assert names(100, 1.0, 55) == {"main", "a"}
    assert names(100, 0.04, 40) == {"main", "a", "b", "c", "f"}
    # A threshold by name is of these callees: c 54, f 60; the upper median is 60.
    assert names(100, 0.04, "unique-median") == {"main", "a", "b", "f"}
    assert names(100, 0.04, "maximum") == {"main", "a", "b", "c", "f"}
    assert names(16, 100.0, 0) == {"main"}


def test_each_iteration_expands_by_one_level_of_calls() -> None:
    graph = graph_of({"main": "a", "a": "b", "b": "c"}, {"main": 1, "a": 1, "b": 80, "c": 90})
    times: dict[str, dict[str, float]] = {"": {}, "b": {"b": 1.0}, "b, not relevant": {"b": 0.001}}
    found = {}
    for case, more in times.items():
        experiment = measured_at(*((n, {"main": 0.0, "a": 1.0 * n, **more}) for n in (1.0, 2.0, 4.0, 8.0, 16.0)))
        functions = refine_by_models(graph, analyze(experiment), {"n": 20.0}, 0.1, 10)
        found[case] = {function.key for function in functions}
    assert found == {"": {"main", "a", "b"}, "b": {"main", "a", "b", "c"}, "b, not relevant": {"main", "a"}}


def test_all_paths_from_main_are_kept() -> None:
    graph = graph_of(
        {"main": "left right other", "left": "kernel", "right": "deep", "deep": "kernel left", "other": "leaf"},
        {"main": 1, "left": 1, "right": 1, "deep": 1, "kernel": 100, "other": 1, "leaf": 1},
    )
    names = {function.key for function in select_statically(graph, 100).kept}
    assert names == {"main", "left", "right", "deep", "kernel"}


def test_imbalance_is_between_none_and_one_rank_doing_all() -> None:
    tree = tree_of(("main", -1), ("solve", 0), ("kernel", 1), ("even", 1))
    times = np.array([[0.1] * 4, [0.1] * 4, [4.0, 0, 0, 0], [1.0] * 4])
    metrics = imbalances(times)
    assert (metrics[2].percentage, metrics[2].efficiency) == pytest.approx((1.0, 4.0))
    assert (metrics[2].variation, metrics[2].seconds) == pytest.approx((np.sqrt(3.0), 3.0))
    assert metrics[3].percentage == metrics[3].seconds == metrics[3].variation == 0.0
    assert metrics[3].efficiency == 1.0
    chosen, below = imbalanced(tree, times)
    assert [entry.path for entry in chosen] == [0, 1, 2] or {e.path for e in chosen} == {0, 1, 2}
    assert below == (1, 2)
    assert [entry.path for entry in imbalanced(tree, times, 4.0, 0.0, "efficiency")[0]] == [2]
    assert imbalanced(tree, times, 4.1, 0.0, "efficiency")[0] == ()
    assert [entry.path for entry in imbalanced(tree, times, 1.7, 0.0, "variation")[0]] == [2]
    assert imbalanced(tree, times, 1.8, 0.0, "variation")[0] == ()
    with pytest.raises(ModelingError, match="two ranks"):
        imbalances(times[:, :1])


def test_imbalance_is_looked_into_where_nobody_has_measured() -> None:
    """`kernel` is imbalanced and calls `inner` (never measured), a getter and `even` (measured)."""
    graph = graph_of(
        {"main": "kernel even", "kernel": "inner get even", "inner": "deep"},
        {"main": 3000, "kernel": 10, "even": 10, "inner": 4, "get": 3, "deep": 900},
    )
    tree = tree_of(("main", -1), ("kernel", 0), ("even", 1))
    assert [function.key for function in unmeasured_callees(graph, tree, [1])] == ["inner"]
    assert unmeasured_callees(graph, tree, [2]) == ()


def test_metrics_of_imbalance_as_pira_defines_them() -> None:
    """Two ranks take 4 s and 6 s; in a second case five take 2 s and one 45 s."""
    two, six = np.array([[4.0, 6.0]]), np.array([[2.0] * 5 + [45.0]])
    for times, efficiency in ((two, 1.2), (six, 45 / 55 * 6)):
        (found,) = imbalances(times)
        assert found.efficiency == pytest.approx(efficiency)
        assert found.variation == pytest.approx(times.std() / times.mean())
        ranks = times.shape[1]
        assert found.percentage == pytest.approx((times.max() - times.mean()) / times.max() * ranks / (ranks - 1))
