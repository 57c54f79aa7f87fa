# SPDX-License-Identifier: Apache-2.0
"""Overhead in a refinement: start and end of the recording, noise, and the default target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.archive.metadata import RunMetadata, configuration_name
from quipu.agent.campaign.baseline import Baseline, Times
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.overhead import Overhead, matters, overhead, root_of, start_and_end
from quipu.agent.campaign.refinement import Iteration, refine
from quipu.agent.campaign.selections import cost_in_times, hook_cost, target_of
from quipu.agent.merge.experiment import StoredRun
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import CallTree, Region, RegionKind
from quipu.modeling.refine import HookCost, PathCosts


def runs_at(point: dict[str, float], *seconds: float, ranks: int = 1) -> list[StoredRun]:
    common = RunMetadata(parameters=point, exit_code=0, ranks=ranks)
    return [StoredRun(Path(), replace(common, processor_seconds=one)) for one in seconds]


def test_the_start_and_end_of_recording_count_once_per_process() -> None:
    """4 ms per process: 1 s and 2 s of plain runs on 1 and 4 ranks take 1.03 s and 2.05 s."""
    per_process = start_and_end(runs_at({"p": 2}, 0.508, 0.51, 0.52, ranks=2), Times(0.3, 0.5, 0.001))
    assert per_process == pytest.approx(0.004)
    runs = runs_at({"p": 1}, 1.04, 1.03) + runs_at({"p": 4}, 2.05, 2.2, 2.05, ranks=4)
    times = {
        configuration_name({"p": p}): Times(1.0, seconds, gap) for p, seconds, gap in ((1, 1.0, 0.03), (4, 2.0, 0))
    }
    found = overhead(runs, Baseline(times, 0.0), per_process)
    assert found.start_and_end == pytest.approx(5 * 0.004 / 3.0)
    assert found.regions == pytest.approx((0.03 + 0.05) / 3.0 - found.start_and_end)
    assert found.noise == pytest.approx(np.hypot(0.03, 0.01) / 3.0)


def test_what_is_less_than_the_noise_is_no_start_and_end() -> None:
    runs = runs_at({"n": 1}, 1.05, 1.02, 1.03)
    assert start_and_end(runs, Times(1.0, 1.0, 0.005)) == pytest.approx(0.02)
    assert start_and_end(runs, Times(1.0, 1.0, 0.03)) == 0.0
    assert start_and_end(runs, Times(1.0, 1.1, None)) == 0.0


def test_one_repetition_says_nothing_of_noise() -> None:
    runs = runs_at({"n": 1}, 1.5)
    once = Baseline({configuration_name({"n": 1}): Times(1.0, 1.0)}, 0.0)
    assert overhead(runs, once, 0.0) == Overhead(0.5, 0.0, None)
    with pytest.raises(MeasurementError, match="no run of the iteration contains its processor time"):
        overhead(runs, Baseline({}, 0.0), 0.0)


def test_a_machine_that_gets_slower_is_no_overhead() -> None:
    """10 % more than before and as much as after: the mean of both, with half of their difference as noise."""
    name = configuration_name({"n": 1})
    before, after = (Baseline({name: Times(1.0, seconds, 0.0)}, 0.0) for seconds in (1.0, 1.1))
    found = overhead(runs_at({"n": 1}, 1.1, 1.1), before, 0.0, after)
    assert found.regions == pytest.approx(1.1 / 1.05 - 1.0)
    assert found.noise == pytest.approx(0.05 / 1.05)


def test_long_runs_need_no_start_and_end() -> None:
    assert matters(Times(1.0, 1.9), 1, 0.05)
    assert not matters(Times(1.0, 2.1), 1, 0.05)
    assert matters(Times(1.0, 2.1), 4, 0.05)


def test_there_is_no_verdict_where_noise_reaches_across_the_budget() -> None:
    counted = (1, 5, 5)
    assert Iteration(*counted, 0.02, None, None, 1.0, noise=0.01).within(0.05) is True
    assert Iteration(*counted, 0.02, None, None, 1.0, noise=0.04).within(0.05) is None
    assert Iteration(*counted, 0.06, None, None, 1.0, noise=0.04).within(0.05) is None
    assert Iteration(*counted, 0.08, None, None, 1.0, noise=0.02).within(0.05) is False
    assert Iteration(*counted, 0.80, None, None, 1.0, noise=0.06).within(0.05) is False
    assert Iteration(*counted, 0.05, None, None, 1.0, noise=0.0).within(0.05) is True
    assert Iteration(*counted, 0.08, None, None, 1.0).within(0.05) is False


def test_an_overhead_below_zero_is_noise() -> None:
    """Runs with instrumentation that are 36 % faster say nothing of 5 %; 1 % faster is less than that."""
    counted = (1, 5, 5)
    fast, little = (Iteration(*counted, share, None, None, 1.0, noise=0.02) for share in (-0.356, -0.01))
    assert (fast.error, fast.within(0.05)) == (0.356, None)
    assert (little.error, little.within(0.05)) == (0.02, True)
    assert Iteration(*counted, -0.356, None, None, 1.0).within(0.05) is None
    assert Iteration(*counted, -0.04, None, None, 1.0, noise=0.06).within(0.05) is None


def test_the_program_runs_below_the_function_that_is_entered_least() -> None:
    names = (("callback", RegionKind.FUNCTION), ("main", RegionKind.FUNCTION), ("MPI_Init", RegionKind.MPI))
    regions = tuple(Region(name, name, kind) for name, kind in names)
    tree = CallTree(regions, np.array([2, 0, 1, 0]), np.array([-1, -1, -1, 2]))
    time, visits = np.array([5.0, 9.0, 1.0, 0.5]), np.array([1.0, 100.0, 1.0, 3.0])
    assert root_of(PathCosts(tree, {}, time, visits)) == "main"
    only_mpi = CallTree(regions[2:], np.array([0]), np.array([-1]))
    assert root_of(PathCosts(only_mpi, {}, np.array([1.0]), np.array([1.0]))) is None


@pytest.mark.parametrize(
    ("points", "more", "target"),
    [
        ("p = [1, 2, 4, 9]\nn = [100, 200, 400]", "", {"p": 9 + 8 / 3, "n": 550.0}),
        ("p = [1, 2, 4, 9]\nn = [100]", "", {"p": 9 + 8 / 3, "n": 100.0}),
        ("p = [1, 2, 4]\nn = [400, 200, 100]", "", {"p": 5.5, "n": 550.0}),
        ("p = [1, 2]\nn = [100, 300]", "at = {n = 7, p = 64}", {"p": 64.0, "n": 7.0}),
    ],
)
def test_the_target_is_one_mean_step_beyond_each_parameter(
    tmp_path: Path, points: str, more: str, target: dict[str, float]
) -> None:
    file = tmp_path / "cycle.toml"
    file.write_text(f'[experiment]\ncommand = "./x {{p}} {{n}}"\n[parameters]\n{points}\n[refine]\n{more}\n')
    campaign = read_campaign(file)
    assert campaign.refine is not None
    assert target_of(campaign.refine, campaign) == pytest.approx(target)


@pytest.mark.parametrize(
    "where", ["command = './sort {repetition}'", "command = './sort'\n[environment]\nX = '{repetition}'"]
)
def test_overhead_is_not_of_runs_with_other_data(tmp_path: Path, where: str) -> None:
    path = tmp_path / "sort.toml"
    path.write_text(f"build = 'make'\n{where}\n[refine]\n")
    with pytest.raises(
        MeasurementError, match=r"sort.toml: \{repetition\}: the overhead compares runs with the same data"
    ):
        refine(read_campaign(path))


def test_measuring_takes_no_simulated_time(tmp_path: Path) -> None:
    costs = {"pair": 2e-8, "outside": 5e-9}
    native = StoredRun(tmp_path, RunMetadata(overhead=costs))
    simulated = StoredRun(tmp_path, RunMetadata(overhead=costs, launcher={"family": "smpi", "compute": "effort"}))
    assert cost_in_times([native]) == hook_cost([native]) == hook_cost([simulated])
    assert cost_in_times([simulated]) == HookCost(0.0)
