# SPDX-License-Identifier: Apache-2.0
"""`quipu run --memory --files` of ranks with different tasks, and the views of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import HELD, PEAK, Experiment

MIB = 1 << 20
PROGRAM = """#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define OWN __attribute__((noinline))
OWN char *first(int rank) { char *b = malloc(rank == 0 ? 8 << 20 : 1); memset(b, 1, 1); return b; }
OWN char *second(int rank) { char *b = malloc(rank == 1 ? 16 << 20 : 1); memset(b, 1, 1); return b; }
OWN void store(int rank) {
    char name[32];
    snprintf(name, sizeof name, "rank-%d.txt", rank);
    FILE *file = fopen(name, "w");
    setvbuf(file, NULL, _IONBF, 0);
    for (int i = 0; i < 200; i++)
        fputs("one line\\n", file);
    fclose(file);
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *a = first(rank), *b = second(rank);
    store(rank);
    printf("%d\\n", a[0] + b[0]);
    free(a);
    free(b);
    MPI_Finalize();
    return 0;
}
"""


def quipu(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [native_file("quipu-exec").with_name("quipu"), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs of 1, 2 and 3 ranks in `runs`."""
    folder = tmp_path_factory.mktemp("memory")
    (folder / "roles.c").write_text(PROGRAM, encoding="utf-8")
    compiler = native_file("quipu-mpicc")
    subprocess.run([compiler, "-O1", "-fno-builtin", "--quipu-all", "roles.c", "-o", "roles"], cwd=folder, check=True)
    for ranks in ("1", "2", "3"):
        launch = ("mpirun", "-n", ranks, "./roles")
        quipu("run", "-q", "--memory", "--files", "-p", f"p={ranks}", "-o", "runs", "--", *launch, folder=folder)
    return folder


@pytest.fixture(scope="module")
def measured(folder: Path) -> Experiment:
    return load_experiment(folder / "runs")


def held(measured: Experiment, function: str, ranks: int) -> float:
    (path,) = (path for path in range(len(measured.tree)) if measured.tree.name(path) == function)
    return float(measured.values[HELD][path, ranks - 1, 0])


def test_the_largest_heap_is_that_of_one_rank(measured: Experiment) -> None:
    assert held(measured, "first", 1) == pytest.approx(8 * MIB, abs=8192)
    assert held(measured, "second", 3) == pytest.approx(16 * MIB, abs=8192)
    assert held(measured, "first", 3) < 100_000  # 8 MiB are those of another rank
    for ranks in (1, 2, 3):
        peak = float(measured.values[PEAK][:, ranks - 1, 0].max())
        assert float(measured.values[HELD][:, ranks - 1, 0].sum()) == pytest.approx(peak, rel=0.05)


def test_files_of_ranks_are_one_group(measured: Experiment) -> None:
    (path,) = (path for path in range(len(measured.tree)) if measured.tree.name(path) == "rank-#.txt")
    for metric, expected in (("file_writes", 200), ("file_bytes_written", 1800), ("files_opened", 1)):
        assert measured.values[metric][path, :, 0].tolist() == [expected] * 3


def test_diagnose_names_small_writes_and_files_per_rank(folder: Path) -> None:
    found: dict[str, Any] = json.loads(quipu("diagnose", "runs", "--at", "p=64", "--json", folder=folder))
    uses = {one["use"]: one for one in found["files"]}
    assert set(uses) == {"small writes", "files per rank"}
    assert (uses["small writes"]["group"], uses["small writes"]["size"]) == ("rank-#.txt", 9.0)
    assert uses["files per rank"]["at_target"] == pytest.approx(64)
    assert "ways of using files that do not scale" in quipu("diagnose", "runs", "--at", "p=64", folder=folder)


def test_predict_says_the_largest_heap(folder: Path) -> None:
    shown = quipu("predict", "runs", "--at", "p=3", "--metric", "heap_peak", folder=folder)
    (line,) = (line for line in shown.splitlines() if line.startswith("largest"))
    assert line.split()[2] == "MB,"
    assert 16.8 < float(line.split()[1]) < 25


def test_simulated_ranks_are_refused(folder: Path) -> None:
    command = [
        str(native_file("quipu-exec").with_name("quipu")),
        "run",
        "--memory",
        "--launcher",
        "smpi",
        "-n",
        "2",
        "--",
    ]
    done = subprocess.run(
        [*command, "./roles"], cwd=folder, capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode != 0
    assert "--memory: simulated ranks share a process" in " ".join(done.stderr.split())
