# SPDX-License-Identifier: Apache-2.0
"""Analyses: rankings at a point, documents, and the selection of regions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
from quipu.modeling.extrapolation import is_far, times_beyond
from quipu.modeling.pmnf.model import Model
from quipu.modeling.refine.selection import select

from .conftest import NAMES, MakeProgram, exact

FAR = {"p": 1024.0, "n": 10000.0}


@pytest.fixture
def analysis(make_program: MakeProgram) -> Analysis:
    return analyze(make_program())


def test_models_of_every_metric(analysis: Analysis) -> None:
    assert set(analysis.exclusive) == {"visits", "blocks", "bytes_sent", "bytes_received", "comm_size", "time"}
    blocks = analysis.models("blocks")[NAMES.index("sort")].model
    assert str(blocks) == "9·n·log2(n) + 5·n"
    with pytest.raises(ModelingError, match=r"no models of metric 'flops'; choose one of: blocks, "):
        analysis.models("flops")


def test_runs_without_parameters_have_constants(make_program: MakeProgram) -> None:
    measured = make_program()
    values = {name: array[:, :1] for name, array in measured.values.items()}
    alone = Experiment("alone", (), np.zeros((1, 0)), measured.tree, measured.metrics, values)
    analysis = analyze(alone)
    for metric in ("blocks", "time"):
        sweep = analysis.models(metric)[NAMES.index("sweep")].model
        assert isinstance(sweep, Model)
        assert sweep.evaluate(np.zeros((1, 0)))[0] == pytest.approx(
            values[metric][NAMES.index("sweep"), 0].mean(), rel=0.05
        )
    assert evaluate(analysis, {}, "time").ranking()


def test_inclusive_models_are_sums(analysis: Analysis) -> None:
    solve = analysis.models("blocks", inclusive=True)[NAMES.index("solve")]
    assert isinstance(solve.model, Model)
    assert solve.basis == "sum"
    assert str(solve.model) == "250·n² + 100·n + 430"
    leaf = NAMES.index("tiny")
    assert analysis.models("time", True)[leaf] == analysis.models("time")[leaf]


def test_ranking(analysis: Analysis) -> None:
    evaluation = evaluate(analysis, FAR)
    ranking = evaluation.ranking()
    truth = exact(np.array([FAR["p"]]), np.array([FAR["n"]]))
    assert [e.label for e in ranking[:3]] == [
        "main->solve->sweep",
        "main->solve->sweep->tiny",
        "main->interpreter",
    ]
    assert sum(e.share for e in ranking) == pytest.approx(1)
    assert evaluation.total.value == pytest.approx(sum(float(t["time"][0]) for t in truth.values()), rel=0.05)
    assert evaluation.extrapolates and all(e.extrapolates for e in ranking)
    assert all(e.lower <= e.value <= e.upper for e in ranking)
    inclusive = evaluation.ranking(inclusive=True)
    assert inclusive[0].label == "main"
    assert inclusive[0].share == pytest.approx(1)
    assert not evaluate(analysis, {"p": 4, "n": 400}).extrapolates
    members = evaluate(analysis, FAR, "comm_size")
    assert members.ranking(inclusive=True)[0].value == pytest.approx(1024)
    assert members.total.value == pytest.approx(1024)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"p": 4.0}, r"no value of n \(parameters of this experiment: p, n\)"),
        ({"p": 4.0, "n": 10.0, "m": 1.0}, "unknown parameter m"),
        ({"p": 0.0, "n": 10.0}, "parameter p must be a number above 0"),
        ({"p": 4.0, "n": float("nan")}, "parameter n must be a number above 0"),
    ],
)
def test_points_are_checked(analysis: Analysis, point: dict[str, float], message: str) -> None:
    with pytest.raises(ModelingError, match=message):
        evaluate(analysis, point)


def test_document_round_trip(analysis: Analysis) -> None:
    text = json.dumps(to_document(analysis), allow_nan=False)
    again = from_document(json.loads(text), "models.json")
    assert json.dumps(to_document(again), allow_nan=False) == text
    assert evaluate(again, FAR).ranking() == evaluate(analysis, FAR).ranking()
    assert evaluate(again, FAR).total == evaluate(analysis, FAR).total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a file of models"),
        ({"schema": 2}, "reads schema 1"),
        ({"callpaths": [{"region": 99, "parent": -1}]}, "not in the table"),
        ({"parameters": [{"name": "p", "lowest": 1, "highest": 2}] * 2}, "parameters: one is named twice"),
        ({"parameters": [{"name": "q", "lowest": 1, "highest": 2}]}, "is not of the parameters q"),
        ({"callpaths": 3}, "callpaths must be a list"),
        ({"models": {"flops": []}}, "flops"),
        ({"models": {"time": [{}]}}, "time"),
        ({"metrics": [{"name": "time", "unit": "s", "kind": "?", "over_locations": "sum"}]}, "kind"),
        ({"regions": [{"name": "a", "display": "a", "kind": "x"}]}, "region kind"),
    ],
)
def test_bad_documents_are_refused(analysis: Analysis, change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        from_document(to_document(analysis) | change, "models.json")
    assert str(caught.value).startswith("models.json: ")


def test_no_document_at_all() -> None:
    with pytest.raises(FormatError, match="must be an object"):
        from_document([], "models.json")


def test_selection(analysis: Analysis) -> None:
    selection = select(analysis, FAR)
    kept = {choice.region.name: choice.reason for choice in selection.kept}
    dropped = {choice.region.name: choice.reason for choice in selection.dropped}
    assert set(kept) == {"main", "solve", "sweep"}
    assert kept["main"] == "main is always kept"
    assert set(dropped) == {"sort", "tiny"}
    assert dropped["sort"].endswith("% of the program, less than 1 %")
    assert all(len(reason.split(" %")[0]) <= 4 for reason in dropped.values())  # no 0.000289 %
    assert "measuring it takes" in dropped["tiny"]
    assert selection.overhead_share < 1e-4
    free = select(analysis, FAR, cost_per_visit=0.0)
    assert "tiny" in {choice.region.name for choice in free.kept}


@pytest.mark.parametrize("name", ["main", "_QQmain", "MAIN__"])
def test_the_main_program_is_kept_in_all_languages(name: str) -> None:
    tree = CallTree((Region(name, name), Region("work", "work")), np.array([0, 1]), np.array([-1, -1]))
    p = np.array([1.0, 2, 4, 8, 16])
    time = np.array([1e-6 + 0 * p, 0.05 + 0 * p])[:, :, None]
    experiment = Experiment("fortran", ("p",), p[:, None], tree, {"time": Metric("time", "s", "cost")}, {"time": time})
    selection = select(analyze(experiment), {"p": 64.0})
    assert {choice.region.name for choice in selection.kept} == {name, "work"}


@pytest.mark.parametrize("start", ["MPI_Init", "MPI_Session_init"])
def test_the_start_of_mpi_counts_nowhere(start: str) -> None:
    """A start that grows with the ranks must not push all work below the threshold."""
    names = ("main", start, "work")
    regions = tuple(Region(n, n, RegionKind.MPI if n == start else RegionKind.FUNCTION) for n in names)
    tree = CallTree(regions, np.arange(3), np.array([-1, 0, 0]))
    p = np.array([1.0, 2, 4, 8, 16])
    time = np.array([1e-4 + 0 * p, 0.3 * p, 0.05 + 0 * p])[:, :, None]
    metrics = {"time": Metric("time", "s", "cost")}
    experiment = Experiment("start", ("p",), p[:, None], tree, metrics, {"time": time})
    analysis = analyze(experiment)
    selection = select(analysis, {"p": 4096.0})
    assert {choice.region.name for choice in selection.kept} == {"main", "work"}
    assert selection.total == pytest.approx(0.0501, rel=0.05)
    evaluation = evaluate(analysis, {"p": 4096.0})
    assert (selection.total, selection.start_and_end) == (evaluation.total.value, evaluation.start_and_end.value)
    assert [one.label for one in evaluation.ranking(inclusive=True)] == ["main", "main->work"]
    assert evaluation.ranking()[0].share == pytest.approx(0.998, abs=0.001)
    (outside,) = evaluation.ranking(start_and_end=True)
    assert outside.value == evaluation.start_and_end.value == pytest.approx(0.3 * 4096, rel=0.01)
    assert np.isnan(outside.share)
    inclusive = {one.path: one.value for one in evaluation.ranking(inclusive=True)}
    assert inclusive[0] == pytest.approx(evaluation.total.value)
    assert "p" not in str(analysis.models("time", inclusive=True)[0].model)
    assert np.allclose(experiment.inclusive("time")[0], 0.0501)


def test_how_far_a_prediction_is_beyond_the_measurements(analysis: Analysis) -> None:
    largest = {name: high for name, (_, high) in zip(analysis.parameters, analysis.ranges, strict=True)}
    near = evaluate(analysis, {"p": 2 * largest["p"], "n": largest["n"]})
    far = evaluate(analysis, {"p": 512 * largest["p"], "n": 3 * largest["n"]})
    assert (near.beyond, far.beyond) == ({"p": 2.0}, {"p": 512.0, "n": 3.0})
    assert (is_far(near.beyond), is_far(far.beyond)) == (False, True)
    assert all(one.beyond == {"p": 512.0, "n": 3.0} for one in far.ranking() if one.model)
    assert times_beyond({"p": 0.5, "n": 3}, [(2, 8), (1, 4)]) == {"p": 4.0}
    assert evaluate(analysis, largest).ranking()[0].beyond == {}


def test_selection_keeps_the_way_to_main(analysis: Analysis) -> None:
    everything = select(analysis, FAR, threshold=0.0, cost_per_visit=0.0)
    assert {c.region.name for c in everything.kept} == {"main", "solve", "sweep", "sort", "tiny"}
    only = select(analysis, FAR, threshold=0.2, cost_per_visit=0.0)
    assert {c.region.name for c in only.kept} == {"main", "solve", "sweep", "tiny"}
    nothing = select(analysis, FAR, threshold=1.0)
    assert {c.region.name for c in nothing.kept} == {"main"}


def test_functions_with_short_parallel_regions_are_not_on_the_way_to_long_ones() -> None:
    names = ("main", "solve", "setup", "omp parallel")
    regions = tuple(Region(n, n, RegionKind.OPENMP if n == "omp parallel" else RegionKind.FUNCTION) for n in names)
    tree = CallTree(regions, np.array([0, 1, 2, 3, 3]), np.array([-1, 0, 0, 1, 2]))
    p = np.array([1.0, 2, 4, 8, 16])
    time = np.stack([share + 0 * p for share in (1e-4, 1e-4, 1e-4, 0.9, 1e-3)])[:, :, None]
    experiment = Experiment("teams", ("p",), p[:, None], tree, {"time": Metric("time", "s", "cost")}, {"time": time})
    selection = select(analyze(experiment), {"p": 64.0})
    assert {choice.region.name for choice in selection.kept} == {"main", "solve", "omp parallel"}
    assert [choice.region.name for choice in selection.dropped] == ["setup"]


def test_selection_checks_its_arguments(analysis: Analysis) -> None:
    with pytest.raises(ModelingError, match="threshold"):
        select(analysis, FAR, threshold=1.5)
    with pytest.raises(ModelingError, match="cost of a visit"):
        select(analysis, FAR, cost_per_visit=-1.0)
    with pytest.raises(ModelingError, match="no value of n"):
        select(analysis, {"p": 4.0})


def test_empty_experiments_are_refused(make_program: MakeProgram) -> None:
    full = make_program()
    empty = Experiment("empty", full.parameters, full.points[:0], full.tree, {}, {})
    with pytest.raises(ModelingError, match="no configurations"):
        analyze(empty)


def test_one_configuration_gives_constants(make_program: MakeProgram) -> None:
    single = analyze(make_program(p=(4,), n=(100,)))
    evaluation = evaluate(single, {"p": 4, "n": 100})
    truth = exact(np.array([4.0]), np.array([100.0]))
    assert evaluation.total.value == pytest.approx(sum(float(t["time"][0]) for t in truth.values()), rel=0.05)


def test_few_processes(make_program: MakeProgram) -> None:
    """Values of p from 1, where a barrier of one process has no latency, and two values of n."""
    small = analyze(make_program(p=(1, 2, 4, 8), n=(100, 200), noise=0.02))
    assert all(isinstance(entry.model, Model) for entries in small.exclusive.values() for entry in entries)
    assert evaluate(small, {"p": 16, "n": 400}).total.value > 0


def test_effort_without_visits_is_executed(make_program: MakeProgram) -> None:
    """Of an expanded function the compiler leaves out the entry where it knows that the first branch is taken."""
    measured = make_program()
    leaf = NAMES.index("tiny")
    measured.values["visits"][leaf] = 0
    model = analyze(measured).models("blocks")[leaf].model
    assert isinstance(model, Model)
    assert model.evaluate(measured.points) == pytest.approx(measured.values["blocks"][leaf].mean(axis=1))


def test_what_was_never_entered_and_did_nothing_has_no_model(make_program: MakeProgram) -> None:
    measured = make_program()
    leaf = NAMES.index("tiny")
    for metric in measured.metrics:
        if measured.metrics[metric].is_effort:
            measured.values[metric][leaf] = 0
    assert measured.executed is not None
    assert not measured.executed[leaf].any()
