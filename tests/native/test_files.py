# SPDX-License-Identifier: Apache-2.0
"""Count reads and writes per call path and group of files, without a change of the program's files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

from .conftest import Tree, Workshop, tree_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from io_exact import ALL, Program, compare

FILES = native_file("libquipu.so").with_name("libquipu_files.so")


def measured(program: Path, folder: Path) -> Tree:
    """Run a program in a folder; return what it counted by call path."""
    raw = folder / "raw"
    raw.mkdir()
    environment = {**os.environ, "QUIPU_DIR": str(raw), "QUIPU_FILES": "1", "LD_PRELOAD": str(FILES)}
    subprocess.run([program], cwd=folder, env=environment, check=True, timeout=PATIENCE, capture_output=True)
    (file,) = raw.glob("profile-*.quipu")
    profile = read_profile(file)
    assert not profile.problems
    return tree_of(profile)


@pytest.fixture
def tree(workshop: Workshop, tmp_path: Path) -> Tree:
    return measured(workshop.build("using_files.c", "-O1"), tmp_path)


def test_calls_of_the_system_are_counted(tree: Tree) -> None:
    own = tree["main", "pieces", "part-#.bin"]
    assert (own["file_writes"], own["file_bytes_written"]) == (10, 1000)
    assert (own["file_reads"], own["file_bytes_read"]) == (3, 1000)  # 512, 488, the end
    assert (own["files_opened"], own["file_other_calls"]) == (1, 3)  # lseek, fsync, close
    assert own["time"] > 0


def test_what_the_kernel_copies_and_maps_is_counted(tree: Tree) -> None:
    source, copy = tree["main", "copies", "part-#.bin"], tree["main", "copies", "copy.bin"]
    assert (source["file_reads"], source["file_bytes_read"], source["file_writes"]) == (2, 1000, 0)
    assert (copy["file_writes"], copy["file_bytes_written"], copy["file_reads"]) == (2, 1000, 0)
    assert copy["file_bytes_mapped"] == 1000


def test_what_stdio_does_is_counted(tree: Tree) -> None:
    own = tree["main", "lines", "part-#.bin"]
    assert (own["file_writes"], own["file_bytes_written"]) == (5, 20_000)  # buffers of 4096 bytes
    assert (own["file_reads"], own["file_bytes_read"]) == (6, 20_000)
    assert own["files_opened"] == 2


def test_pipes_sockets_and_output_are_told_apart(tree: Tree) -> None:
    pipe, socket = tree["main", "no_files", "(pipe)"], tree["main", "no_files", "(socket)"]
    assert (pipe["file_bytes_written"], pipe["file_bytes_read"]) == (16, 16)
    assert (socket["file_bytes_written"], socket["file_bytes_read"]) == (8, 8)
    assert tree["main", "no_files", "(stderr)"]["file_bytes_written"] == 6
    written = sum(values["file_bytes_written"] for path, values in tree.items() if path[-1:] == ("(stdout)",))
    assert written == len("output\n")


def test_a_file_in_the_place_of_the_output_is_a_file(workshop: Workshop, tmp_path: Path) -> None:
    tree = measured(workshop.build("moved_output.c", "-O1"), tmp_path)
    written = {path[-1]: values["file_bytes_written"] for path, values in tree.items() if values["file_writes"]}
    assert written == {"(stdout)": 6, "first.txt": 7, "second.txt": 9}


def test_what_a_stream_holds_at_the_end_is_counted(tree: Tree) -> None:
    left = [values for path, values in tree.items() if path[-1:] == ("left.txt",)]
    assert sum(values["file_bytes_written"] for values in left) == len("never closed\n")
    assert sum(values["file_writes"] for values in left) == 1


def test_the_files_of_quipu_are_not_counted(tree: Tree) -> None:
    groups = {path[-1] for path in tree if path and path[-1] not in ("main", "pieces", "lines", "copies", "no_files")}
    assert groups == {"part-#.bin", "copy.bin", "left.txt", "(pipe)", "(socket)", "(stderr)", "(stdout)"}


def test_files_are_the_same_as_without(workshop: Workshop, tmp_path: Path) -> None:
    program = workshop.build("using_files.c", "-O1")
    plain, own = tmp_path / "plain", tmp_path / "own"
    plain.mkdir()
    own.mkdir()
    subprocess.run([program], cwd=plain, check=True, capture_output=True)
    measured(program, own)
    for file in plain.iterdir():
        assert (own / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_counts_are_those_of_strace(program: Program, tmp_path: Path) -> None:
    found = compare(program, tmp_path.resolve())
    assert found["groups"] > 0
    assert found["differences"] == {}
