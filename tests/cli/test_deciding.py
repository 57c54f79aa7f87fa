# SPDX-License-Identifier: Apache-2.0
"""Notes of `quipu predict` and `quipu suggest` if several formulas fit the counts of all runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from programs_corpus import programs, unpack

from .conftest import Quipu

POINT = "p=32,n=40"
RUN = "quipu run --counts --param p=32 --param n=4 -o runs -- mpirun -n 32 PROGRAM"


@pytest.fixture(scope="module")
def halo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (program,) = programs(["halo3d"])
    return unpack(program, tmp_path_factory.mktemp("corpus"))


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_prediction_names_the_run_that_decides(quipu_here: Quipu, halo: Path) -> None:
    done = quipu_here("predict", halo / "runs", "--at", POINT, "--metric", "messages_sent")
    assert "note: several formulas fit all runs: here messages_sent of main->MPI_Isend is" in one_line(done.out)
    assert RUN in one_line(done.out)


def test_after_that_run_nothing_is_left_to_decide(quipu_here: Quipu, halo: Path, tmp_path: Path) -> None:
    for group in ("runs", "counts"):
        shutil.copytree(halo / group, tmp_path / "all", dirs_exist_ok=True)
    done = quipu_here("predict", tmp_path / "all", "--at", POINT, "--metric", "messages_sent")
    assert done.code == 0 and "several formulas" not in done.out


def test_counts_that_are_certain_have_no_note(quipu_here: Quipu, halo: Path) -> None:
    done = quipu_here("predict", halo / "runs", "--at", POINT, "--metric", "flops")
    assert done.code == 0 and "several formulas" not in done.out


def test_suggest_names_it_first(quipu_here: Quipu, halo: Path) -> None:
    asked = ("suggest", halo / "runs", "--budget", "200%", "--target", POINT, "--values", "n=4,8,12,16,20,40")
    assert RUN in one_line(quipu_here(*asked).out)
    counting = json.loads(quipu_here(*asked, "--json").out)["counting"]
    assert counting["point"] == {"p": 32, "n": 4}
    assert counting["command"] == RUN
    assert 0 < counting["work"] < 0.1
    assert counting["path"][-1].startswith("MPI_")
