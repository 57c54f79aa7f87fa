# SPDX-License-Identifier: Apache-2.0
"""The chain on a real MPI program, as a user types it: compile, run, show, filter, run again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from quipu.agent.installation import native_file

from .conftest import Quipu

_SOURCE = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) double work(double *x, int n) {
    double sum = 0;
    x[n - 1] = 1.0; /* or the compiler calls it once for all iterations */
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum += x[i] * x[j];
    return sum;
}
__attribute__((noinline)) double share(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = atoi(argv[1]);
    double *x = malloc(n * sizeof *x);
    for (int i = 0; i < n; i++) x[i] = 1.0;
    double all = 0;
    for (int k = 0; k < 3; k++) all = share(work(x, n));
    if (argc > 2) return 3;
    printf("%.0f\\n", all);
    free(x);
    MPI_Finalize();
    return 0;
}
"""


def program(folder: Path) -> Path:
    source, binary = folder / "app.c", folder / "app"
    source.write_text(_SOURCE, encoding="utf-8")
    subprocess.run([native_file("quipu-mpicc"), "-O2", "-g", source, "-o", binary], check=True, cwd=folder)
    return binary


def regions(quipu: Quipu, run: Path) -> dict[str, dict[str, float]]:
    """Return exclusive values by region of a run, summed over ranks."""
    data = json.loads(quipu("show", run, "--json", "--over-ranks", "sum").out)
    return {
        path["path"][-1]: {name: entry["exclusive"]["value"] for name, entry in path["values"].items()}
        for path in data["call_paths"]
    }


def test_run_show_filter_run(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    for n in (100, 200, 300, 400, 500):
        answer = quipu("run", "--param", f"n={n}", "-o", "runs", "--", "mpirun", "-n", "2", "./app", n)
        assert answer.code == 0, answer.err
        assert answer.out == f"{2 * n * n}\n" * 2
        assert f"n={n}.r1  2 ranks" in answer.err
    found = regions(quipu, tmp_path / "runs" / "n=100.r1")
    assert {"main", "work", "share", "MPI_Allreduce"} <= set(found)
    assert found["work"]["visits"] == 6
    assert found["MPI_Allreduce"]["bytes_sent"] == 2 * 3 * 8
    listed = json.loads(quipu("facts", "app", "--json").out)["functions"]
    assert {"main", "work", "share"} <= {function["name"] for function in listed if function["hook"]}
    answer = quipu("filter", "runs", "--at", "n=1e5", "--threshold", 0.6)
    assert answer.code == 0, answer.err
    # the measured times decide which of the two has 60 % of the program; both cannot
    named = {line.strip() for line in (tmp_path / "score-p.filter").read_text(encoding="utf-8").splitlines()}
    chosen = {"main", "work", "share"} & named
    assert "main" in chosen
    assert len(chosen) <= 2
    answer = quipu(
        "run", "-p", "n=100", "-q", "-o", "kept", "--filter", "score-p.filter", "--", "mpirun", "-n", 2, "./app", 100
    )
    assert (answer.code, answer.err) == (0, "")
    kept = regions(quipu, tmp_path / "kept" / "n=100.r1")
    assert {"main", "work", "share"} & set(kept) == chosen
    assert kept["MPI_Allreduce"]["bytes_sent"] == found["MPI_Allreduce"]["bytes_sent"]
    for region in chosen - {"main"}:
        assert kept[region]["blocks"] == found[region]["blocks"]
    assert sum(values["blocks"] for values in kept.values()) == sum(values["blocks"] for values in found.values())


def test_counts_alone_and_repetitions(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    answer = quipu("run", "--counts", "--rep", 2, "-o", "runs", "--", "mpirun", "-n", 1, "./app", 50)
    assert answer.code == 0, answer.err
    first, second = (regions(quipu, tmp_path / "runs" / f"run.r{number}") for number in (1, 2))
    assert first["work"]["blocks"] == second["work"]["blocks"] > 0
    assert not any("time" in values for values in first.values())


def test_a_program_that_fails(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    answer = quipu("run", "-o", "runs", "--", "mpirun", "-n", "1", "./app", "50", "fail")
    assert answer.code != 0
    assert "quipu: error: " in answer.err
    assert "partial" in answer.err
    assert "work" in regions(quipu, tmp_path / "runs" / "run.r1")
    missing = quipu("run", "-o", "runs", "--", "mpirun", "-n", "1", "./nothing")
    assert missing.code != 0
    assert "./nothing" in missing.err


def test_a_campaign_goes_on_where_it_stopped(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    declared = '[experiment]\nname = "x"\ncommand = "mpirun -n {p} ./app {n}"\n[parameters]\np = [1, 2]\nn = [20, 30]\n'
    (tmp_path / "x.toml").write_text(declared, encoding="utf-8")
    answer = quipu("campaign", "x.toml", PYTHONIOENCODING="ascii")
    assert answer.code == 0, answer.err
    assert "####################" in answer.err
    assert "4 complete runs in x" in answer.err
    again = quipu("campaign", "x.toml")
    assert again.code == 0
    assert "4 of 4 runs are complete already" in again.err
    assert len(list((tmp_path / "x").glob("p=*"))) == 4
