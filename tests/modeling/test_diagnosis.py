# SPDX-License-Identifier: Apache-2.0
"""Diagnosis: planted waiting, contention and cache effects are found on their call paths, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.diagnosis import Diagnosis, diagnose
from quipu.modeling.errors import ModelingError
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.message import code_of
from quipu.modeling.pmnf.model import Factor, Model, Term, add
from quipu.modeling.priors.slowdown import Cause
from quipu.report.html import html_diagnosis
from quipu.report.json_views import diagnosis_json
from quipu.report.model_views import diagnosis_facts
from quipu.report.text import quantity

from .waiting_program import GRID, RECEIVE, TREE, WORK, N, P, experiment, normal_noise

FAR = {"p": 65536.0, "n": 500.0}


def _experiment(
    work: FloatArray, receive: FloatArray, wait: FloatArray | None = None, noise: float = 0.02
) -> Experiment:
    return experiment(work, receive, wait, normal_noise(9, noise))


def _diagnosis(measured: Experiment) -> Diagnosis:
    return diagnose(measured, analyze(measured), {"p": 65536, "n": 500})


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
def test_what_follows_its_effort_is_not_diagnosed(noise: float) -> None:
    assert _diagnosis(_experiment(WORK, RECEIVE, noise=noise)).findings == ()


def test_waiting_in_a_wavefront_is_found_with_its_growth() -> None:
    waiting = RECEIVE * P ** (1 / 3)
    (finding,) = _diagnosis(_experiment(WORK, RECEIVE + waiting)).findings
    assert finding.label == "main->work->MPI_Recv"
    assert (finding.cause, finding.parameter, finding.growth) == (Cause.WAITING, "p", "p^(1/3)")
    truth = (1e-5 + 8e-9 * 500) * (65536 ** (1 / 3) - 2)
    assert finding.lost == pytest.approx(truth, rel=0.15)
    assert "waiting" not in finding.evidence


def test_measured_waiting_decides_between_waiting_and_contention() -> None:
    slow = RECEIVE * P ** (1 / 2)
    (waits,) = _diagnosis(_experiment(WORK, slow, wait=0.9 * slow)).findings
    (moves,) = _diagnosis(_experiment(WORK, slow, wait=0.05 * slow)).findings
    assert (waits.cause, moves.cause) == (Cause.WAITING, Cause.CONTENTION)
    assert waits.wait_share == pytest.approx(0.9, rel=0.1)
    assert "90% waiting" in waits.evidence or "9" in waits.evidence


@pytest.mark.parametrize(
    "poll", ["MPI_Test", "MPI_Testany", "PMPI_Testsome", "mpi_testall_", "MPI_Iprobe", "MPI_Improbe"]
)
def test_who_polls_waits(poll: str) -> None:
    """None of these calls is measured as waiting, but the program calls them until a message arrives."""
    regions = tuple(Region(poll, poll, own.kind) if own.name == "MPI_Recv" else own for own in TREE.regions)
    measured = _experiment(WORK, RECEIVE * P ** (1 / 3))
    findings = _diagnosis(replace(measured, tree=replace(TREE, regions=regions))).findings
    assert {(one.label, one.cause) for one in findings} == {(f"main->work->{poll}", Cause.WAITING)}


def test_one_run_that_took_long_does_not_decide_whether_an_operation_waits() -> None:
    """A run of few ranks was disturbed, and took longer than all others: the slowdown is at many ranks."""
    slow = RECEIVE * P ** (1 / 2)
    odd = np.where((P == 27) & (N == 500), 3.0, 1.0)
    (finding,) = _diagnosis(_experiment(WORK, slow * odd, wait=0.9 * slow)).findings
    assert (finding.label, finding.cause) == ("main->work->MPI_Recv", Cause.WAITING)
    assert finding.wait_share == pytest.approx(0.9, rel=0.1)


def test_work_that_slows_down_is_contention_or_cache() -> None:
    (shared,) = _diagnosis(_experiment(WORK * np.log2(P), RECEIVE)).findings
    assert (shared.label, shared.cause, shared.growth) == ("main->work", Cause.CONTENTION, "log2(p)")
    (cache,) = _diagnosis(_experiment(WORK * (1 + N / 200), RECEIVE)).findings
    assert (cache.label, cause_of(cache), cache.parameter) == ("main->work", "cache effects", "n")


def test_simulated_computation_by_effort_has_neither_caches_nor_contention() -> None:
    measured = _experiment(WORK * np.log2(P) * (1 + N / 200), RECEIVE * P ** (1 / 3))
    found = {exact: _diagnosis(replace(measured, exact_times=exact)).findings for exact in (False, True)}
    assert {finding.label for finding in found[False]} == {"main->work", "main->work->MPI_Recv"}
    assert [finding.label for finding in found[True]] == ["main->work->MPI_Recv"]


def cause_of(finding: object) -> str:
    return str(finding.cause.value)  # type: ignore[attr-defined]


def test_the_largest_loss_comes_first() -> None:
    found = _diagnosis(_experiment(WORK * np.log2(P), RECEIVE * P ** (1 / 3)))
    assert [finding.label for finding in found.findings] == ["main->work", "main->work->MPI_Recv"]
    assert found.findings[0].lost > found.findings[1].lost
    assert found.total > 0


def test_points_and_times_that_are_not_there_are_refused() -> None:
    measured = _experiment(WORK, RECEIVE)
    analysis = analyze(measured)
    with pytest.raises(ModelingError, match="no value of n"):
        diagnose(measured, analysis, {"p": 65536})
    values = {name: value for name, value in measured.values.items() if name != "time"}
    without = Experiment("effort", ("p", "n"), GRID, TREE, measured.metrics, values)
    with pytest.raises(ModelingError, match="no time"):
        diagnose(without, analysis, {"p": 65536, "n": 500})


def test_configurations_that_were_oversubscribed_say_nothing() -> None:
    """From 125 ranks on they are oversubscribed: this growth is no property of the program."""
    shared = np.where(P >= 125, P / 20, 1.0)
    measured = _experiment(WORK * shared, RECEIVE * shared)
    assert _diagnosis(measured).findings
    known = _diagnosis(replace(measured, oversubscribed=P >= 125))
    assert known.findings == ()
    assert [code_of(note) for note in known.notes] == ["blind-points", "blind-parameters"]
    assert "measure at least 4 values of p, with a processor for each rank" in known.notes[1]


def test_waiting_that_no_operation_measured_is_not_known() -> None:
    (finding,) = _diagnosis(_experiment(WORK, RECEIVE * (1 + P ** (1 / 3)), wait=np.zeros_like(P))).findings
    assert finding.cause is Cause.WAITING
    assert "waiting" not in finding.evidence


@pytest.mark.parametrize(
    ("name", "kind", "advice"),
    [
        ("work", RegionKind.FUNCTION, "build them with the compiler wrappers"),
        ("MPI_Win_fence", RegionKind.MPI, "only the growth of their time is known"),
        ("barrier", RegionKind.OPENMP, "only the growth of their time is known"),
        ("work.py", RegionKind.PYTHON, "counted in compiled code only"),
    ],
)
def test_advice_on_what_has_no_effort_is_that_of_its_kind(name: str, kind: RegionKind, advice: str) -> None:
    measured = _experiment(WORK, 1e-6 + 0 * P, noise=0.0)
    tree = CallTree((TREE.regions[0], Region(name, name, kind), TREE.regions[2]), TREE.region, TREE.parent)
    uncounted = measured.values["blocks"].copy()
    uncounted[1] = 0
    (note,) = _notes(replace(measured, tree=tree, values={**measured.values, "blocks": uncounted}))
    assert f"({name})" in note and advice in note
    assert ("quipu-cc" in note) == (kind is RegionKind.FUNCTION)
    assert _notes(measured) == []


def _notes(measured: Experiment) -> list[str]:
    return [note for note in _diagnosis(measured).notes if code_of(note) == "no-effort"]


def test_the_program_takes_what_predictions_say_and_losses_are_part_of_it() -> None:
    """Growth in the models of time is lost once: in the total and in the call path of `evaluate`."""
    point = {"p": 65536.0, "n": 500.0}
    analysis = analyze(_experiment(WORK, RECEIVE * P ** (1 / 3)))
    found = diagnose(_experiment(WORK, RECEIVE * P ** (1 / 3)), analysis, point)
    time = evaluate(analysis, point)
    (finding,) = found.findings
    assert finding.in_model
    assert found.predicted == time.total.value > found.total == evaluate(analysis.from_effort, point).total.value
    assert finding.predicted == time.exclusive[finding.path].value
    assert found.not_in_models == 0.0
    assert found.share(finding) == pytest.approx(finding.lost / time.total.value)
    facts = dict(diagnosis_facts("there", found))
    assert facts["program"] == f"{quantity(time.total.value, 's')}, as in quipu predict"
    assert facts["from effort"].startswith(f"{quantity(found.total, 's')}, without waiting and slowdown")


def test_losses_that_no_model_of_time_has_are_beside_the_prediction() -> None:
    point = {"p": 65536.0, "n": 500.0}
    measured = _experiment(WORK, RECEIVE * P ** (1 / 3))
    analysis = analyze(measured).from_effort  # as if growth had not predicted better
    found = diagnose(measured, analysis, point)
    (finding,) = found.findings
    assert not finding.in_model
    assert found.not_in_models == finding.lost > 0
    assert found.predicted == found.total
    assert found.share(finding) == pytest.approx(finding.lost / (found.total + finding.lost))
    assert "are lost by findings that no model of time contains" in dict(diagnosis_facts("there", found))["program"]


def test_waiting_in_a_model_without_a_finding_is_said() -> None:
    """As where it follows the extents of the process grid, and the slowdown along p alone is not significant."""
    measured = _experiment(WORK, RECEIVE)
    analysis = analyze(measured)
    entry = analysis.models("time")[2]
    assert isinstance(entry.model, Model)
    waits = Model(("p", "n"), 0.0, (Term(1e-4, (Factor("p", log=1),)),))
    waiting = replace(entry, model=add([entry.model, waits]), lower=entry.model, basis="table I: MPI_Recv + waiting")
    models = (*analysis.models("time")[:2], waiting)
    found = diagnose(measured, replace(analysis, exclusive={**analysis.exclusive, "time": models}), FAR)
    assert found.findings == ()
    (other,) = found.others
    assert (other.label, other.basis) == ("main->work->MPI_Recv", "table I: MPI_Recv + waiting")
    assert other.lost == pytest.approx(1.6e-3)
    assert found.share(other) == pytest.approx(1.6e-3 / found.predicted)
    assert diagnosis_json("x", found)["others"][0]["lost"] == other.lost
    assert "also beyond effort" in html_diagnosis("x", "p=65536, n=500", found)
    assert diagnose(measured, analysis, FAR).others == ()
