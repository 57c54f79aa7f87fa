# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of counting allocations, and the accuracy of the predicted largest heap.

    make bench-memory_cost
    benchmarks/memory_cost.py --rounds 5 --programs heat,cg
    benchmarks/memory_cost.py --own 'NAME:PS:NS:P:N:COMMAND'     # adds a program to predict

Overhead: the examples and a program with many allocations (programs/allocations.cpp) run in turn: plain, measured, and
measured with counted allocations (QUIPU_MEMORY). The fastest run of each counts.

Prediction: each program runs with few ranks and small sizes, and once with 8 times the ranks and twice the size. The
models of the small runs predict the largest heap of the large run.

The last line is one JSON object:

- `memory_overhead`: processor time with counted allocations / plain; `beside_measuring`: processor time with counted
  allocations / measured. Both are geometric means over the programs.
- `pair_ns`: time that counting adds to an allocation and its release (programs/pairs.c).
- `memory_error`, `memory_error_largest`: mean and largest |predicted / measured - 1| of the programs.
- `covered`: number of programs whose measured heap is in the 90 % interval.
- `largest_run`: the error of a prediction without models: the largest measured heap × the factor by which the size of
  the largest run grows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from instrumentation_overhead import Kind, Program, build, example, geometric_mean, run
from quipu.agent.campaign.repetition import LaunchOptions
from quipu.agent.campaign.repetition import run as measure
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import analyze
from quipu.modeling.heap import largest_heap

ROOT = Path(__file__).resolve().parent.parent
MEMORY = native_file("libquipu.so").with_name("libquipu_memory.so")

PROGRAMS = (
    example("heat", "96", "800", "50"),
    example("cg", "56", "400"),
    example("samplesort", "8000000"),
    example("wavefront", "40", "100"),
    Program("allocations", (ROOT / "benchmarks/programs/allocations.cpp",), ("1000000",)),
)


@dataclass(frozen=True)
class Growth:
    """The growth of a program: ranks and sizes of the small runs, and of the predicted run."""

    name: str
    command: str
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    at: tuple[int, int]


GROWTHS = (
    Growth("heat", "{program} {n} 4 2", (1, 2, 4, 8), (24, 32, 48, 64, 96), (64, 192)),
    Growth("cg", "{program} {n} 4", (1, 2, 4, 8), (12, 16, 24, 32, 40), (64, 80)),
    Growth("samplesort", "{program} {n}", (1, 2, 4, 8), (16384, 32768, 65536, 131072, 262144), (64, 524288)),
    Growth("wavefront", "{program} {n} 2", (1, 2, 4, 8), (8, 12, 16, 24, 32), (64, 64)),
)


def python_seconds(memory: bool, measured: bool, preload: str) -> float:
    """Return the processor seconds of the example in Python."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = dict(os.environ)
        command = [sys.executable, str(ROOT / "examples" / "jacobi_py" / "jacobi.py"), "400", "2000"]
        if measured:
            environment |= {"QUIPU_DIR": scratch, "QUIPU_PYTHON": "1", "QUIPU_PRELOAD": preload}
            environment |= {"QUIPU_MEMORY": "1"} if memory else {}
            command = [str(native_file("quipu-exec")), *command]
        before = os.times()
        subprocess.run(command, env=environment, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cost_of(program: Program, folder: Path, rounds: int, preload: str) -> dict[str, float]:
    """Return the seconds of a program: plain, measured, and with allocations counted; fastest runs."""
    cc, cxx = str(native_file("quipu-cc")), str(native_file("quipu-c++"))
    plain, measured = Kind("plain"), Kind("measured", cc, cxx, environment={"QUIPU_DIR": "@"})
    memory = Kind("memory", cc, cxx, environment={"QUIPU_DIR": "@", "QUIPU_MEMORY": "1"})
    built = {kind.name: build(kind, program, folder / program.name / kind.name)[0] for kind in (plain, measured)}
    found: dict[str, list[float]] = {"plain": [], "measured": [], "memory": []}
    for _ in range(rounds):
        found["plain"].append(run(plain, built["plain"], program.arguments, preload))
        found["measured"].append(run(measured, built["measured"], program.arguments, preload))
        found["memory"].append(run(memory, built["measured"], program.arguments, f"{MEMORY} {preload}"))
    return {name: min(values) for name, values in found.items()}


def pair_ns(folder: Path, rounds: int) -> float:
    """Return the nanoseconds that counting adds to an allocation and its release; fastest runs."""
    program = folder / "pairs"
    source = ROOT / "benchmarks/programs/pairs.c"
    subprocess.run([native_file("quipu-cc"), "-O2", source, "-o", program], check=True)
    found: dict[bool, list[float]] = {False: [], True: []}
    for counted in (False, True) * rounds:
        with tempfile.TemporaryDirectory() as scratch:
            environment = {**os.environ, "QUIPU_DIR": scratch}
            environment |= {"QUIPU_MEMORY": "1", "LD_PRELOAD": str(MEMORY)} if counted else {}
            answer = subprocess.run([program], env=environment, check=True, capture_output=True, text=True)
            found[counted].append(float(answer.stdout))
    return round(min(found[True]) - min(found[False]), 2)


def costs(folder: Path, rounds: int, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the times of each program, and the two ratios."""
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    rows = {
        program.name: cost_of(program, folder, rounds, preload)
        for program in PROGRAMS
        if not names or program.name in names
    }
    if not names or "jacobi_py" in names:
        kinds = {"plain": (False, False), "measured": (False, True), "memory": (True, True)}
        turns = [{kind: python_seconds(*how, preload) for kind, how in kinds.items()} for _ in range(rounds)]
        rows["jacobi_py"] = {kind: min(turn[kind] for turn in turns) for kind in kinds}
    for name, row in rows.items():
        row["memory_overhead"] = round(row["memory"] / row["plain"], 4)
        row["beside_measuring"] = round(row["memory"] / row["measured"], 4)
        print(f"{name:12} {row}", flush=True)
    return rows


