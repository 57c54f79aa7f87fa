# SPDX-License-Identifier: Apache-2.0
"""Merging many ranks: in parts, in parallel, and as statistics over the ranks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from launching import LAUNCH
from patience import PATIENCE
from peers import needs
from profile_writer import Node, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive, RunValues
from quipu.agent.archive.sketch import MOST_BUCKETS, Sketches
from quipu.agent.launch.raw_folder import write_launch
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.run import merge_run
from quipu.agent.merge.shard import RANKS_OF_A_SHARD
from quipu.agent.merge.statistics import RankCells, cells_of, statistics_of
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Metric

QUIPU = str(Path(sys.executable).with_name("quipu"))
ENVIRONMENT = {**os.environ, **LAUNCH}
RANKS = 2 * RANKS_OF_A_SHARD + 5
METADATA = RunMetadata({"p": RANKS}, exit_code=0, seconds=1.0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A raw folder of more ranks than fit into two shards; each 7th has a call path of its own kind."""
    raw = tmp_path_factory.mktemp("many") / "raw"
    raw.mkdir()
    for rank in range(RANKS):
        profile = rank_profile(rank, RANKS, work=10 + rank * rank % 37)
        if rank % 7 == 3:
            profile.nodes = [*profile.nodes, Node(9, 3, 4, (rank, 10, rank, 0))]
        profile.write(raw)
    write_launch(raw, METADATA)
    return raw


def files(archive: RunArchive) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archive.path.glob("*.parquet")}


@pytest.fixture(scope="module")
def alone(many: Path, tmp_path_factory: pytest.TempPathFactory) -> RunArchive:
    return merge_run(many, tmp_path_factory.mktemp("alone"), METADATA, keep_raw=True)


def test_above_the_limit_there_are_statistics(alone: RunArchive) -> None:
    assert not alone.metadata.rank_columns
    assert alone.values is None
    assert not (alone.path / "values.parquet").exists()
    again = read_archive(alone.path)
    assert again.metadata == alone.metadata
    for name, statistics in alone.statistics.items():
        found = again.statistics[name]
        for field in ("ranks", "sum", "min", "max", "mean", "std", "min_rank", "max_rank"):
            np.testing.assert_array_equal(getattr(found, field), getattr(statistics, field))
        for q in (0.0, 0.3, 0.5, 1.0):
            np.testing.assert_array_equal(found.quantile(q), statistics.quantile(q))


