# SPDX-License-Identifier: Apache-2.0
"""Overhead per call path and in total, and call paths that it dominates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from profile_writer import METRICS, Node, Profile, Weights, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.overhead import costs_of, costs_of_events, dominated, overhead_share
from quipu.agent.merge.run import merge_run
from quipu.agent.profile.overhead import OVERHEAD, event_costs
from quipu.agent.profile.reader import read_profile
from quipu.modeling.experiment import CallTree, Region

COSTS = {"pair_ns": "30", "pair_inside_ns": "10", "quiet_ns": "2", "counter_ns": "0.5", "clock_ns": "12"}
QUIET = "inline\x1finline\x1fapp.c\x1f5\x1f0\x1f1"


def measured(rank: int = 0, **attributes: str) -> Profile:
    """Return rank_profile with known costs, counters of solve and a quiet function that it calls."""
    profile = rank_profile(rank)
    profile.attributes = {**profile.attributes, **COSTS, **attributes}
    nodes = [*profile.nodes, Node(8, 3, 5, (400, 0, 0, 0), counters=(7, 900, 500))]
    nodes[2].counters = (3, 50)
    profile.nodes = nodes
    profile.regions = {**profile.regions, 5: QUIET}
    added = [Weights(2, [[0], [2], [-1]], metric=len(METRICS)), Weights(5, [[0], [0], [1], [2]], metric=len(METRICS))]
    profile.weights = [Weights(2, [[0], [1], [1]]), Weights(5, [[0], [1], [1], [1]]), *added]
    return profile


def nanoseconds(profile: Profile, folder: Path) -> list[float]:
    found = read_profile(profile.write(folder))
    assert found.metrics[-1] == OVERHEAD
    return (found.values["overhead"] * 1e9).round(6).tolist()


def test_events_times_their_costs(tmp_path: Path) -> None:
    """10 visits of solve and 400 quiet ones; counters say how many additions there were; 20 calls of MPI."""
    solve = 10 * 30 + 0 * 0.5 + 400 * 2 + (900 + 2 * 500) * 0.5
    assert nanoseconds(measured(), tmp_path) == [0, 30, solve, 20 * 30, 0, 90, 30]


def test_telling_waits_reads_the_clock_once_more(tmp_path: Path) -> None:
    assert nanoseconds(measured(mpi_wait="local"), tmp_path)[3] == 20 * 42
    assert nanoseconds(measured(mpi_wait="off"), tmp_path)[3] == 20 * 30


@pytest.mark.parametrize("value", ["", "x", "nan", "-1", "inf", "1e300"])
def test_costs_that_cannot_be_believed_are_none(tmp_path: Path, value: str) -> None:
    assert event_costs({**COSTS, "quiet_ns": value}) is None
    assert "overhead" not in read_profile(measured(quiet_ns=value).write(tmp_path)).values


def test_totals_of_a_run(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for rank in range(2):
        measured(rank, mpi_wait="sample", mpi_wait_probe_seconds="0.25").write(raw)
    (raw / "node-n1.json").write_text(json.dumps({"ended": True, "host": "n1", "agent_seconds": 0.5}))
    metadata = RunMetadata(parameters={"p": 2}, command=("app",), seconds=1.0, exit_code=0)
    archive = read_archive(merge_run(raw, tmp_path / "runs", metadata).path)
    costs = archive.metadata.overhead
    assert costs["visits"] == 35 + 34
    assert costs["mpi_visits"] == 40
    assert costs["hooks"] == pytest.approx((15 + 14) * 30e-9)
    assert costs["mpi"] == pytest.approx(40 * 42e-9)
    assert costs["counters"] == pytest.approx(2 * (800 + 950) * 1e-9)
    assert costs["probes"] == 0.5
    assert costs["agents"] == 0.5
    assert costs["total"] == pytest.approx(costs["hooks"] + costs["mpi"] + costs["counters"] + 0.5)
    assert costs["outside"] == pytest.approx(20e-9)
    assert costs["time"] == pytest.approx(float(archive.statistics["time"].sum.sum()))
    assert archive.statistics["overhead"].sum.sum() == pytest.approx(costs["total"] - 0.5)


def test_totals_from_sums_of_a_process(tmp_path: Path) -> None:
    for rank in range(2):
        profile = read_profile(measured(rank, mpi_wait="local").write(tmp_path))
        expected = costs_of(profile)
        visits, of_mpi = int(expected["visits"]), int(expected["mpi_visits"])
        whole = costs_of_events(profile.attributes, visits, of_mpi, expected["time"], (0, 0))
        assert whole["counters"] == pytest.approx(0, abs=1e-15)
        assert {**whole, "counters": expected["counters"]} == pytest.approx(expected)
    assert costs_of_events({}, 1, 1, 1.0, (0, 0)) == {}
    assert costs_of_events(profile.attributes, 1, 1, float("nan"), (0, 0))["time"] == 0


def test_the_time_of_start_and_end_is_not_in_the_total(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for rank, setup in enumerate((2_000_000, 3_000_000)):
        profile = measured(rank)
        profile.setup_ns = setup
        profile.write(raw)
    archive = read_archive(merge_run(raw, tmp_path / "runs", RunMetadata(seconds=1.0, exit_code=0)).path)
    costs = archive.metadata.overhead
    assert costs["setup"] == pytest.approx(5e-3)
    assert costs["total"] == pytest.approx(costs["hooks"] + costs["mpi"] + costs["counters"])


def test_an_experiment_names_the_run_that_measuring_slowed_most(tmp_path: Path) -> None:
    for number, probes in enumerate(("0", "1e-3"), start=1):
        raw = tmp_path / f"raw{number}"
        raw.mkdir()
        measured(0, mpi_wait_probe_seconds=probes, ranks="1").write(raw)
        merge_run(raw, tmp_path / "runs", RunMetadata(parameters={"p": number}, seconds=1.0, exit_code=0))
    experiment = load_experiment(tmp_path / "runs")
    assert "overhead" not in experiment.values
    assert [note for note in experiment.notes if "measuring took" in note and "p=2.r1" in note]


def tree_of(*places: tuple[int, int]) -> CallTree:
    regions = tuple(Region(f"_Z{i}", f"f{i}") for i in range(len(places)))
    return CallTree(regions, np.array([r for r, _ in places]), np.array([p for _, p in places]))


def test_dominated_call_paths_and_what_causes_it() -> None:
    tree = tree_of((0, -1), (1, 0), (2, 1), (3, 0), (4, 3))
    time = np.array([1.0, 0.2, 0.3, 4.0, 1e-6])
    visits = np.array([1.0, 10.0, 1e7, 5.0, 50.0])
    costs = {"pair": 30e-9, "outside": 20e-9}
    entries = dominated(tree, time, visits * 30e-9, visits, costs)
    assert [(entry.path, entry.culprit, entry.hook, entry.paths) for entry in entries] == [(1, 2, True, 2)]
    assert entries[0].share == pytest.approx(0.3 / 0.5, rel=1e-3)  # of f1: all of the pairs of f2
    without_hooks = dominated(tree, time, np.array([0, 0, 0, 2.0, 0]), visits, costs)
    assert [(entry.path, entry.culprit, entry.hook) for entry in without_hooks] == [(0, 3, False)]
    assert dominated(tree, time, np.full(5, np.nan), visits, costs) == []
    assert overhead_share({"total": 1.0, "time": 0.0}) == 0
