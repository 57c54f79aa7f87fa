# SPDX-License-Identifier: Apache-2.0
"""Measure the time for the data of one model, relative to the plain program: one run with effort, or five runs.

Models of time alone need five repetitions. All runs are measured.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from priors_programs import build_example, call
from quipu.agent.merge.experiment import find_runs

ROUNDS = 5
# Both builds use clang, so that the compiler is the same.
_CLANG = {"OMPI_CC": "clang-19", "OMPI_CXX": "clang++-19"}
# Programs and arguments with which they compute for two seconds on two ranks.
PROGRAMS = {
    "heat": ("96", "1400", "20"),
    "cg": ("112", "150"),
    "samplesort": ("24000000",),
    "wavefront": ("48", "55"),
}
QUICK = ("heat", "wavefront")


def cost(quick: bool) -> dict[str, tuple[float, float]]:
    """Return for each program the time of one measured run, and of five, relative to a plain run.

    One run and the plain run: median of alternate runs. Five: total time.
    """
    result = {}
    for name, arguments in PROGRAMS.items():
        if quick and name not in QUICK:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            plain, counted = (Path(scratch) / kind for kind in ("plain", "counted"))
            build_example(name, plain, "mpi", _CLANG)
            build_example(name, counted, "quipu-mpi", _CLANG)
            command = ("mpirun", "--oversubscribe", "-n", 2, f"./{name}", *arguments)
            seconds = []
            for _ in range(ROUNDS):
                started = time.perf_counter()
                call(command, plain, _CLANG)
                seconds.append(time.perf_counter() - started)
                call(("quipu", "run", "-o", "counted", "--", *command), counted, _CLANG)
            runs = _seconds(counted / "counted")
            own, plain_run = np.median(runs), np.median(seconds)
            result[name] = float(own / plain_run), float(np.sum(runs) / plain_run)
        print(
            f"  {name:12} {result[name][0]:.3f} plain run times per run with time and effort "
            f"({own:.2f} s and {plain_run:.2f} s), {result[name][1]:.3f} for {ROUNDS} of them",
            flush=True,
        )
    return result


def _seconds(folder: Path) -> list[float]:
    """Return the wall-clock times of all runs of an experiment."""
    return [run.metadata.seconds for run in find_runs(folder) if run.metadata.seconds is not None]