def built_example(name: str, folder: Path) -> Path:
    """Return an example, built with the wrappers."""
    cc, cxx = str(native_file("quipu-cc")), str(native_file("quipu-c++"))
    return build(Kind("measured", cc, cxx), example(name), folder / f"{name}.growth")[0]


def measure_growth(growth: Growth, program: Path | str, folder: Path) -> tuple[Path, Path]:
    """Run a program at all its configurations; return the folders of the small runs and of the large one."""
    options = LaunchOptions(memory=True, clock="none", say=lambda text: None, folder=folder)
    small, large = folder / f"{growth.name}.small", folder / f"{growth.name}.large"
    points = [(small, p, n) for p in growth.ranks for n in growth.sizes]
    for where, p, n in (*points, (large, *growth.at)):
        words = growth.command.format(program=program, n=n, p=p).split()
        quiet = ("--mca", "mpi_yield_when_idle", "1", "--oversubscribe")
        root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
        measure(("mpirun", *root, *quiet, "-n", str(p), *words), {"p": p, "n": n}, None, where, options)
    return small, large


def predicted(growth: Growth, small: Path, large: Path) -> dict[str, Any]:
    """Return the comparison of the predicted and the measured largest heap."""
    p, n = growth.at
    experiment, target = load_experiment(small), load_experiment(large)
    total = largest_heap(analyze(experiment), {"p": p, "n": n})
    assert total is not None
    measured = float(np.nanmax(target.values["heap_peak"]))
    sizes = experiment.points[:, list(experiment.parameters).index("n")]
    heaps = np.nanmax(experiment.values["heap_peak"], axis=(0, 2))
    largest = float(heaps[sizes == sizes.max()].max())
    bits = math.log2(largest / float(heaps[sizes == np.unique(sizes)[-2]].max()))
    exponent = bits / math.log2(float(sizes.max()) / float(np.unique(sizes)[-2]))
    naive = largest * (n / float(sizes.max())) ** exponent
    return {
        "measured_MB": round(measured / 1e6, 3),
        "predicted_MB": round(total.value / 1e6, 3),
        "lower_MB": round(total.lower / 1e6, 3),
        "upper_MB": round(total.upper / 1e6, 3),
        "error": round(abs(total.value / measured - 1), 4),
        "largest_run": round(abs(naive / measured - 1), 4),
        "covered": bool(total.lower <= measured <= total.upper),
    }


def own_growth(text: str) -> Growth:
    """Return the program of --own."""
    name, ranks, sizes, p, n, command = text.split(":", 5)
    numbers = [tuple(int(word) for word in part.split(",")) for part in (ranks, sizes)]
    return Growth(name, command, numbers[0], numbers[1], (int(p), int(n)))


def measured_costs(folder: Path, rounds: int, names: Sequence[str] = ()) -> dict[str, Any]:
    """Return the overhead of counting allocations."""
    rows = costs(folder, rounds, names)
    return {
        "memory_overhead_geomean": round(geometric_mean([row["memory_overhead"] for row in rows.values()]), 4),
        "beside_measuring_geomean": round(geometric_mean([row["beside_measuring"] for row in rows.values()]), 4),
        "pair_ns": pair_ns(folder, rounds),
        "costs": rows,
    }


def measured_errors(folder: Path, names: Sequence[str] = (), own: Sequence[Growth] = ()) -> dict[str, Any]:
    """Return the accuracy of the predicted largest heap."""
    rows = {}
    for growth in (*GROWTHS, *own):
        if names and growth.name not in names and growth not in own:
            continue
        program = "" if growth in own else built_example(growth.name, folder)
        rows[growth.name] = predicted(growth, *measure_growth(growth, program, folder))
        print(f"{growth.name:12} {rows[growth.name]}", flush=True)
    errors = [row["error"] for row in rows.values()]
    return {
        "memory_error": round(statistics.mean(errors), 4),
        "memory_error_largest": max(errors),
        "memory_error_largest_run": round(statistics.mean(row["largest_run"] for row in rows.values()), 4),
        "memory_covered": sum(row["covered"] for row in rows.values()),
        "predictions": rows,
    }


def results(rounds: int = 5) -> dict[str, Any]:
    """Return all figures, for `benchmarks/resources.py`."""
    with tempfile.TemporaryDirectory() as name:
        return {**measured_costs(Path(name), rounds), **measured_errors(Path(name))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="alternated runs of each program (default 5)")
    parser.add_argument("--programs", default="", help="names of the programs, with commas between them")
    parser.add_argument("--own", action="append", default=[], help="name:ranks:sizes:p:n:command to predict")
    parser.add_argument("--only", choices=("cost", "prediction"), help="one half")
    options = parser.parse_args()
    names = [name for name in options.programs.split(",") if name]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "prediction":
            found |= measured_costs(Path(folder), options.rounds, names)
        if options.only != "cost":
            found |= measured_errors(Path(folder), names, [own_growth(text) for text in options.own])
    print(json.dumps(found))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
