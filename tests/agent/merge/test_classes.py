# SPDX-License-Identifier: Apache-2.0
"""Count classes: facts of a program made by hand, counters of profiles, the tables of an archive."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from class_counts import assert_classes_equal_metrics
from fact_program import build
from profile_writer import Node, Profile, Weights
from quipu.agent.archive.class_tables import read_classes, read_source
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive, SourceEffort, SourceLine
from quipu.agent.merge.classes import ClassCells
from quipu.agent.merge.run import merge_run
from quipu.agent.merge.shard import RANKS_OF_A_SHARD
from quipu.agent.source.classes import SourcePrograms, counted_functions
from quipu.modeling.errors import FormatError

EFFORT = ("blocks", "instructions", "flops", "flops_single", "flops_double", "loads", "stores")
METRICS = ["visits\t1\teffort\tsum\t", "time\ts\tcost\tsum\t"] + [
    f"{name}\t1\teffort\tsum\t" for name in (*EFFORT, "bytes_loaded", "bytes_stored", "bytes_in_order")
]
WIDTH = 10
NODE = 64 + 8 * len(METRICS)


def row(*first: int) -> list[int]:
    return [*first, *([0] * (WIDTH - len(first)))]


def line(function: str, number: int, *effort: list[int], file: str = "/src/a.c") -> dict[str, Any]:
    """Return a line of code. effort: of each row of weights, the row first."""
    return {"function": [f"{function}()", function, file], "line": number, "effort": list(effort)}


def function(name: str, counters: int, *lines: Mapping[str, Any], at: int = 1, **changes: object) -> str:
    """Return an entry of the section with a class for each row of each line."""
    own: dict[str, object] = {"name": name, "display": name, "file": "/src/a.c", "line": at, "hook": True}
    classes = [
        [-1, 0, [row, 1], [], [[number, member["line"], *effort]]]
        for number, member in enumerate(lines)
        for row, *effort in member["effort"]
    ]
    members = {"functions": [member["function"] for member in lines], "classes": classes}
    return json.dumps({**own, "counters": counters, **members, **changes})


# main counts 1 row of weights; solve has 2 counters and inlined code of at() from another file.
SOLVE = (
    line("solve", 10, [0, *row(1, 5)], [1, *row(2, 7)]),
    line("at", 3, [1, *row(0, 4, 2)], [2, *row(1, -1)], file="/src/a.h"),
)
SOLVE_WEIGHTS = [row(1, 5), row(2, 11, 2), row(1, -1)]
MAIN = function("main", 0, line("main", 2, [0, *row(3, 30)]))
TINY = function("tiny", 1, line("tiny", 7, [0, *row(1, 2)], [1, *row(1, 1)]), at=7)


def written(folder: Path, program: Path, rank: int = 0, *, weights: list[list[int]] | None = None) -> None:
    """Write the profile of a rank: main (once) → solve (4 times, counters 10, 20 × (rank mod 3)) → tiny (quiet)."""
    visits = [0, 1, 4, 6]
    counters: list[tuple[int, ...]] = [(), (), (10, 20 * (rank % 3)), (5,)]
    Profile(
        nodes=[Node(i + 1, i, i, (visits[i], *([0] * (len(METRICS) - 1))), counters=counters[i]) for i in range(4)],
        regions={
            1: "main\x1f\x1f/src/a.c\x1f1\x1f0\x1f0",
            2: "solve\x1f\x1f/src/a.c\x1f1\x1f0\x1f0",
            3: "tiny\x1f\x1f/src/a.c\x1f7\x1f0\x1f1",
        },
        weights=[
            Weights(1, [row(3, 30)]),
            Weights(2, weights or SOLVE_WEIGHTS),
            Weights(3, [row(1, 2), row(1, 1)]),
        ],
        attributes={"rank": str(rank), "host": "n1", "program": str(program)},
        metrics=METRICS,
        node_size=NODE,
        pid=100 + rank,
        start_epoch_ns=program.stat().st_mtime_ns + 10**9,
    ).write(folder)


def merged(tmp_path: Path, ranks: int = 1) -> tuple[RunArchive, SourceEffort | None]:
    raw = tmp_path / "raw"
    metadata = RunMetadata(parameters={"p": ranks}, seconds=1.0, exit_code=0)
    archive = read_archive(merge_run(raw, tmp_path / "runs", metadata).path)
    return archive, read_source(archive.path, archive.metadata, archive.tree)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "raw").mkdir()
    other = function("solve", 2, line("solve", 10, [0, *row(1, 99)], [1, *row(2, 7)]))  # optimized differently
    return build(tmp_path, MAIN + "\n" + other + "\n", function("solve", 2, *SOLVE) + "\n" + TINY + "\n")


def test_lines_of_all_ranks_on_their_call_paths(tmp_path: Path, program: Path) -> None:
    for rank in range(3):
        written(tmp_path / "raw", program, rank)
    archive, source = merged(tmp_path, 3)
    assert source is not None
    found = {
        (archive.tree.label(path), source.lines[number].function, source.lines[number].line): tuple(
            int(source.metrics[name][entry]) for name in ("blocks", "instructions", "flops")
        )
        for entry, (path, number) in enumerate(zip(source.callpath.tolist(), source.line.tolist(), strict=True))
    }
    assert found == {
        ("main", "main()", 2): (9, 90, 0),
        ("main->solve", "solve()", 10): (3 * (4 + 20), 3 * (20 + 70), 0),
        ("main->solve", "at()", 3): (60, 3 * 40 - 60, 60),
        ("main->solve", "tiny()", 7): (3 * (6 + 5), 3 * (12 + 5), 0),
    }
    for name in EFFORT:  # nothing is lost and nothing counts twice
        sums = np.bincount(source.callpath, source.metrics[name].astype(np.float64), minlength=len(archive.tree))
        assert sums.tolist() == archive.statistics[name].sum.tolist()
    assert archive.metadata.problems == ()


def test_ranks_of_several_shards(tmp_path: Path, program: Path) -> None:
    """Ranks of the second shard run a program that the first does not contain, except the last rank."""
    other = tmp_path / "other"
    other.mkdir()
    weights = [row(1, 5), row(2, 7), row(0)]
    lines = line("solve", 10, [0, *row(1, 5)], [1, *row(2, 7)])
    second = build(other, MAIN + "\n" + function("solve", 2, lines) + "\n" + TINY + "\n")
    ranks = RANKS_OF_A_SHARD + 3
    for rank in range(ranks):
        if RANKS_OF_A_SHARD <= rank < ranks - 1:
            written(tmp_path / "raw", second, rank, weights=weights)
        else:
            written(tmp_path / "raw", program, rank)
    archive, _ = merged(tmp_path, ranks)
    assert_classes_equal_metrics(archive)
    counts = read_classes(archive.path, archive.metadata, archive.tree)
    assert counts is not None
    found = sorted(
        (archive.tree.name(path), *row)
        for path, *row in zip(
            *(column.tolist() for column in (counts.callpath, counts.lowest, counts.highest, counts.total)), strict=True
        )
    )
    of_first = [rank for rank in range(ranks) if not RANKS_OF_A_SHARD <= rank < ranks - 1]
    assert found == [
        ("main", 0, 1, 2),
        ("main", 0, 1, ranks - 2),
        ("solve", 0, 4, 4 * 2),
        ("solve", 0, 4, 4 * (ranks - 2)),
        ("solve", 0, 5, 5 * 2),
        ("solve", 0, 5, 5 * (ranks - 2)),
        ("solve", 0, 6, 6 * 2),
        ("solve", 0, 6, 6 * (ranks - 2)),
        ("solve", 0, 10, 10 * 2),
        ("solve", 0, 10, 10 * (ranks - 2)),
        ("solve", 0, 10, 10 * (ranks - 2)),
        ("solve", 0, 40, sum(20 * (rank % 3) for rank in of_first)),
    ]


def test_what_counts_outside_of_all_regions(tmp_path: Path, program: Path) -> None:
    """A filter excludes main and solve: their lines are at the root."""
    written(tmp_path / "raw", program)
    (path,) = (tmp_path / "raw").glob("profile-*")
    content = path.read_bytes()
    for name in (b"main", b"solve"):
        content = content.replace(name + b"\x1f\x1f/src/a.c\x1f1\x1f0\x1f0", name + b"\x1f\x1f/src/a.c\x1f1\x1f0\x1f1")
    path.write_bytes(content)
    archive, source = merged(tmp_path)
    assert source is not None
    assert {archive.tree.label(path) for path in source.callpath.tolist()} == {"(outside any region)"}
    assert source.metrics["instructions"].sum() == archive.statistics["instructions"].sum.sum() > 0


def test_a_program_that_was_built_again_is_told_and_left_out(tmp_path: Path, program: Path) -> None:
    hour_ago = program.stat().st_mtime_ns - 3600 * 10**9
    os.utime(program, ns=(hour_ago, hour_ago))
    written(tmp_path / "raw", program)
    later = hour_ago + 10**10
    os.utime(program, ns=(later, later))
    archive, source = merged(tmp_path)
    assert source is None
    assert archive.metadata.problems == (f"no counts of loops of {program}: the file changed after the run",)
    assert archive.metadata.complete


def test_a_clock_that_was_set_back_changes_no_program(tmp_path: Path, program: Path) -> None:
    """The program seems to be written after the run, and in the future."""
    written(tmp_path / "raw", program)
    later = program.stat().st_mtime_ns + 3600 * 10**9
    os.utime(program, ns=(later, later))
    archive, source = merged(tmp_path)
    assert source is not None and not archive.metadata.problems


def test_lines_that_do_not_add_up_to_the_weights_are_of_another_program(tmp_path: Path, program: Path) -> None:
    written(tmp_path / "raw", program, weights=[row(1, 5), row(2, 11, 2), row(1, 0)])
    _, source = merged(tmp_path)
    assert source is not None
    assert {entry.function for entry in source.lines} == {"main()", "tiny()"}


@pytest.mark.parametrize("gone", [True, False])
def test_runs_without_classes_have_no_tables(tmp_path: Path, gone: bool) -> None:
    (tmp_path / "raw").mkdir()
    program = build(tmp_path, json.dumps({"name": "main"}) + "\n")
    written(tmp_path / "raw", program)
    if gone:
        program.unlink()
    archive, source = merged(tmp_path)
    assert source is None
    assert not (archive.path / "classes.parquet").exists()
    assert archive.metadata.problems == ()


@pytest.mark.parametrize("table", ["classes.parquet", "places.parquet"])
def test_damage_to_a_table_is_a_format_error(tmp_path: Path, program: Path, table: str) -> None:
    written(tmp_path / "raw", program)
    archive, _ = merged(tmp_path)
    path = archive.path / table
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match=rf"{table}.*checksum"):
        read_source(archive.path, archive.metadata, archive.tree)
    (archive.path / "SHA256SUMS").unlink()
    with pytest.raises(FormatError, match=rf"{table}.*truncated or damaged"):
        read_source(archive.path, archive.metadata, archive.tree)


@pytest.mark.parametrize(
    "entry",
    [
        function("f", -1),
        function("f", 1, file=3),
    ],
)
def test_damaged_entries_are_named(tmp_path: Path, entry: str) -> None:
    program = build(tmp_path, MAIN + "\n" + entry + "\n")
    with pytest.raises(FormatError, match=r"section \.quipu\.facts, entry 2, is damaged"):
        counted_functions(program)
    programs = SourcePrograms()
    assert not programs.have_classes({"program": str(program)})
    assert len(programs.problems) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": {}},
        {"classes": [1]},
        {"functions": [["f()", "f", None]]},
        {"functions": []},
        {"classes": [[-1, 0, [2, 1], [], []]]},
        {"classes": [[-1, 0, [1], [], []]]},
        {"classes": [[1, 0, [1, 1], [], []]]},
        {"classes": [[-1, -1, [1, 1], [], []]]},
        {"classes": [[-1, 0, [1, 1], [], [[0]]]]},
        {"classes": [[-1, 0, [1, 1], [], [[1, 1, 2]]]]},
        {"classes": [[-1, 0, [1, 1], [], [[0, 1, *row(1 << 63)]]]]},
        {"classes": [[-1, 0, [1, 1], [], [[0, 1, *row(1), 1]]]]},
        {"classes": [[-1, 0, [1, 1 << 63], [], [[0, 1, 1]]]]},
    ],
)
def test_damaged_classes_name_their_entry(tmp_path: Path, changes: dict[str, Any]) -> None:
    """They are read when the function has been executed."""
    program = build(tmp_path, MAIN + "\n" + function("f", 1, line("f", 1, [1, *row(1)]), **changes) + "\n")
    programs = SourcePrograms()
    weights = np.array([row(), row(1)], dtype=np.int64).view(np.uint64)
    assert programs.find({"program": str(program)}, frozenset(), ("f", "/src/a.c", 1), weights) is None
    (problem,) = programs.problems
    assert "section .quipu.facts, entry 2, is damaged" in problem


def test_entries_share_the_functions_of_places(tmp_path: Path) -> None:
    """The first entry of each object file contains them."""
    entries = [
        function("f", 0, line("f", 5, [0, *row(1)]), line("g", 8)),
        function("g", 0, functions=None, classes=[[-1, 0, [0, 1], [], [[1, 9, *row(1)]]]]),
        function("h", 0, line("h", 3, [0, *row(1)])),
        function("k", 0, functions=None, classes=[[-1, 0, [0, 1], [], [[0, 4, *row(1)]]]]),
    ]
    found = counted_functions(build(tmp_path, "\n".join(entries).replace('"functions": null, ', "") + "\n"))
    lines = {name: described[0].function.lines for (name, _, _), described in found.items()}
    assert lines["g"] == (SourceLine("g()", "g", "/src/a.c", 9),)
    assert lines["k"] == (SourceLine("h()", "h", "/src/a.c", 4),)


def test_libraries_are_asked_as_well(tmp_path: Path, program: Path) -> None:
    programs = SourcePrograms()
    attributes = {"program": "/bin/true", f"library:{program}": "", "library:relative.so": ""}
    assert programs.have_classes(attributes)
    assert programs.written_since(attributes, program.stat().st_mtime_ns + 1) == frozenset()
    weights = np.array([row(3, 30)], dtype=np.int64).view(np.uint64)
    found = programs.find(attributes, frozenset(), ("main", "/src/a.c", 1), weights)
    assert found is not None
    assert found.lines == (SourceLine("main()", "main", "/src/a.c", 2),)
    assert programs.find(attributes, frozenset(), ("main", "/src/a.c", 2), weights) is None
    assert list(programs.problems) == []


def test_ranks_that_count_other_metrics_are_left_out_and_named() -> None:
    index, counts = np.array([0]), np.array([3], dtype=np.uint64)
    cells = ClassCells((), index, index, counts, counts, counts, 1, ("blocks",), ())
    joined = cells.joined(replace(cells, names=("flops",)))
    assert (joined.ranks, joined.total.tolist(), joined.lowest.tolist()) == (1, [3], [3])
    assert ["count other metrics" in problem for problem in joined.problems] == [True]
