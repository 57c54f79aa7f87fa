# SPDX-License-Identifier: Apache-2.0
"""`quipu show`: golden text and JSON of runs and experiments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from quipu.agent.archive.write import write_archive

from .conftest import Quipu
from .runs import write_run


def test_top_keeps_the_largest_call_paths_and_their_callers(quipu_here: Quipu, heat: Path) -> None:
    shown = quipu_here("show", heat, "--metric", "bytes_sent", "--top", 1)
    names = [line.lstrip("└├─│ ").split()[0] for line in shown.out.split("call path")[1].splitlines()[1:]]
    assert names == ["main", "exchange", "MPI_Sendrecv"]
    assert "2 further call paths are not shown (--top N, --all)" in shown.err
    paths = json.loads(quipu_here("show", heat, "--metric", "bytes_sent", "--top", 1, "--json").out)["call_paths"]
    assert [one["path"][-1] for one in paths] == names
    assert "not shown" not in quipu_here("show", heat, "--top", 5).err


def test_of_many_call_paths_those_with_most_are_shown(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = ["PARAMETER p", "POINTS 1 2 4", "METRIC time", "REGION main", *["DATA 1"] * 3]
    for number in range(120):
        lines += [f"REGION main->f{number:03}", *[f"DATA {number + 1}"] * 3]
    (tmp_path / "many.txt").write_text("\n".join(lines) + "\n")
    shown = quipu_here("show", "many.txt")
    assert "f119" in shown.out and "f080" in shown.out and "f079" not in shown.out
    assert "80 further call paths are not shown (--top N, --all)" in shown.err
    everything = quipu_here("show", "many.txt", "--all")
    assert "f000" in everything.out and "not shown" not in everything.err
    assert len(json.loads(quipu_here("show", "many.txt", "--json").out)["call_paths"]) == 121
    assert quipu_here("show", "many.txt", "--all", "--top", "3").code == 2


def test_an_experiment(quipu: Quipu, heat: Path) -> None:
    answer = quipu("show", heat, "--at", "p=4,n=64")
    assert answer.code == 0
    assert answer.err == ""
    assert answer.out == (
        """heat
experiment  25 configurations: p = 1, 2, 4, 8, 16; n = 32, 64, 96, 128, 160
shown       p=4, n=64, median of 2 repetitions
values      mean over ranks

call path           time incl   share  time excl  visits  blocks incl  bytes_sent incl
main                  2.38 ms  100.0%     999 µs       1       1.97 M           655 kB
├─ sweep              1.31 ms   55.0%    1.31 ms      10       1.97 M              0 B
├─ MPI_Allreduce      49.9 µs    2.1%    49.9 µs      10            0             80 B
└─ exchange           24.1 µs    1.0%    9.99 µs      10           40           655 kB
   └─ MPI_Sendrecv    14.1 µs    0.6%    14.1 µs      20            0           655 kB
"""
    )


def test_a_run_with_its_ranks_as_ascii(quipu: Quipu, heat: Path) -> None:
    run = heat / "p=4,n=64.r1"
    answer = quipu("show", run, "--ranks", "-m", "time", "--exclusive", "-d", 1, PYTHONIOENCODING="ascii")
    assert answer.code == 0
    assert answer.out.isascii()
    assert "command    mpirun -n 4 ./heat 64" in answer.out
    assert answer.out.split("\n\n")[1] == (
        """                  time excl  time excl  time excl  time excl
call path               min       mean        max     imbal.  share
main                 980 us     995 us    1.01 ms       2.0%  41.9%
|- sweep            1.28 ms    1.30 ms    1.32 ms       2.0%  55.0%
|- MPI_Allreduce    49.0 us    49.8 us    50.5 us       2.0%   2.1%
`- exchange         9.80 us    9.95 us    10.1 us       2.0%   0.4%
"""
    )


def test_json(quipu_here: Quipu, heat: Path) -> None:
    data = json.loads(quipu_here("show", heat / "p=4,n=64.r1", "--json", "--ranks", "-m", "bytes_sent,comm_size").out)
    assert data["format"] == "quipu-show"
    last = data["call_paths"][3]
    assert last["path"] == ["main", "exchange", "MPI_Sendrecv"]
    assert last["values"]["bytes_sent"]["exclusive"]["samples"] == [160 * 64**2] * 4
    assert data["call_paths"][0]["values"]["comm_size"]["inclusive"]["value"] == 4


def test_sum_and_max_over_ranks(quipu_here: Quipu, heat: Path) -> None:
    for how, expected in (("sum", 4 * 160 * 64**2), ("max", 160 * 64**2)):
        for folder in (heat, heat / "p=4,n=64.r2"):
            at = ["--at", "p=4,n=64"] if folder == heat else []
            answer = quipu_here("show", folder, "--json", "-m", "bytes_sent", "--over-ranks", how, *at)
            data = json.loads(answer.out)
            path = next(path for path in data["call_paths"] if path["path"][-1] == "MPI_Sendrecv")
            assert path["values"]["bytes_sent"]["exclusive"]["value"] == expected


def test_colour_only_where_it_is_seen(quipu: Quipu, heat: Path) -> None:
    assert "\x1b" not in quipu("show", heat, TERM="xterm-256color").out


def test_a_run_is_shown_without_what_models_need(heat: Path) -> None:
    script = (
        "import sys; from quipu.agent.cli.main import run_command_line; run_command_line(sys.argv[1:]);"
        "sys.exit(bool({'scipy', 'pandas', 'quipu.modeling.pmnf'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "show", str(heat / "p=4,n=64.r1")],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0


def test_an_experiment_with_one_run_that_failed(quipu_here: Quipu, tmp_path: Path) -> None:
    """There is nothing else to look at; of several the message says how to look at one."""
    runs = tmp_path / "failed.runs"
    for repetition in (1, 2):
        archive = write_run(tmp_path / "made", 2, 32, repetition)
        failed = replace(archive.metadata, exit_code=7, problems=("app ended with exit code 7",))
        write_archive(replace(archive, metadata=failed), runs)
        answer = quipu_here("show", runs)
        if repetition == 1:
            assert answer.code == 0
            assert "exit code  7" in answer.out and "sweep" in answer.out
            assert quipu_here("show", runs, "--at", "p=2,n=32").code == 1
    assert answer.code == 1
    assert "contains no complete run" in answer.err
