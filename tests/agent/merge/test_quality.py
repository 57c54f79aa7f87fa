# SPDX-License-Identifier: Apache-2.0
"""How good a measurement is: load by others, runs on a loaded machine, repetitions that deviate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.launch.processors import used_by_others
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.run import merge_run
from quipu.modeling.experiment import median_over_repetitions
from quipu.modeling.measurement_quality import RunQuality, quality_line
from quipu.modeling.priors.dedicated import dedicated_times
from quipu.report.tree_views import experiment_view
from quipu.report.views import statistics


def node(ranks: int, cpus: int, *percents: float) -> dict[str, Any]:
    samples = [{"cpu_percent": percent} for percent in percents]
    return {"host": "n1", "cpus": cpus, "ranks": [{"rank": rank} for rank in range(ranks)], "samples": samples}


def test_others_are_what_the_launch_did_not_use() -> None:
    assert used_by_others(busy=10.0, own=6.0, seconds=2.0) == 2.0
    assert used_by_others(busy=5.0, own=6.0, seconds=2.0) == 0.0  # ticks
    assert used_by_others(busy=0.1, own=0.0, seconds=0.1) is None
    launch = {"others": 1.5, "host": "n1"}
    assert RunMetadata(launcher=launch, nodes=(node(2, 4, 0, 100.0),)).others == 1.5
    assert RunMetadata(launcher={**launch, "host": "n0"}, nodes=(node(2, 4, 0, 100.0),)).others == 2.0
    assert RunMetadata(nodes=(node(2, 4, 0, 25.0),)).others == 0.0
    assert RunMetadata(nodes=(node(2, 4, 90.0),)).others is None  # the first sample has no span


@pytest.mark.parametrize(
    ("ranks", "others", "loaded"), [(2, 0.1, False), (2, 1.0, False), (2, 2.5, True), (4, 0.5, True), (4, 0.2, False)]
)
def test_a_machine_is_loaded_where_the_ranks_lack_a_processor(ranks: int, others: float, loaded: bool) -> None:
    launcher: dict[str, Any] = {"others": others, "host": "n1"}
    assert RunMetadata(launcher=launcher, nodes=(node(ranks, 4),)).loaded is loaded
    assert not RunMetadata(launcher={**launcher, "family": "smpi"}, nodes=(node(ranks, 4),)).loaded


def test_the_line_says_what_is_known() -> None:
    alone, loaded = RunQuality((2, 4), 0.1, False, False), RunQuality((4, 4), 3.0, False, True)
    assert quality_line([alone]) == "2 ranks on 4 processors, others used 0.1, a processor for each rank"
    assert quality_line([loaded]) == "4 ranks on 4 processors, others used 3.0, on a loaded machine"
    assert quality_line([alone, loaded], 0.02) == (
        "4 ranks on 4 processors, others used 3.0 at most, repetitions scatter by 2 %, "
        "1 of 2 runs with a processor for each rank"
    )
    assert quality_line([RunQuality(None, None, False, False)]) == ""


def test_the_line_says_that_ranks_are_simulated() -> None:
    launcher = {"family": "smpi", "others": 0.4, "host": "n1"}
    runs = [RunMetadata(ranks=ranks, launcher=launcher, nodes=(node(1, 2),)) for ranks in (8, 64)]
    assert quality_line([run.quality for run in runs[:1]]) == "8 simulated ranks, others used 0.4"
    assert quality_line([run.quality for run in runs]) == "up to 64 simulated ranks, others used 0.4 at most"
    by_effort = [replace(run, launcher={**launcher, "compute": "effort"}).quality for run in runs]
    assert quality_line(by_effort[:1]) == "8 simulated ranks, time by effort: the same in every run"
    assert quality_line(by_effort) == "up to 64 simulated ranks, time by effort: the same in every run"


def measure(runs: Path, n: int, slower: int = 1, others: float = 0.0) -> None:
    """Store a run of one rank on one processor, whose call paths take so many times their usual time."""
    raw = runs.parent / "raw"
    raw.mkdir()
    profile = rank_profile(0, 1)
    nodes = [replace(one, values=(one.values[0], slower * n * one.values[1], *one.values[2:])) for one in profile.nodes]
    replace(profile, nodes=nodes).write(raw)
    (raw / "node-n1.json").write_text(json.dumps({**node(1, 1), "ended": True}))
    launcher = {"others": others, "host": "n1"}
    merge_run(raw, runs, RunMetadata({"n": n}, exit_code=0, launcher=launcher))


def test_runs_on_a_loaded_machine_are_left_out_where_there_are_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for n in (1, 2, 3, 4):
        measure(runs, n)
        measure(runs, n, slower=5, others=2.0)
    measure(runs, 5, slower=5, others=2.0)
    experiment = load_experiment(runs)
    assert experiment.loaded is not None
    assert experiment.loaded.tolist() == [[False, True]] * 4 + [[True, False]]
    assert experiment.dedicated.tolist() == [True] * 4 + [False]
    assert experiment.quality == (
        "1 rank on 1 processor, others used 2.0 at most, repetitions scatter by 100 %, "
        "4 of 9 runs with a processor for each rank"
    )
    times, shared = dedicated_times(experiment, "time")
    assert not shared[:2].any()
    assert np.isfinite(times[0]).tolist() == [[True, False]] * 4 + [[False, False]]


def test_runs_on_a_loaded_machine_are_used_and_marked_where_there_are_no_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for n in (1, 2, 3):
        measure(runs, n, others=2.0)
    times, shared = dedicated_times(load_experiment(runs), "time")
    assert shared.any()
    assert np.isfinite(times[0]).all()


def test_a_repetition_that_deviates_is_named(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for slower in (1, 3, 1):
        measure(runs, 10, slower)
    experiment = load_experiment(runs)
    assert experiment.notes[0].startswith("n=10.r2 took 3 times the median of its 3 repetitions")
    view = experiment_view(experiment, {})
    assert view.over == "median" and "median of 3 repetitions" in dict(view.facts)["shown"]
    first = statistics(view.values["time"], view.over)
    assert first.value[1] == first.min[1] == first.max[1] / 3


def test_the_median_of_nothing_is_not_known() -> None:
    found = median_over_repetitions(np.array([[1.0, 9.0, 2.0], [np.nan, 4.0, np.nan], [np.nan] * 3]))
    assert found[:2].tolist() == [2.0, 4.0] and np.isnan(found[2])
