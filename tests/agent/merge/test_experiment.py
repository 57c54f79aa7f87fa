# SPDX-License-Identifier: Apache-2.0
"""Experiments from folders of run archives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.agent.merge.rank_times import times_by_rank
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError, MeasurementError, UsageError


def measure(folder: Path, parameters: dict[str, float], ranks: int = 2, **changes: Any) -> Path:
    """Store a run whose blocks in solve are `work` times the rank number from 1."""
    raw = folder.parent / "raw"
    raw.mkdir()
    exit_code = changes.pop("exit_code", 0)
    work = changes.pop("work", 100)
    for rank in range(ranks):
        rank_profile(rank, ranks, work, **changes).write(raw)
    return merge_run(raw, folder, RunMetadata(parameters, exit_code=exit_code, seconds=1.0)).path


def test_one_axis_each_for_call_paths_configurations_repetitions(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 4, "n": 10}, ranks=4)
    measure(runs, {"p": 2, "n": 20}, work=300)
    measure(runs, {"p": 2, "n": 10}, work=100)
    measure(runs, {"p": 2, "n": 10}, work=102)
    experiment = load_experiment(runs)
    assert experiment.name == "runs"
    assert experiment.parameters == ("p", "n")
    assert experiment.points.tolist() == [[2, 10], [2, 20], [4, 10]]
    solve = [experiment.tree.label(path) for path in range(len(experiment.tree))].index("main->solve(int)")
    np.testing.assert_array_equal(experiment.values["blocks"][solve], [[150, 153], [450, np.nan], [250, np.nan]])
    assert experiment.notes == ()


def test_a_call_path_that_a_run_does_not_have_is_zero(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 1}, ranks=1)
    without = rank_profile(0, 1).nodes[:3]
    measure(runs, {"p": 2}, ranks=1, nodes=without)
    experiment = load_experiment(runs)
    init = [experiment.tree.label(path) for path in range(len(experiment.tree))].index("main->init")
    assert experiment.values["blocks"][init].tolist() == [[9], [0]]


@pytest.mark.parametrize(("over", "expected"), [("mean", 150), ("max", 200), ("sum", 300)])
def test_combining_ranks(tmp_path: Path, over: Any, expected: float) -> None:
    measure(tmp_path / "runs", {"p": 2})
    experiment = load_experiment(tmp_path / "runs", over)
    labels = [experiment.tree.label(path) for path in range(len(experiment.tree))]
    assert experiment.values["blocks"][labels.index("main->solve(int)"), 0, 0] == expected
    assert experiment.values["comm_size"][labels.index("main->solve(int)->MPI_Send"), 0, 0] == 2
    assert experiment.over_ranks == over
    assert set(experiment.excess) == ({"blocks", "effort_excess"} if over == "mean" else set())


def test_what_the_busiest_rank_has_beyond_the_mean(tmp_path: Path) -> None:
    measure(tmp_path / "runs", {"p": 2})
    experiment = load_experiment(tmp_path / "runs")
    labels = [experiment.tree.label(path) for path in range(len(experiment.tree))]
    assert experiment.excess["blocks"][labels.index("main->solve(int)"), 0, 0] == 200 - 150


def test_failed_and_partial_runs_are_left_out_and_named(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 2})
    measure(runs, {"p": 4}, exit_code=3)
    measure(runs, {"p": 8}, attributes={"mpi_library": "MPICH"})
    experiment = load_experiment(runs)
    assert experiment.points.tolist() == [[2]]
    assert "p=4.r1 is left out: the program ended with exit code 3" in experiment.notes
    assert any(note.startswith("p=8.r1 is left out: ranks 0-1") for note in experiment.notes)


def test_runs_that_are_left_out_for_the_same_reason_share_a_note(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 2})
    for p in range(4, 20):
        measure(runs, {"p": p}, 2 + p % 3, attributes={"mpi_library": "MPICH"})
    measure(runs, {"p": 64}, exit_code=3)
    measure(runs, {"p": 65}, exit_code=4)
    measure(runs, {"p": 66}, exit_code=4)
    of_ranks, code_3, code_4 = load_experiment(runs).notes
    assert of_ranks.startswith("p=4.r1 is left out: ranks 0-2")
    assert of_ranks.endswith("; so are 15 others: " + ", ".join(f"p={p}.r1" for p in range(5, 17)) + " and 3 more")
    assert code_3 == "p=64.r1 is left out: the program ended with exit code 3"
    assert code_4 == "p=65.r1 is left out: the program ended with exit code 4; so is another one: p=66.r1"


def test_what_is_doubtful_of_many_runs_is_told_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    told = "returned from main without MPI_Finalize: MPI calls of destructors of static objects are not"
    for p in (2, 4):
        measure(runs, {"p": p}, p, attributes={"mpi_library": "SMPI", "returned": "1"})
    assert load_experiment(runs).notes == (f"all 2 runs: the program {told} simulated",)
    measure(runs, {"p": 8})
    assert load_experiment(runs).notes == (f"2 of 3 runs, as p=2.r1: the program {told} simulated",)
    assert load_experiment(runs / "p=4.r1").notes == (f"p=4.r1: the program {told} simulated",)


def test_single_archive_and_no_parameters(tmp_path: Path) -> None:
    path = measure(tmp_path / "runs", {})
    assert path.name == "run.r1"
    experiment = load_experiment(path)
    assert experiment.points.shape == (1, 0)
    assert experiment.values["blocks"].shape == (len(experiment.tree), 1, 1)


def test_metrics_that_only_some_runs_have(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 1}, ranks=1)
    measure(runs, {"p": 2}, ranks=1, clock=0)
    experiment = load_experiment(runs)
    assert np.isnan(experiment.values["time"][:, 1]).all()
    assert not np.isnan(experiment.values["time"][:, 0]).any()


def test_errors(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with pytest.raises(FormatError, match="not a readable folder"):
        load_experiment(runs)
    runs.mkdir()
    with pytest.raises(MeasurementError, match="contains no run archive; measure first"):
        load_experiment(runs)
    spaced = tmp_path / "my runs"
    spaced.mkdir()
    with pytest.raises(MeasurementError, match=r"quipu run -o '.*/my runs' --param"):
        load_experiment(spaced)
    failed = measure(runs, {"p": 2}, exit_code=1)
    with pytest.raises(MeasurementError, match=r"contains no complete run\n.*p=2.r1"):
        load_experiment(runs)
    measure(runs, {"p": 2})
    with pytest.raises(UsageError, match="median"):
        load_experiment(runs, "median")  # type: ignore[arg-type]
    measure(runs, {"q": 2})
    with pytest.raises(MeasurementError, match=r"p=2\.r2 has p, q=2\.r1 has q"):
        load_experiment(runs)
    (failed / "run.json").write_text("{}")
    with pytest.raises(FormatError, match=r"run\.json"):
        find_runs(runs)


def test_metrics_of_the_same_name_must_mean_the_same(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    measure(runs, {"p": 1}, ranks=1)
    path = measure(runs, {"p": 2}, ranks=1)
    content = json.loads((path / "run.json").read_text())
    content["metrics"][0]["unit"] = "furlong"
    (path / "run.json").write_text(json.dumps(content))
    (path / "SHA256SUMS").unlink()
    with pytest.raises(FormatError, match="defines the metric visits differently"):
        load_experiment(runs)


def test_runs_are_found_in_order(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for p in (16, 2, 2):
        measure(runs, {"p": p}, ranks=1)
    (runs / ".raw-left").mkdir()
    (runs / "notes").mkdir()
    assert [run.path.name for run in find_runs(runs)] == ["p=2.r1", "p=2.r2", "p=16.r1"]
    assert replace(find_runs(runs)[0].metadata, repetition=2).complete


def test_ranks_that_share_processors_are_known() -> None:
    """Three ranks on two processors are oversubscribed, two are not, and simulated ranks never are."""
    two, three = ({"cpus": 2, "ranks": [{"rank": rank} for rank in range(count)]} for count in (2, 3))
    assert not RunMetadata(nodes=(two, two)).oversubscribed
    assert RunMetadata(nodes=(two, three)).oversubscribed
    assert not RunMetadata(nodes=(three,), launcher={"family": "smpi"}).oversubscribed
    assert not RunMetadata(nodes=({"host": "a"},)).oversubscribed
    # bound to one of two processors both, one each, and one of which nothing is known
    for bound, shared in ((([0], [0]), True), (([0], [1]), False), (([0], None), False)):
        ranks = [{"rank": rank, "bound": own} for rank, own in enumerate(bound)]
        assert RunMetadata(nodes=({"cpus": 2, "ranks": ranks},)).oversubscribed == shared


def test_times_of_ranks_have_the_call_paths_of_the_experiment(tmp_path: Path) -> None:
    """Of the first run of each configuration, none of a single rank; the sum over ranks is that of the run."""
    runs = tmp_path / "runs"
    for ranks in (1, 2, 4):
        measure(runs, {"p": ranks}, ranks=ranks)
    experiment = load_experiment(runs, "sum")
    found = times_by_rank(find_runs(runs), experiment)
    assert {point: times.shape for point, times in found.items()} == {
        (2.0,): (len(experiment.tree), 2),
        (4.0,): (len(experiment.tree), 4),
    }
    for place, point in enumerate(experiment.points[:, 0].tolist()):
        if point > 1:
            there = np.where(experiment.tree.start_and_end, 0.0, experiment.values["time"][:, place, 0])
            assert found[point,].sum(axis=1) == pytest.approx(there)
            assert there.any()
