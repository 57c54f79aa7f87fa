"""What the data for one model cost in run times of the plain program: one run with time and effort, against five."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from priors_programs import ENVIRONMENT
from quipu.agent.store import find_runs

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
ROUNDS = 5
# Clang for both, so that the compiler is the same.
_CLANG = {"OMPI_CC": "clang-19", "OMPI_CXX": "clang++-19"}
# Programs and arguments that run for seconds on two ranks.
PROGRAMS = {
    "heat": ("96", "200", "20"),
    "cg": ("64", "150"),
    "samplesort": ("3000000",),
    "wavefront": ("48", "20"),
}
QUICK_PROGRAMS = {"heat": ("64", "150", "20"), "wavefront": ("32", "20")}


def _run(words: list[str], folder: Path) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **ENVIRONMENT, **_CLANG}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} in {folder}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - started


def cost(quick: bool) -> dict[str, float]:
    """Return measured over plain run time of each program, medians of alternated runs."""
    result = {}
    for name, arguments in (QUICK_PROGRAMS if quick else PROGRAMS).items():
        with tempfile.TemporaryDirectory() as scratch:
            plain, counted = (Path(scratch) / kind for kind in ("plain", "counted"))
            for folder, prefix in ((plain, ""), (counted, "quipu-")):
                shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("*.o", "*.d", ".compiler", name))
                _run(["make", f"MPICC={prefix}mpicc", f"MPICXX={prefix}{'mpic++' if prefix else 'mpicxx'}"], folder)
            command = ["mpirun", "--oversubscribe", "-n", "2", f"./{name}", *arguments]
            seconds = []
            for _ in range(ROUNDS):
                seconds.append(_run(command, plain))
                _run(["quipu", "run", "-o", "counted", "--", *command], counted)
            result[name] = float(np.median(_seconds(counted / "counted")) / np.median(seconds))
        print(f"  {name:12} {result[name]:.3f} plain run times per run with time and effort", flush=True)
    return result


def _seconds(folder: Path) -> list[float]:
    """Return the wall-clock times of all runs of an experiment."""
    return [run.metadata.seconds for run in find_runs(folder) if run.metadata.seconds is not None]
