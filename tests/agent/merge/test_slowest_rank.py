# SPDX-License-Identifier: Apache-2.0
"""The slowest rank of runs: exact from the values of each rank, bounds from statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from profile_writer import Node, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.compare.sides import Side, paired
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.run import merge_run
from quipu.agent.merge.slowest_rank import rank_times, slowest_rank
from quipu.modeling.slowest_rank import RankTimes, most_dominating
from quipu.report.terminal import Layout, call_tree, plain_text
from quipu.report.tree_views import configuration_rows, experiment_view
from quipu.report.views import TreeOptions

# Microseconds in main, solve and MPI_Send of each of four ranks: the maxima are of ranks 0, 1 and 2.
UNEVEN = ((40, 1, 1), (1, 20, 1), (1, 1, 10), (1, 1, 1))
SLOWEST, MEAN, MAXIMA = 42e-6, 79e-6 / 4, 70e-6


def store(
    runs: Path, times: Sequence[Sequence[int]] = UNEVEN, column_ranks: int | None = None, **parameters: float
) -> RunArchive:
    """Store a run of so many ranks, one for each entry of `times`."""
    raw = runs.parent / "raw"
    raw.mkdir(parents=True)
    for rank, (main, solve, send) in enumerate(times):
        nodes = [
            Node(1, 0, 0),
            Node(2, 1, 1, (1, 1000 * main, 5, 0)),
            Node(3, 2, 2, (1, 1000 * solve, 150, 0)),
            Node(4, 3, 3, (1, 1000 * send, 0, len(times))),
        ]
        rank_profile(rank, len(times), nodes=nodes).write(raw)
    return merge_run(raw, runs, RunMetadata(parameters, exit_code=0, seconds=1.0), column_ranks=column_ranks)


def test_it_is_the_largest_sum_of_a_rank_not_the_sum_of_maxima(tmp_path: Path) -> None:
    store(tmp_path / "runs", p=4)
    store(tmp_path / "runs", p=8, times=[(10, 10, 10)] * 8)
    experiment = load_experiment(tmp_path / "runs")
    times = experiment.rank_times
    assert times is not None
    np.testing.assert_allclose(times.low[:, 0], [SLOWEST, 30e-6], rtol=1e-6)
    np.testing.assert_array_equal(times.low, times.high)
    np.testing.assert_allclose(times.mean[:, 0], [MEAN, 30e-6], rtol=1e-6)
    np.testing.assert_allclose(times.mean, experiment.tree.program_total(experiment.values["time"]))
    slowest, balanced = times.dominating(experiment.points)
    assert balanced is None
    assert slowest is not None
    assert slowest.point == (4.0,)
    assert slowest == most_dominating(times, experiment.points, experiment.dedicated)
    assert most_dominating(times, experiment.points, np.array([False, True])) is None  # it waited for a processor


def test_statistics_have_bounds(tmp_path: Path) -> None:
    archive = store(tmp_path / "runs", column_ranks=1, p=4)
    assert not archive.metadata.rank_columns
    found = slowest_rank(archive)
    assert found is not None
    np.testing.assert_allclose([found.mean, found.low, found.high], [MEAN, SLOWEST, MAXIMA], rtol=1e-6)


def test_repetitions_have_no_bounds_beside_the_numbers_of_others(tmp_path: Path) -> None:
    even = [(5, 5, 5), (5, 5, 6), (5, 6, 5), (6, 5, 5)]  # the maxima, 18, are of several ranks, and close to the mean
    archives = [store(tmp_path / "runs", times, p=4) for times in (even, UNEVEN)]
    times = rank_times(archives, [0, 0], [0, 1])
    np.testing.assert_allclose(times.high[0], [16e-6, SLOWEST], rtol=1e-6)
    np.testing.assert_array_equal(times.low, times.high)


def test_seconds_beyond_the_mean_decide_not_ratios_of_short_runs() -> None:
    mean, high = np.array([[1e-3], [1.0]]), np.array([[3e-3], [1.5]])
    found = most_dominating(RankTimes(mean, high, high), np.array([[1.0], [2.0]]), np.ones(2, dtype=bool))
    assert found is not None
    assert found.point == (2.0,)


def test_inclusive_maxima_are_those_of_one_rank(tmp_path: Path) -> None:
    store(tmp_path / "runs", p=4)
    experiment = load_experiment(tmp_path / "runs", "max")
    labels = [experiment.tree.label(path) for path in range(len(experiment.tree))]
    paths = [labels.index(label) for label in ("main", "main->solve(int)", "main->solve(int)->MPI_Send")]
    np.testing.assert_allclose(experiment.values["time"][paths, 0, 0], [40e-6, 20e-6, 10e-6], rtol=1e-6)
    np.testing.assert_allclose(experiment.inclusive("time")[paths, 0, 0], [SLOWEST, 21e-6, 10e-6], rtol=1e-6)
    np.testing.assert_allclose(experiment.program("time"), [[SLOWEST]], rtol=1e-6)
    assert experiment.inclusive("blocks")[paths, 0, 0].tolist() == [155, 150, 0]
    assert experiment.inclusive("comm_size")[paths, 0, 0].tolist() == [4, 4, 4]
    assert experiment.notes == ()
    view = experiment_view(experiment, {})
    np.testing.assert_array_equal(view.scoped("time", "inclusive"), experiment.inclusive("time")[:, 0])
    assert configuration_rows(experiment)[0].total == pytest.approx(SLOWEST)
    assert np.isnan(configuration_rows(experiment)[0].spread)  # of one repetition nothing is known
    assert "100.0%" in plain_text(call_tree(view, TreeOptions(), Layout(92)))
    assert load_experiment(tmp_path / "runs").largest == {}


def test_inclusive_maxima_of_statistics_are_bounds_and_said(tmp_path: Path) -> None:
    store(tmp_path / "runs", p=4, column_ranks=1)
    experiment = load_experiment(tmp_path / "runs", "max")
    assert experiment.inclusive("time")[0, 0, 0] == pytest.approx(MAXIMA)
    assert experiment.notes == (
        "inclusive values of p=4.r1 are upper bounds (sums of maxima over ranks): single ranks are unknown",
    )


@pytest.mark.parametrize("values", [True, False])
def test_an_archive_with_and_without_its_values(tmp_path: Path, values: bool) -> None:
    path = store(tmp_path / "runs", p=4).path
    found = slowest_rank(read_archive(path, values=values))
    assert found is not None
    np.testing.assert_allclose([found.mean, found.low, found.high], [MEAN, SLOWEST, SLOWEST], rtol=1e-6)


def test_where_the_values_are_damaged_statistics_have_to_do(tmp_path: Path) -> None:
    path = store(tmp_path / "runs", p=4).path
    content = (path / "values.parquet").read_bytes()
    (path / "values.parquet").write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    found = slowest_rank(read_archive(path, values=False))
    assert found is not None
    np.testing.assert_allclose([found.low, found.high], [SLOWEST, MAXIMA], rtol=1e-6)


def test_a_comparison_has_those_of_its_configurations(tmp_path: Path) -> None:
    for name, sizes in (("a", (2, 4)), ("b", (4, 8))):
        for p in sizes:
            store(tmp_path / name, UNEVEN if p == 4 else [(1, 1, 1)] * p, p=p)
    pair = paired(*(Side(name, load_experiment(tmp_path / name, "max")) for name in ("a", "b")))
    for side in (pair.before, pair.after):
        assert side.rank_times is not None
        np.testing.assert_allclose(side.rank_times.low, [[SLOWEST]], rtol=1e-6)
        np.testing.assert_allclose(side.inclusive("time")[0], [[SLOWEST]], rtol=1e-6)


def test_means_of_repetitions_that_were_measured() -> None:
    mean = np.array([[1.0, np.nan], [1.0, 1.0], [np.nan, np.nan], [0.0, 0.0]])
    high = np.array([[1.2, np.nan], [1.2, 1.4], [np.nan, np.nan], [0.0, 0.0]])
    found = RankTimes(mean, high, high).dominating(np.arange(4.0)[:, None])
    assert [one is not None for one in found] == [False, True, False, False]
    assert found[1] is not None
    assert found[1].ratio == pytest.approx(1.3)
    assert most_dominating(None, np.zeros((0, 1)), np.ones(0, dtype=bool)) is None
