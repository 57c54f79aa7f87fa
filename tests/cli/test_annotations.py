# SPDX-License-Identifier: Apache-2.0
"""Programs that mark regions, from the compiler to the views: C with MPI, Python."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import Quipu

SOURCE = """
#include <mpi.h>
#include <quipu/region.h>
#include <stdlib.h>
static volatile double sink;
__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; i++) sink += i; }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int n = atoi(argv[1]), steps = atoi(argv[2]);
    double one = 1, all;
    QUIPU_PARAMETER("n", n);
    MPI_Pcontrol(0);
    MPI_Pcontrol(1, "controlled");
    for (int i = 0; i < steps; i++) {
        QUIPU_PHASE_BEGIN("step", i);
        work(n + i);
        MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        QUIPU_PHASE_END("step");
    }
    MPI_Pcontrol(-1, "controlled");
    MPI_Finalize();
    return 0;
}
"""
LAUNCH = ("mpirun", "--oversubscribe", "-n", "2")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marked")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run([native_file("quipu-mpicc"), "-O2", folder / "app.c", "-o", folder / "app"], check=True, cwd=folder)
    return folder / "app"


@pytest.mark.parametrize("reduce", ["--mpi-reduce", "--no-mpi-reduce"])
def test_phases_and_parameters_of_ranks(quipu: Quipu, program: Path, tmp_path: Path, reduce: str) -> None:
    assert quipu("run", "-q", reduce, "-o", "runs", "--", *LAUNCH, program, 1000, 5).code == 0
    assert [path.name for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")] == ["n=1000.r1"]
    data = json.loads(quipu("show", "runs", "--iterations", "step", "--json").out)
    assert [(span["first"], span["last"], span["iterations"]) for span in data["spans"]] == [
        (i, i, 1) for i in range(5)
    ]
    blocks = [span["values"]["blocks"] for span in data["spans"]]
    assert all(entry["mean"] == entry["max"] for entry in blocks)
    assert {later["mean"] - before["mean"] for before, later in pairwise(blocks)} == {1.0}
    assert {span["values"]["bytes_sent"]["mean"] for span in data["spans"]} == {8.0}
    paths = {"/".join(path["path"]) for path in json.loads(quipu("show", "runs", "--json").out)["call_paths"]}
    assert {"main/controlled/step/work", "main/controlled/step/MPI_Allreduce"} <= paths
    shown = quipu("show", "runs", "--iterations", "step", "--metric", "blocks,time")
    assert shown.out.splitlines()[-1].split()[0] == "4"
    assert "step, 5 iterations" in shown.out


def test_many_iterations_are_taken_together(quipu: Quipu, program: Path) -> None:
    assert quipu("run", "-q", "--counts", "-o", "runs", "--", *LAUNCH, program, 10, 1000).code == 0
    data = json.loads(quipu("show", "runs", "--iterations", "step", "--json").out)
    assert sum(span["iterations"] for span in data["spans"]) == 1000
    assert 64 <= len(data["spans"]) <= 128
    assert "time" not in data["spans"][0]["values"]
    sums = sum(span["iterations"] * span["values"]["bytes_sent"]["mean"] for span in data["spans"])
    assert sums == 8000


def test_errors_name_what_is_there(quipu: Quipu, program: Path) -> None:
    assert quipu("run", "-q", "-o", "runs", "--", *LAUNCH, program, 10, 2).code == 0
    wrong = quipu("show", "runs", "--iterations", "Step")
    assert (wrong.code, wrong.err.splitlines()[-1]) == (
        2,
        "quipu: error: --iterations 'Step' is not a phase of this run; its phases are step",
    )
    assert quipu("run", "-q", "-o", "other", "--", *LAUNCH, program, 10, 0).code == 0
    nothing = quipu("show", "other", "--iterations", "step")
    assert nothing.code == 1
    assert "marks no phases" in nothing.err


def test_a_parameter_of_the_user_is_compared(quipu: Quipu, program: Path) -> None:
    done = quipu("run", "--param", "n=11", "-o", "runs", "--", *LAUNCH, program, 10, 1)
    assert done.code == 0
    assert "parameter n: the program sets 10, but the run has 11" in done.err


PYTHON = """
from quipu.region import parameter, phase, region
parameter("size", 3)
@region("decorated")
def solve(n):
    "Text."
    return sum(range(n))
for i in range(3):
    with phase("step", i):
        with region("outer"):
            solve(10)
        try:
            with region("raises"):
                raise ValueError
        except ValueError:
            pass
print(solve.__name__, solve.__doc__)
"""


@pytest.mark.parametrize("options", [(), ("--python",)])
def test_python(quipu: Quipu, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "app.py").write_text(PYTHON)
    done = quipu("run", "-q", *options, "-o", "runs", "--", sys.executable, "app.py")
    assert (done.code, done.out.split()) == (0, ["solve", "Text."])
    data = json.loads(quipu("show", "runs", "--json").out)
    visits = {"/".join(path["path"]): path["values"]["visits"]["exclusive"]["value"] for path in data["call_paths"]}
    inner = {path.partition("step")[2]: count for path, count in visits.items() if "step" in path}
    assert inner[""] == inner["/outer"] == inner["/outer/decorated"] == inner["/raises"] == 3
    assert not any("quipu.region" in path for path in visits)
    assert (tmp_path / "runs" / "size=3.r1").is_dir()
    assert len(json.loads(quipu("show", "runs", "--iterations", "step", "--json").out)["spans"]) == 3


CAMPAIGN = """
[experiment]
name = "marked"
directory = "marked.runs"
command = ["{python}", "app.py", "{{n}}"]
repetitions = 1

[parameters]
n = [1, 2]
"""


def test_campaigns_have_the_parameters_of_their_file(quipu: Quipu, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PYTHON)
    (tmp_path / "marked.toml").write_text(CAMPAIGN.format(python=sys.executable))
    assert quipu("campaign", "marked.toml").code == 0
    found = {path.name for path in (tmp_path / "marked.runs").iterdir() if not path.name.startswith(".")}
    assert {"n=1.r1", "n=2.r1"} <= found
    assert not any("size" in name for name in found)


def test_python_without_quipu_at_run_time(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PYTHON)
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["solve", "Text."], "")
