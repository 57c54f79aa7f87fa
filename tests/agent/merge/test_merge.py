# SPDX-License-Identifier: Apache-2.0
"""Merging the processes of a run, and writing and reading its archive."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profile_writer import Node, Profile, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.launch.raw_folder import read_launch, write_launch
from quipu.agent.merge.run import merge_run
from quipu.agent.merge.unify import Forest, RegionTable, unify
from quipu.agent.profile.reader import ProfileState
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.experiment import Region

METADATA = RunMetadata({"p": 2, "n": 0.5}, command=("mpirun", "./app"), exit_code=0, seconds=1.5)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / ".raw-x"
    folder.mkdir()
    for rank in (0, 1):
        rank_profile(rank).write(folder)
    return folder


def labels(archive: RunArchive) -> list[str]:
    return [archive.tree.label(path) for path in range(len(archive.tree))]


def write_rank(raw: Path, rank: int, pid: int, host: str = "n1") -> None:
    content = {"rank": rank, "ranks": 3, "pid": pid, "host": host, "affinity": [0, 1, 3], "program": "./app"}
    (raw / f"rank-{rank}.json").write_text(json.dumps(content))


def test_ranks_and_threads_make_one_tree(raw: Path, tmp_path: Path) -> None:
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.path.name == "p=2,n=0.5.r1"
    assert not raw.exists()
    assert archive.metadata.complete
    assert archive.metadata.ranks == 2
    assert labels(archive) == [
        "main",
        "solve(int)",
        "main->solve(int)",
        "main->init",
        "main->solve(int)->MPI_Send",
    ]
    values = archive.values
    assert values is not None
    rows = zip(values.callpath, values.rank, values.thread, values.metrics["blocks"], strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (0, 0, 0, 5),
        (0, 1, 0, 5),
        (1, 0, 1, 50),
        (1, 1, 1, 50),
        (2, 0, 0, 100),
        (2, 1, 0, 200),
        (3, 0, 0, 9),
        (4, 0, 0, 0),
        (4, 1, 0, 0),
    ]


def test_statistics_count_an_absent_call_path_as_zero(raw: Path, tmp_path: Path) -> None:
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    blocks = archive.statistics["blocks"]
    assert blocks.sum.tolist() == [10, 100, 300, 9, 0]
    assert blocks.mean.tolist() == [5, 50, 150, 4.5, 0]
    assert blocks.std.tolist() == [0, 0, 50, 4.5, 0]
    assert blocks.min.tolist() == [5, 50, 100, 0, 0]
    assert blocks.ranks.tolist() == [2, 2, 2, 1, 2]
    assert blocks.min_rank.tolist() == [0, 0, 0, 1, 0]
    assert blocks.max_rank.tolist() == [0, 0, 1, 0, 0]
    assert archive.statistics["comm_size"].max[4] == 2


def test_archive_reads_back_as_written(raw: Path, tmp_path: Path) -> None:
    written = merge_run(raw, tmp_path / "runs", METADATA)
    again = read_archive(written.path)
    assert again.metadata == written.metadata
    assert again.ranks == written.ranks
    assert again.tree.regions == written.tree.regions
    assert written.values is not None and again.values is not None
    for name, column in written.values.metrics.items():
        np.testing.assert_array_equal(again.values.metrics[name], column)
    for name, statistics in written.statistics.items():
        np.testing.assert_array_equal(again.statistics[name].std, statistics.std)
    assert read_archive(written.path, values=False).values is None


def test_nothing_is_overwritten(raw: Path, tmp_path: Path) -> None:
    first = merge_run(raw, tmp_path / "runs", METADATA, keep_raw=True)
    (tmp_path / "runs" / "p=2,n=0.5.r2").write_text("a file of the user")
    second = merge_run(raw, tmp_path / "runs", METADATA)
    assert (first.metadata.repetition, second.metadata.repetition) == (1, 3)
    assert read_archive(second.path).metadata.repetition == 3
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [f"p=2,n=0.5.r{i}" for i in (1, 2, 3)]


def test_what_is_left_out_stays_and_makes_a_run_of_its_own(raw: Path, tmp_path: Path) -> None:
    """Processes started by MPI_Comm_spawn have ranks of another world."""
    write_launch(raw, METADATA)
    for rank in (0, 1):
        profile = rank_profile(rank, work=1000)
        replace(profile, pid=200 + rank, attributes={**profile.attributes, "spawned": "1"}).write(raw)
    archive = merge_run(raw, tmp_path / "runs")
    assert archive.metadata.ranks == 2 and archive.metadata.partial
    assert any("2 processes are not ranks of this run" in text for text in archive.metadata.problems)
    assert not raw.exists()
    left = tmp_path / "runs" / ".left-out-p=2,n=0.5.r1"
    again = merge_run(left, tmp_path / "spawned")
    assert again.metadata.complete and again.metadata.ranks == 2
    assert labels(again) == labels(archive)
    assert again.statistics["blocks"].sum[2] == 10 * archive.statistics["blocks"].sum[2]
    assert not left.exists()


def test_what_is_left_out_stays_where_it_cannot_be_moved(raw: Path, tmp_path: Path) -> None:
    write_launch(raw, METADATA)
    profile = rank_profile(0)
    replace(profile, pid=200, attributes={**profile.attributes, "spawned": "1"}).write(raw)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / ".left-out-p=2,n=0.5.r1").write_text("a file of the user")
    merge_run(raw, tmp_path / "runs")
    assert len(list(raw.glob("profile-*"))) == 3


def test_full_disk_keeps_the_raw_folder(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("quipu.agent.archive.write.write_table", full)
    with pytest.raises(MeasurementError, match="No space left on device") as error:
        merge_run(raw, tmp_path / "runs", METADATA)
    assert f"quipu merge {raw} -o {tmp_path / 'runs'}" in str(error.value)
    assert raw.exists()
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_killed_rank_is_told(raw: Path, tmp_path: Path) -> None:
    rank_profile(1, state=0, attributes={"rank": "1", "ranks": "2", "mpi_library": "Open MPI"}).write(raw)
    archive = merge_run(raw, tmp_path / "runs", replace(METADATA, exit_code=137))
    assert archive.metadata.partial
    assert archive.metadata.problems == (
        "rank 1 ended before MPI_Finalize, process 101: the results contain its counts until then",
    )
    assert [record.state for record in archive.ranks] == ["ended", "running"]


@pytest.mark.parametrize("state", [ProfileState.RUNNING, ProfileState.ENDED], ids=["by _exit", "by exit"])
def test_a_child_of_a_rank_is_not_to_end_mpi(raw: Path, tmp_path: Path, state: ProfileState) -> None:
    """The child has the attributes of its parent, which go on being those of the rank."""
    of_rank = {"host": "n1", "rank": "1", "ranks": "2", "mpi_library": "Open MPI"}
    rank_profile(1, attributes={**of_rank, "mpi_finalized": "1"}).write(raw)
    child = rank_profile(1, state=state, attributes={**of_rank, "forked_from": "101"})
    replace(child, pid=190).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert not archive.metadata.partial
    told = "process 190 of rank 1 ended by _exit, exec or a signal of the program: "
    expected = (told + "the results contain their counts until then",)
    assert archive.metadata.problems == (expected if state is ProfileState.RUNNING else ())


def test_a_child_that_begins_mpi_is_to_end_it(raw: Path, tmp_path: Path) -> None:
    rank_profile(1, attributes={"host": "n1", "rank": "1", "ranks": "2"}).write(raw)
    of_child = {"host": "n1", "rank": "1", "ranks": "2", "mpi_library": "Open MPI", "forked_from": "101"}
    replace(rank_profile(1, attributes=of_child), pid=190).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.metadata.partial
    assert archive.metadata.problems[0].startswith("rank 1 ended before MPI_Finalize")


def test_a_rank_without_profile_is_told(raw: Path, tmp_path: Path) -> None:
    for rank in range(3):
        write_rank(raw, rank, 100 + rank)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.ranks[2].state == "no profile"
    assert archive.ranks[2].affinity == "0-1,3"
    assert archive.metadata.partial
    assert archive.metadata.problems[0].startswith("rank 2 wrote no profile")
    assert archive.statistics["blocks"].mean[0] == 5  # of the ranks that were measured


def test_ranks_that_left_nothing_are_told(raw: Path, tmp_path: Path) -> None:
    rank_profile(1, ranks=4).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert "2 of 4 ranks left no files" in archive.metadata.problems


def test_unreadable_profiles_are_left_out_and_told(raw: Path, tmp_path: Path) -> None:
    (raw / "profile-n1-101.quipu").write_bytes(b"QUIPUPRFgarbage")
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.metadata.partial
    assert any("profile-n1-101.quipu" in problem for problem in archive.metadata.problems)


def test_rank_by_note_of_the_shim_or_by_pid(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for pid, host in ((30, "n1"), (20, "n1"), (40, "n2")):
        Profile(nodes=[Node(1, 0, 1)], regions={1: "main"}, attributes={"host": host}, pid=pid).write(raw, host)
    write_rank(raw, 5, 40, "n2")
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert [(record.rank, record.pid) for record in archive.ranks] == [(5, 40), (6, 20), (7, 30)]


def test_children_of_a_rank_are_further_threads(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rank_profile(0, ranks=1).write(raw)
    rank_profile(0, ranks=1, pid=500, start_epoch_ns=1_800_000_000_000_000_000).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.values is not None
    assert sorted(set(archive.values.thread.tolist())) == [0, 1, 2, 3]
    assert archive.statistics["blocks"].sum[0] == 10
    assert [record.pid for record in archive.ranks] == [100, 500]


def test_a_folder_without_profiles(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no usable profile"):
        merge_run(tmp_path, tmp_path / "runs", METADATA)
    with pytest.raises(FormatError, match=r"launch\.json: is missing"):
        merge_run(tmp_path, tmp_path / "runs")


def test_launch_json_holds_all_that_a_later_merge_needs(raw: Path, tmp_path: Path) -> None:
    write_launch(raw, METADATA)
    assert read_launch(raw).metadata == METADATA
    archive = merge_run(raw, tmp_path / "runs")
    assert archive.metadata.command == ("mpirun", "./app")


def test_effort_only_runs_have_no_time(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rank_profile(0, ranks=1, clock=0).write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert "time" not in archive.metrics
    assert read_archive(archive.path).metrics.keys() == archive.metrics.keys()


@pytest.mark.parametrize("table", ["regions", "callpaths", "values", "statistics", "ranks"])
def test_damaged_tables_name_the_file(raw: Path, tmp_path: Path, table: str) -> None:
    path = merge_run(raw, tmp_path / "runs", METADATA).path
    file = path / f"{table}.parquet"
    content = file.read_bytes()
    for damaged in (content[: len(content) // 2], b"", b"PAR1 or not", content[:-20] + bytes(20)):
        file.write_bytes(damaged)
        with pytest.raises(FormatError, match=rf"{table}\.parquet"):
            read_archive(path)
    file.unlink()
    with pytest.raises(FormatError, match="is missing"):
        read_archive(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("schema", 2, "schema 2"),
        ("format", "other", "not a file of this kind"),
        ("parameters", {"p": "four"}, "parameters.p"),
        ("parameters", [1], "an object"),
        ("repetition", 0, "repetition"),
        ("metrics", [{"name": "x"}], "metrics"),
        ("exit_code", "0", "exit_code"),
        ("problems", "none", "problems"),
    ],
)
def test_wrong_metadata_names_the_key(raw: Path, tmp_path: Path, key: str, value: object, message: str) -> None:
    path = merge_run(raw, tmp_path / "runs", METADATA).path
    content = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**content, key: value}))
    (path / "SHA256SUMS").unlink()
    with pytest.raises(FormatError, match=message):
        read_archive(path)


def test_truncated_metadata(raw: Path, tmp_path: Path) -> None:
    path = merge_run(raw, tmp_path / "runs", METADATA).path
    (path / "run.json").write_text((path / "run.json").read_text()[:40])
    (path / "SHA256SUMS").unlink()
    with pytest.raises(FormatError, match="not JSON"):
        read_archive(path)
    with pytest.raises(FormatError, match="is not a run archive"):
        read_archive(tmp_path)


def test_truncated_values_are_told_by_who_needs_none(raw: Path, tmp_path: Path) -> None:
    path = merge_run(raw, tmp_path / "runs", METADATA).path
    assert read_archive(path, values=False).values is None
    (path / "values.parquet").write_bytes((path / "values.parquet").read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"values\.parquet: cannot be read, it is truncated or damaged"):
        read_archive(path, values=False)


def test_unification_of_many_wide_and_deep_forests() -> None:
    table = RegionTable()
    table.numbers(Region(f"f{i}", f"f{i}") for i in range(50))
    generator = np.random.default_rng(1)
    forests = []
    for _ in range(30):
        parent = np.array([int(generator.integers(-1, i)) if i else -1 for i in range(200)], dtype=np.int64)
        forests.append(Forest(parent, generator.integers(0, 50, 200)))
    deep = np.arange(-1, 4999, dtype=np.int64)
    forests.append(Forest(deep, np.zeros(5000, dtype=np.int64)))
    tree, paths = unify(forests, table)
    assert len({tree.key(path) for path in range(300)}) == 300
    for forest, path in zip(forests[:3], paths, strict=False):
        for node in range(0, 200, 17):
            chain = []
            at = node
            while at >= 0:
                chain.append(f"f{forest.region[at]}")
                at = int(forest.parent[at])
            assert tree.key(int(path[node])) == tuple(reversed(chain))
    assert np.unique(paths[-1]).size == 5000


def test_a_profile_that_could_not_grow_makes_the_run_partial(raw: Path, tmp_path: Path) -> None:
    rank_profile(1, error="the profile could not grow: No space left on device").write(raw)
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert archive.metadata.partial
    assert archive.metadata.problems == ("rank 1: the profile could not grow: No space left on device",)


def test_a_full_disk_while_writing_leaves_no_half_archive(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def fill(path: Path) -> None:
        written.append(path.name)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("quipu.agent.archive.tables.fsync", fill)
    with pytest.raises(MeasurementError, match="Nothing is lost"):
        merge_run(raw, tmp_path / "runs", METADATA)
    assert written == ["regions.parquet", "callpaths.parquet", "values.parquet"]
    assert list((tmp_path / "runs").iterdir()) == []
    assert len(list(raw.glob("profile-*"))) == 2


def test_what_the_node_agents_saw_is_kept_thinned(raw: Path, tmp_path: Path) -> None:
    (raw / "node-n1.json").write_text(json.dumps({"host": "n1", "samples": list(range(50_000))}))
    (raw / "node-n2.json").write_text(json.dumps({"host": "n2", "samples": []}))
    (raw / "node-n3.json").write_text("{")
    (raw / "node-n4.json").write_text(json.dumps({"host": "n4", "samples": "none"}))
    archive = merge_run(raw, tmp_path / "runs", METADATA)
    assert [node["host"] for node in archive.metadata.nodes] == ["n1", "n2"]
    assert 5_000 < len(archive.metadata.nodes[0]["samples"]) <= 10_000
    for name in ("node-n3.json", "node-n4.json"):
        assert any(name in problem for problem in archive.metadata.problems)
    assert not archive.metadata.partial


def test_a_run_whose_end_nobody_saw_says_why_it_is_partial(raw: Path, tmp_path: Path) -> None:
    archive = merge_run(raw, tmp_path / "heat", replace(METADATA, exit_code=None, seconds=None))
    assert archive.metadata.partial
    assert archive.metadata.problems == (
        "the exit code of the program is unknown, because its launcher was killed first",
    )
