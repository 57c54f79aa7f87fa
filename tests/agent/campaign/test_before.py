# SPDX-License-Identifier: Apache-2.0
"""`quipu run` warns before the start of problems that would make the numbers useless."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.campaign.before import load_now, threads_of, warnings_before
from quipu.agent.campaign.launch_options import LaunchOptions
from quipu.agent.launch.launchers.base import LaunchPlan

PROCESSORS = len(os.sched_getaffinity(0))
SCRIPT = Path(shutil.which("ldd") or "")  # no compiled program: nothing is known of it
PLAN = LaunchPlan(("app",), {}, 1, (SCRIPT,), "none", "", False, local_ranks=1)
OPTIONS = LaunchOptions()


def warned(plan: LaunchPlan = PLAN, options: LaunchOptions = OPTIONS, load: float | None = 0.0) -> str:
    found = warnings_before(plan, options, load)
    assert len(found) <= 1
    return "".join(found)


def test_nothing_is_said_where_nothing_disturbs() -> None:
    assert warned() == "" and warned(load=None) == ""


def test_more_ranks_than_processors() -> None:
    many = replace(PLAN, local_ranks=PROCESSORS + 1)
    assert warned(many).startswith(f"{PROCESSORS + 1} ranks on {PROCESSORS} processor")
    assert warned(many, replace(OPTIONS, clock="none")) == ""
    assert warned(replace(many, family="smpi")) == ""
    assert warned(replace(many, local_ranks=None)) == ""


def test_other_programs_use_the_processors() -> None:
    assert "other programs use 1.5 of" in warned(replace(PLAN, local_ranks=PROCESSORS), load=1.5)
    assert warned(replace(PLAN, local_ranks=PROCESSORS), load=0.1) == ""
    assert load_now(0.01) >= 0


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.c").write_text("int main(void) { return 0; }\n")
    libraries = ["-Wl,--no-as-needed", "-fopenmp=libomp"]
    subprocess.run(["clang-19", "plain.c", "-o", "plain"], cwd=folder, check=True)
    subprocess.run(["clang-19", "plain.c", "-o", "openmp", *libraries], cwd=folder, check=True)
    return folder / "plain"


def test_a_program_without_instrumentation(plain: Path) -> None:
    plan = replace(PLAN, programs=(plain,))
    assert warned(plan).startswith("plain was not built with the compiler wrappers")
    assert warned(plan, replace(OPTIONS, functions=True)) == ""
    assert warned(replace(plan, is_mpi=True)) == ""
    assert warned(replace(plan, may_launch=True)) == ""


def test_threads_of_openmp_need_processors(plain: Path) -> None:
    variables = {"OMP_NUM_THREADS": f"{PROCESSORS + 1}"}
    openmp = replace(PLAN, programs=(plain.with_name("openmp"),), is_mpi=True)
    assert threads_of(openmp, variables) == PROCESSORS + 1
    assert threads_of(openmp, {}) == threads_of(openmp, {"OMP_NUM_THREADS": "x"}) == 1
    assert threads_of(replace(openmp, programs=(plain,)), variables) == 1
    assert f"1 rank with {PROCESSORS + 1} threads each" in warned(openmp, replace(OPTIONS, environment=variables))
