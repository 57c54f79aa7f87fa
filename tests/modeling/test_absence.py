# SPDX-License-Identifier: Apache-2.0
"""Call paths of one process alone, or of several, and effort of functions without a time of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.design import STRATEGIES
from quipu.modeling.design.program import Budget, search
from quipu.modeling.diagnosis import diagnose
from quipu.modeling.document import from_document, to_document
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, Region, RegionKind
from quipu.modeling.kernels import model_program
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.model import Model, Prediction
from quipu.modeling.priors.path_model import PathModel
from quipu.modeling.priors.untimed import timed_owners, with_untimed

POINTS = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0), (64.0, 128.0, 256.0, 512.0))))
P, N = POINTS.T
NAMES = ("main", "copy_periodic", "work", "MPI_Sendrecv", "step", "odd")
PARENTS = np.array([-1, 0, 0, 0, 2, 4])
COPY, WORK, STEP, ODD = 1, 2, 4, 5


def program() -> Experiment:
    """Return a program that copies with one process; step and odd are expanded in work, which has their time."""
    one, alone = np.ones_like(P), (P == 1) * 1.0
    visits = np.stack([one, alone, one, 10.0 * (P > 1), N, N / 2])
    work = np.stack([5 * one, alone * (10 * N**2 + 20 * N + 30), 4 * N, 0 * P, 3 * N * np.log2(N), 40 * N])
    below = work[WORK] + work[STEP] + work[ODD]
    seconds = np.stack([1e-6 * one, 1e-9 * work[COPY], 1e-9 * below, 1e-6 * (P > 1), 0 * P, 0 * P])
    kinds = [RegionKind.MPI if name.startswith("MPI_") else RegionKind.FUNCTION for name in NAMES]
    tree = CallTree(tuple(map(Region, NAMES, NAMES, kinds)), np.arange(len(NAMES)), PARENTS)
    values = {"visits": visits, "blocks": work, "instructions": 7 * work, "time": seconds}
    metrics = {name: METRICS[name] for name in values}
    return Experiment("one", ("p", "n"), POINTS, tree, metrics, {name: own[:, :, None] for name, own in values.items()})


@pytest.mark.parametrize("metric", ["visits", "blocks", "time"])
def test_what_one_process_does_alone_is_nothing_for_more(metric: str) -> None:
    analysis = analyze(program())
    assert evaluate(analysis, {"p": 64, "n": 1024}, metric).exclusive[COPY].value == 0
    there = evaluate(analysis, {"p": 64, "n": 1024}, metric).exclusive[COPY]
    assert there.lower == 0 and there.upper == pytest.approx(0, abs=1e-9)
    truth = {"visits": 1.0, "blocks": 10.0 * 1024**2 + 20 * 1024 + 30}
    truth["time"] = 1e-9 * truth["blocks"]
    assert evaluate(analysis, {"p": 1, "n": 1024}, metric).exclusive[COPY].value == pytest.approx(
        truth[metric], rel=0.02
    )
    model = analysis.models(metric)[COPY].model
    assert isinstance(model, Model)
    assert model.notes == ("executed at p=1 only",)
    assert dict(zip(analysis.parameters, model.ranges, strict=True))["p"] == (1, 16)


@pytest.mark.parametrize("size", [None, "n"])
def test_kernels_know_what_one_process_does_alone_and_what_only_several_do(size: str | None) -> None:
    model = model_program(program(), size=size, share=1e-6)
    seconds: dict[tuple[str, float], Prediction] = {}
    for p in (1, 64):
        found = model.at({"p": p, "n": 1024})
        seconds |= {(entry.kernel.name, p): entry.total for entry in found.kernels}
        seconds |= {(entry.model.group.name, p): entry.total for entry in found.groups}
    assert seconds["copy_periodic", 64].upper == seconds["main->MPI_Sendrecv", 1].upper == 0.0
    assert seconds["copy_periodic", 1].value == pytest.approx(1e-9 * (10 * 1024**2 + 20 * 1024 + 30), rel=0.02)
    assert seconds["main->MPI_Sendrecv", 64].value == pytest.approx(1e-6, rel=0.02)
    assert seconds["work", 64].value > 0
    assert seconds["work", 1].value == pytest.approx(seconds["work", 64].value, rel=0.02)


@pytest.mark.parametrize("metric", ["visits", "time"])
def test_what_only_several_processes_do_is_nothing_for_one(metric: str) -> None:
    """Also in what is saved; at sizes that were not measured, too."""
    analysis = from_document(to_document(analyze(program())))
    exchange = NAMES.index("MPI_Sendrecv")
    for n in (64, 100, 1024):
        there = evaluate(analysis, {"p": 1, "n": n}, metric)
        assert there.exclusive[exchange] == Prediction(0.0, 0.0, 0.0, False)
        (ranked,) = (one for one in there.ranking() if one.path == exchange)
        assert set(ranked.beyond) <= {"n"} and "not executed at p=1" in ranked.note
    expected = {"visits": 10.0, "time": 1e-6}
    assert evaluate(analysis, {"p": 32, "n": 512}, metric).exclusive[exchange].value == pytest.approx(expected[metric])


@pytest.mark.parametrize("metric", ["visits", "blocks", "time"])
def test_sums_are_the_measured_ones_where_parts_are_not_executed(metric: str) -> None:
    experiment = program()
    whole = analyze(experiment).models(metric, inclusive=True)[0].model
    assert isinstance(whole, Model) and not whole.absent
    measured = experiment.inclusive(metric)[0].mean(axis=1)
    assert whole.evaluate(POINTS) == pytest.approx(measured, rel=1e-3)
    assert [whole.predict(point).value for point in POINTS.tolist()] == pytest.approx(measured, rel=1e-3)


def test_a_sum_says_where_its_formula_does_not_hold() -> None:
    tree, doubled = program().tree, Model(("p",), 2.0, (), None, ((1.0, 8.0),), ((0.5,),))
    parts = (doubled, replace(doubled, absent=(("p", 1.0), ("p", 2.0))), replace(doubled, absent=(("p", 1.0),)))
    entries = tuple(PathModel(part, "measured") for part in (*parts, *(Model(("p",)),) * 3))
    whole = Analysis("made", ("p",), ((1.0, 8.0),), tree, {"blocks": METRICS["blocks"]}, {"blocks": entries})
    model = whole.models("blocks", inclusive=True)[0].model
    assert isinstance(model, Model)
    assert str(model) == "4·[p>1] + 2" and model.notes == (
        "the formula is not that of p=2, where parts are not executed",
    )
    assert [model.standard_error([p]) ** 2 for p in (1.0, 8.0)] == pytest.approx([0.5, 1.5])
    alone = replace(whole, exclusive={"blocks": (entries[3], entries[1], entries[2], *entries[3:])})
    assert isinstance(found := alone.models("blocks", inclusive=True)[0].model, Model)
    assert found.absent == (("p", 1.0),)


def test_what_one_process_alone_does_is_not_done_by_more() -> None:
    whole = program()
    few = np.asarray(P <= 2)
    part = replace(whole, points=POINTS[few], values={name: own[:, few] for name, own in whole.values.items()})
    assert evaluate(analyze(part), {"p": 64, "n": 1024}, "blocks").exclusive[COPY].value == 0


def test_effort_belongs_to_the_call_path_that_has_its_time() -> None:
    experiment = program()
    assert timed_owners(experiment.tree, experiment.values["time"]).tolist() == [0, 1, 2, 3, WORK, WORK]
    whole = with_untimed(experiment)
    counts = experiment.values["instructions"]
    assert np.array_equal(whole.values["instructions"][WORK], counts[[WORK, STEP, ODD]].sum(axis=0))
    assert not whole.values["instructions"][[STEP, ODD]].any()
    assert np.array_equal(whole.values["visits"], experiment.values["visits"])


def test_time_follows_the_effort_of_what_is_expanded() -> None:
    """work takes 1 ns per block, of step or odd; with its blocks alone, it would seem to slow down with n."""
    experiment = program()
    analysis = analyze(experiment)
    point = {"p": 64, "n": 4096}
    truth = 1e-9 * (44 * 4096 + 3 * 4096 * 12)
    found = evaluate(analysis, point, "time").exclusive[WORK]
    assert found.value == pytest.approx(truth, rel=1e-3)
    assert analysis.models("time")[WORK].basis == "effort"
    assert not [finding for finding in diagnose(experiment, analysis, point).findings if finding.path == WORK]


def test_without_time_nothing_moves() -> None:
    experiment = program()
    values = {name: own for name, own in experiment.values.items() if name != "time"}
    bare = replace(experiment, values=values)
    assert with_untimed(bare) is bare


def test_another_run_of_a_simulation_by_effort_says_nothing() -> None:
    """Points that were simulated are left alone, others are suggested; of measured times points are repeated, too."""
    measured = program()
    sizes = np.array([64.0, 128.0, 256.0, 512.0, 1024.0])
    candidates = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0), sizes)))
    target, everything = {"p": 64.0, "n": 4096.0}, Budget.parse("1000%")
    found = {
        exact: search(
            replace(measured, exact_times=exact),
            analyze(measured),
            candidates,
            target,
            STRATEGIES["full"](),
            everything,
            99,
        )
        for exact in (True, False)
    }
    assert {found[exact].state.repetitions for exact in (True, False)} == {1, 4}
    suggested = [found[True].point(one)["n"] for one in found[True].suggestions]
    assert suggested == [1024.0] * 5
    assert len(found[False].suggestions) == 4 * 25 - 20


def test_what_is_not_executed_at_the_most_processes_may_be_nothing_beyond_them() -> None:
    """A coarse grid on which 8 and 27 processes solve, and 1 and 64 do not."""
    points = np.array([(1, 16), (8, 16), (8, 32), (27, 16), (27, 32), (64, 16), (64, 32)], dtype=float)
    p, n = points.T
    here = (p > 1) & (p < 64)
    values = {"visits": np.stack([np.ones_like(p), here * 1.0]), "blocks": np.stack([5 * n, here * p**3 * n])}
    tree = CallTree(
        tuple(Region(name, name, RegionKind.FUNCTION) for name in ("main", "coarse")), *np.array([[0, 1], [-1, 0]])
    )
    metrics = {name: METRICS[name] for name in values}
    analysis = analyze(
        Experiment("grid", ("p", "n"), points, tree, metrics, {name: own[:, :, None] for name, own in values.items()})
    )
    found = evaluate(analysis, {"p": 512, "n": 16}, "blocks").exclusive
    assert found[1].lower == 0.0 < found[1].value <= found[1].upper
    assert found[0].lower == pytest.approx(80)
    model = analysis.models("blocks")[1].model
    assert isinstance(model, Model)
    assert "not executed beyond p=27: it may do nothing there" in model.notes
