# SPDX-License-Identifier: Apache-2.0
"""Commands never overwrite their input, with any options."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import Quipu

READ = "is an input of this command and would be overwritten"
RULES = '[[expect]]\npath = "main"\nat_most = 1\n'


def test_an_export_does_not_replace_what_it_is_made_of(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    assert quipu_here("export", heat, "-o", "heat.json").code == 0
    measured = (tmp_path / "heat.json").read_bytes()
    for options in (
        (),
        ("-o", "heat.json"),
        ("-o", tmp_path / "heat.json", "--force"),
        ("-f", "csv", "-o", "heat.json"),
    ):
        answer = quipu_here("export", "heat.json", "--force", *options)
        assert answer.code == 2, options
        assert READ in answer.err and answer.err.count("\n") == 1
    assert (tmp_path / "heat.json").read_bytes() == measured
    before = sorted(path.name for path in heat.iterdir())
    assert READ in quipu_here("export", heat, "-f", "thicket", "-o", heat, "--force").err
    assert sorted(path.name for path in heat.iterdir()) == before


def test_files_of_the_runs_are_not_written_over_even_with_force(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    heat = Path(shutil.copytree(heat, tmp_path / "mine"))
    for name in ("run.json", "callpaths.parquet"):
        file = next(heat.iterdir()) / name
        before = file.read_bytes()
        for command in (("export",), ("model",), ("filter", "--at", "p=8,n=99"), ("report",), ("rates",)):
            answer = quipu_here(*command, heat, "-o", file, "--force")
            assert answer.code != 0 and answer.err.count("\n") == 1, (command, answer)
            assert "would be overwritten" in answer.err, command
            assert file.read_bytes() == before
    for _ in range(2):  # what a command made there may be made again
        assert quipu_here("export", heat, "-o", heat / "heat.json", "--force").code == 0


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_results_of_a_check_replace_only_their_like(quipu_here: Quipu, heat: Path, tmp_path: Path, option: str) -> None:
    (tmp_path / "e.toml").write_text(RULES)
    (tmp_path / "notes.txt").write_text("mine")
    answer = quipu_here("check", "e.toml", heat, option, "e.toml")
    assert (answer.code, (tmp_path / "e.toml").read_text()) == (2, RULES)
    assert READ in answer.err
    answer = quipu_here("check", "e.toml", heat, option, "notes.txt")
    assert (answer.code, (tmp_path / "notes.txt").read_text()) == (2, "mine")
    assert "notes.txt exists and contains no" in answer.err and "--force" not in answer.err
    for _ in range(2):
        assert quipu_here("check", "e.toml", heat, option, "results").code == 3


@pytest.mark.parametrize(
    "words",
    [
        ("filter", "heat.json", "--at", "p=64,n=64", "-o", "heat.json", "--force"),
        ("diagnose", "heat.json", "-o", "heat.json", "--force"),
        ("report", "heat.json", "-o", "heat.json", "--force"),
        ("model", "heat.json", "-o", "heat.json", "--force"),
    ],
)
def test_results_do_not_replace_measurements(
    quipu_here: Quipu, heat: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert quipu_here("export", heat, "-o", "heat.json").code == 0
    measured = (tmp_path / "heat.json").read_bytes()
    answer = quipu_here(*words)
    assert (answer.code, (tmp_path / "heat.json").read_bytes()) == (2, measured)
    assert READ in answer.err


def test_predictions_do_not_replace_their_table(quipu_here: Quipu, tmp_path: Path) -> None:
    rows = "".join(f"{n},{p},{n / p}\n" for n in (1, 2, 4, 8, 16, 32) for p in (1, 2, 4, 8))
    (tmp_path / "data.csv").write_text("n,p,time\n" + rows)
    assert quipu_here("tensor", "fit", "data.csv", "--target", "time", "--budget", "0.02", "-o", "m.json").code == 0
    table = (tmp_path / "data.csv").read_text()
    assert READ in quipu_here("tensor", "predict", "m.json", "data.csv", "-o", "data.csv").err
    assert (tmp_path / "data.csv").read_text() == table
    (tmp_path / "other.csv").write_text(table)
    assert (
        "contains no file of predictions"
        in quipu_here("tensor", "predict", "m.json", "data.csv", "-o", "other.csv").err
    )
    for _ in range(2):
        assert quipu_here("tensor", "predict", "m.json", "data.csv", "-o", "p.csv").code == 0


def test_a_call_graph_does_not_replace_the_program(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF")
    assert READ in quipu_here("callgraph", "program", "-o", "program").err
    assert (tmp_path / "program").read_bytes() == b"\x7fELF"


def test_a_call_graph_replaces_nothing_but_a_call_graph(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int main(void) { return 0; }", encoding="utf-8")
    subprocess.run([native_file("quipu-cc"), "x.c", "-o", "program"], check=True, cwd=tmp_path)
    assert "x.c exists and contains no call graph" in quipu_here("callgraph", "program", "-o", "x.c").err
    for options in ([], ["--metacg"], ["--dot"], []):
        assert quipu_here("callgraph", "program", "-o", "calls", *options).code == 0


def test_a_filter_that_cannot_be_written_prints_nothing_else(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    at = ("--at", "p=64,n=1000")
    for target, words in (
        ("notes.txt", "notes.txt exists and contains no filter file"),
        ("no/where.filter", "the folder no does not exist"),
        ("/dev/full", "/dev/full: No space left on device"),
    ):
        for options in (at, (*at, "--json")):
            answer = quipu_here("filter", heat, *options, "-o", target)
            assert (answer.code != 0, answer.out, len(answer.err.splitlines())) == (True, "", 1)
            assert answer.err.startswith("quipu: error: ") and words in answer.err


def test_a_refinement_says_before_it_runs_that_its_file_is_taken(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "heat.toml").write_text("[experiment]\n")
    (tmp_path / "notes.txt").write_text("mine")
    assert READ in quipu_here("refine", "heat.toml", "-o", "heat.toml").err
    assert "notes.txt exists and contains no filter file" in quipu_here("refine", "heat.toml", "-o", "notes.txt").err