def test_statistics_are_those_of_the_values(many: Path, alone: RunArchive, tmp_path: Path) -> None:
    whole = merge_run(many, tmp_path, METADATA, keep_raw=True, column_ranks=RANKS)
    assert whole.values is not None
    assert [whole.tree.key(path) for path in range(len(whole.tree))] == [
        alone.tree.key(path) for path in range(len(alone.tree))
    ]
    for name, statistics in alone.statistics.items():
        dense = np.zeros((len(whole.tree), RANKS))
        combine = np.maximum if whole.metrics[name].over_locations == "max" else np.add
        combine.at(dense, (whole.values.callpath, whole.values.rank), whole.values.metrics[name])
        np.testing.assert_allclose(statistics.sum, dense.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(statistics.std, dense.std(axis=1), rtol=1e-9, atol=1e-15)
        np.testing.assert_array_equal(statistics.min_rank, dense.argmin(axis=1))
        np.testing.assert_array_equal(statistics.max_rank, dense.argmax(axis=1))
        for q in (0.1, 0.5, 0.9):
            exact = np.sort(dense, axis=1)
            low, high = exact[:, int(q * (RANKS - 1))], exact[:, min(RANKS - 1, int(q * (RANKS - 1)) + 1)]
            assert statistics.sketches is not None
            width = 2.0 ** (statistics.sketches.level - 5)
            found = statistics.quantile(q)
            assert np.all(found >= low * (1 - width) - 1e-12)
            assert np.all(found <= high * (1 + width) + 1e-12)


def test_an_experiment_of_statistics_can_be_loaded(alone: RunArchive) -> None:
    experiment = load_experiment(alone.path, "max")
    np.testing.assert_array_equal(experiment.values["blocks"][:, 0, 0], alone.statistics["blocks"].max)


@pytest.mark.parametrize(
    ("mpirun", "jobs"),
    [
        ([], ["--jobs", "2"]),
        pytest.param(["mpirun", "-n", "3"], [], marks=needs("mpi4py")),
        pytest.param(["mpirun", "-n", "3"], ["--jobs", "mpi"], marks=needs("mpi4py")),
        pytest.param(
            ["mpirun", "-n", "2", sys.executable, "-m", "mpi4py.futures"], ["--jobs", "mpi"], marks=needs("mpi4py")
        ),
    ],
)
def test_in_parallel_the_archive_is_the_same(
    many: Path, alone: RunArchive, tmp_path: Path, mpirun: list[str], jobs: list[str]
) -> None:
    command = [*mpirun, QUIPU, "merge", str(many), "-o", str(tmp_path), "--keep-raw", *jobs]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = tmp_path.iterdir()
    assert files(read_archive(path)) == files(alone)
    assert json.loads((path / "run.json").read_text())["problems"] == list(alone.metadata.problems)


def test_under_mpi_a_folder_without_profiles_is_one_error(tmp_path: Path) -> None:
    mpirun = ["mpirun", "-n", "2"]
    command = [*mpirun, QUIPU, "merge", str(tmp_path)]
    result = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode != 0
    assert "has no launch.json, so it is not a raw folder of a run" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_limit_comes_from_the_environment(many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_RANK_COLUMNS", "lots")
    with pytest.raises(UsageError, match="QUIPU_RANK_COLUMNS=lots"):
        merge_run(many, tmp_path, METADATA, keep_raw=True)
    monkeypatch.setenv("QUIPU_RANK_COLUMNS", str(RANKS))
    assert merge_run(many, tmp_path, METADATA, keep_raw=True).values is not None


def test_damaged_sketches_name_the_file(many: Path, tmp_path: Path) -> None:
    path = merge_run(many, tmp_path, METADATA, keep_raw=True).path
    content = (path / "sketches.parquet").read_bytes()
    for damaged in (content[:-30], b"", content[:100] + bytes(1) + content[101:]):
        (path / "sketches.parquet").write_bytes(damaged)
        with pytest.raises(FormatError, match=r"sketches\.parquet"):
            read_archive(path)


def test_blocks_outside_of_all_regions_have_a_place(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    nodes = [Node(1, 0, 0, (0, 7, 12, 0)), Node(2, 1, 3, (4, 30, 0, 2))]
    rank_profile(0, 1, nodes=nodes).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    labels = [archive.tree.label(path) for path in range(len(archive.tree))]
    assert labels == ["(outside any region)", "MPI_Send"]
    assert archive.statistics["blocks"].sum.tolist() == [12, 0]


VALUES = st.lists(st.floats(0, 1e12, allow_nan=False), max_size=60)


@given(st.lists(VALUES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_sketches_do_not_depend_on_the_order_of_joining(parts: list[list[float]], random: object) -> None:
    metric = Metric("work", "1", "effort", "sum", "")

    def over(values: list[float]) -> RankCells:
        rank, none = np.arange(len(values)), np.zeros(len(values), dtype=np.int64)
        return cells_of(RunValues(none, rank, none, {"work": np.array(values)}), [metric], rank, 1)

    def sketch(cells: RankCells) -> Sketches:
        sketches = statistics_of(cells.cells, [metric])["work"].sketches
        assert sketches is not None
        return sketches

    whole = sketch(over([value for part in parts for value in part]))
    pieces = [over(part) for part in parts]
    random.shuffle(pieces)  # type: ignore[attr-defined]
    joined = pieces[0]
    for piece in pieces[1:]:
        joined = joined.joined(piece)
    result = sketch(joined)
    for name in ("level", "cell", "bucket", "count"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name))
    assert result.cell.size <= MOST_BUCKETS
