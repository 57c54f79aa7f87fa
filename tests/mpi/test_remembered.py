# SPDX-License-Identifier: Apache-2.0
"""Answers that are kept while the files and variables that they depend on are the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from quipu.mpi_wrap.remembered import remembered


class Tool:
    """Something that can be asked, and counts how often it was."""

    def __init__(self, *files: Path) -> None:
        self.files = files
        self.asked = 0

    def __call__(self) -> tuple[int, tuple[Path, ...]]:
        self.asked += 1
        return self.asked, self.files


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mpi.h").write_text("first")
    return Tool(tmp_path / "mpi.h")


def test_a_question_is_asked_once(tool: Tool) -> None:
    assert [remembered("mpi", ["a"], tool), remembered("mpi", ["a"], tool)] == [1, 1]
    assert remembered("mpi", ["b"], tool) == 2
    assert remembered("other", ["a"], tool) == 3


def test_a_changed_file_is_read_again(tool: Tool) -> None:
    assert remembered("mpi", ["a"], tool) == 1
    tool.files[0].write_text("second one")
    assert remembered("mpi", ["a"], tool) == 2
    tool.files[0].unlink()
    assert remembered("mpi", ["a"], tool) == 3


def test_a_file_of_the_same_size_at_another_time_is_another(tool: Tool) -> None:
    assert remembered("mpi", ["a"], tool) == 1
    os.utime(tool.files[0], ns=(1, 1))
    assert remembered("mpi", ["a"], tool) == 2


@pytest.mark.parametrize(("name", "matters"), [("PATH", True), ("OMPI_CC", True), ("MPICH_CC", True), ("HOME", False)])
def test_variables_that_choose_compilers_matter(
    tool: Tool, monkeypatch: pytest.MonkeyPatch, name: str, matters: bool
) -> None:
    assert remembered("mpi", ["a"], tool) == 1
    monkeypatch.setenv(name, "/elsewhere")
    assert remembered("mpi", ["a"], tool) == (2 if matters else 1)


@pytest.mark.parametrize("content", ["", "[]", '{"answer": 7}', '{"answer": 7, "files": {}}', '{"files": 3}'])
def test_a_damaged_answer_is_asked_for_again(tool: Tool, tmp_path: Path, content: str) -> None:
    assert remembered("mpi", ["a"], tool) == 1
    (kept,) = (tmp_path / "cache" / "quipu" / "known").iterdir()
    kept.write_text(content)
    assert remembered("mpi", ["a"], tool) == 2


def test_where_nothing_can_be_written_it_is_asked_each_time(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [remembered("mpi", ["a"], tool), remembered("mpi", ["a"], tool)] == [1, 2]
