# SPDX-License-Identifier: Apache-2.0
"""`quipu generate` and `quipu diagnose` on the command line: output and errors."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.archive.write import write_archive

from .conftest import Quipu
from .runs import write_run

SPECIFICATION = """
[[function]]
name = "solve"
loops = ["n", "p"]
operation = "bcast"
elements = "n*p"
"""


def test_a_specification_becomes_a_program(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(SPECIFICATION)
    answer = quipu_here("generate", "--spec", "own.toml", "-o", "bench")
    assert answer.code == 0
    assert "solve     n × p                 MPI_Bcast  n*p" in answer.out
    statement = json.loads((tmp_path / "bench" / "complexity.json").read_text())
    assert statement["functions"][0]["computation"]["model"] == "n*p + n"
    assert "MPI_Bcast(" in (tmp_path / "bench" / "functions_00.cpp").read_text()


def test_a_program_is_replaced_whole_and_nothing_else_is(quipu_here: Quipu, tmp_path: Path) -> None:
    assert quipu_here("generate", "--functions", 30, "-o", "bench").code == 0
    assert (tmp_path / "bench" / "functions_01.cpp").exists()
    assert quipu_here("generate", "--functions", 5, "-o", "bench").code == 0
    assert not (tmp_path / "bench" / "functions_01.cpp").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "main.cpp").write_text("int main() {}")
    refused = quipu_here("generate", "-o", "mine")
    assert refused.code == 2
    assert "mine has files that no generator wrote" in refused.err
    assert (tmp_path / "mine" / "main.cpp").read_text() == "int main() {}"


def test_a_full_disk_leaves_the_program_that_was_there(
    quipu_here: Quipu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quipu_here("generate", "--functions", "2", "-o", "bench").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()}
    written: list[int] = []

    def sync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == len(before):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", sync)
    answer = quipu_here("generate", "--functions", "3", "-o", "bench")
    assert answer.code == 1
    assert "No space left on device (the disk is full" in answer.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()} == before


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--operation", "shout"), "--operation 'shout': choose from none, barrier"),
        (("--exponents", "1/0"), "--exponents '1/0'"),
        (("--logarithms", "x"), "--logarithms 'x'"),
        (("--from", "p=2"), "--from: give exactly p and n"),
        (("--from", "p=128,n=9", "--to", "p=64,n=99"), "--from must be below --to"),
        (("--most-steps", "7"), "--most-steps"),
        (("--exponents", "1e999"), "--exponents '1e999'"),
        (("--logarithms", "9" * 5000), "write whole numbers from 0 to 4"),
        (("--exponents", "999", "--logarithms", "0"), "no computation can grow so fast"),
        (("--exponents", "-999", "--logarithms", "0"), "no computation can grow so fast"),
        (("--exponents", "9", "--logarithms", "0"), "no computation can grow so fast"),
        (("--exponents", "1,10"), "--exponents 10: no computation can grow so fast from --from to --to"),
        (("--exponents", ""), "--exponents '': write numbers or fractions"),
        (("--exponents", "\u0663"), "write numbers or fractions"),
        (("--logarithms", " "), "write whole numbers from 0 to 4"),
        (("--from", "p=2.5,n=8"), "--from: p must be a whole number from 2 to 1e+09, not 2.5"),
        (("--to", "p=4096,n=1e300"), "--to: n must be a whole number from 2 to 1e+12, not 1e+300"),
        (("--to", "p=4096,n=48_000"), "'48_000' is not a finite number"),
        (("--spec", "none.toml"), "none.toml: the file does not exist"),
    ],
)
def test_wrong_options_say_what_is_wrong(quipu_here: Quipu, options: tuple[str, ...], fault: str) -> None:
    answer = quipu_here("generate", *options)
    assert answer.code != 0
    assert fault in answer.err


def test_a_specification_that_is_no_toml_is_refused(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[[function]\n")
    answer = quipu_here("generate", "--spec", "own.toml")
    assert answer.code == 1
    assert "own.toml:1: is not TOML" in answer.err


def test_an_experiment_without_losses_has_no_diagnosis(quipu_here: Quipu, heat: Path) -> None:
    answer = quipu_here("diagnose", heat, "-o", "d.html")
    assert answer.code == 0
    assert "what will hurt at p=256, n=160" in answer.out
    assert "no call path takes more time per unit of effort" in answer.err
    assert quipu_here("diagnose", heat, "--at", "p=4").code == 2
    assert json.loads(quipu_here("diagnose", heat, "--at", "p=64,n=9", "--json").out)["findings"] == []


def test_diagnose_needs_several_scales(quipu_here: Quipu, tmp_path: Path) -> None:
    run = write_run(tmp_path / "with", 2, 32)
    write_archive(replace(run, metadata=replace(run.metadata, parameters={})), tmp_path / "without")
    for options in ((), ("--at", "p=64")):
        answer = quipu_here("diagnose", "without", *options)
        assert answer.code == 2
        assert "this experiment has no parameters" in answer.err and "quipu efficiency" in answer.err
