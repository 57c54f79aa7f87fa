# SPDX-License-Identifier: Apache-2.0
"""Build and run generated functions, and load their measurements, for the evaluation of priors.

Measurements that exist are not made again.

Computation is measured in one process, which does the work of one of p ranks; all ranks have equal work. Communication
is simulated by SimGrid SMPI with p ranks, without computation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from launching import LAUNCH
from numpy.typing import NDArray
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Exponents

Floats = NDArray[np.float64]
Point = tuple[int, int]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
# Algorithms of MPICH. A message takes 0.5 µs + 0.02 ns per byte at its sender and its receiver, as in a fast network
# (the default of SMPI is 0).
SMPI_NETWORK = (
    "--log=root.thres:error",
    "--cfg=smpi/coll-selector:mpich",
    "--cfg=smpi/os:0:5e-7:2e-11",
    "--cfg=smpi/or:0:5e-7:2e-11",
)
# For generated programs, computation takes no simulated time.
SMPI_OPTIONS = (*SMPI_NETWORK, "--cfg=smpi/simulate-computation:no")
EFFORT = ("visits", "blocks", "bytes_sent", "bytes_received", "comm_size")
ENVIRONMENT = {
    "QUIPU_INLINED": "off",  # time and effort of a kernel include inlined functions
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    **LAUNCH,
}


@dataclass(frozen=True)
class Plan:
    """What is measured: `functions` generated functions at points (p, n), and at the test point.

    seed: of the generator. most_steps: largest number of steps of one function in the largest run. part: number of
    functions in one simulated run at the test point. All functions in one run would need too much memory and time.
    """

    functions: int
    seed: int
    p: tuple[int, ...]
    n: tuple[int, ...]
    test: Point
    most_steps: float
    repetitions: int = 5
    part: int = 100

    @property
    def points(self) -> list[Point]:
        return [(p, n) for p in self.p for n in self.n]

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """Folders of the runs at the test point in a simulation, and the options that choose their functions."""
        ends = {first: min(first + self.part, self.functions) for first in range(0, self.functions, self.part)}
        return {f"test-{first:03}": ("--functions", f"{first}:{last}") for first, last in ends.items()}


FULL = Plan(200, 2025, (128, 256, 512, 1024, 2048), (8000, 16000, 24000, 32000, 40000), (4096, 48000), 3e8)
QUICK = Plan(18, 2025, (8, 16, 32, 64, 128), (8000, 16000, 24000, 32000, 40000), (256, 48000), 2e6, 2)


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurements of computation or of communication, for F call paths.

    A call path is a function, or an MPI operation that a function calls. experiment: effort of each call path, and time
    of R repetitions; far: (F,) time at the test point; truth: leading exponents by parameter; test: the test point.
    """

    kind: str
    experiment: Experiment
    far: Floats
    truth: list[dict[str, Exponents]]
    test: Point


def call(words: Sequence[object], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a command in a folder; its output is the message if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} in {folder}:\n{done.stdout}{done.stderr}")


def build_example(name: str, folder: Path, prefix: str, environment: Mapping[str, str] | None = None) -> None:
    """Copy an example to a folder and build it with PREFIXcc and PREFIXcxx."""
    built = shutil.ignore_patterns("*.o", "*.d", ".compiler", "*.runs", name)
    shutil.copytree(EXAMPLES / name, folder, ignore=built, dirs_exist_ok=True)
    call(("make", f"MPICC={prefix}cc", f"MPICXX={prefix}cxx"), folder, environment)


def build(plan: Plan, folder: Path) -> tuple[Path, Path]:
    """Generate the program of a plan, build it for this machine and for SMPI, and return both folders."""
    folder.mkdir(parents=True, exist_ok=True)
    built = []
    for name, compiler in (("native", "quipu-mpic++"), ("simulated", "quipu-smpicxx")):
        target = folder / name
        if not (target / "benchmark").exists():
            print(f"building {plan.functions} functions with {compiler}", flush=True)
            bounds = ("--from", f"p={plan.p[0]},n={plan.n[0]}", "--to", f"p={plan.test[0]},n={plan.test[1]}")
            chosen = ("--functions", plan.functions, "--seed", plan.seed, "--most-steps", plan.most_steps)
            call(("quipu", "generate", *chosen, *bounds, "-o", target), folder)
            call(("make", "-j2", f"MPICXX={compiler}"), target)
        built.append(target)
    return built[0], built[1]


def measure(plan: Plan, folder: Path, only: str = "") -> None:
    """Run the measurements that are missing: at `plan.points` in the folder `runs`, at the test point in others.

    only: "native" or "simulated", to measure one part (both can be measured at the same time on two machines).
    """
    native, simulated = build(plan, folder)
    choices: dict[str, tuple[str, ...]] = {"runs": (), **plan.parts}
    smpi = ("smpirun", "-np", "{p}", *SMPI_OPTIONS, "./benchmark", "{n}", "--only", "communication")
    alone = ("./benchmark", "{n}", "--as-ranks", "{p}")
    jobs = [(simulated, name, (*smpi, *functions), 1) for name, functions in choices.items()]
    jobs += [(native, name, alone, plan.repetitions) for name in ("runs", "test")]
    for where, name, command, repetitions in jobs:
        if only in ("", where.name):
            campaign(where, name, command, plan.points if name == "runs" else [plan.test], repetitions)


def campaign(where: Path, name: str, command: Sequence[str], points: Sequence[Point], repetitions: int) -> None:
    """Measure the points P(p, n) in the folder `name` below `where`; each repetition covers all of them."""
    print(f"{where.name} {name}: {len(points)} points, {repetitions} repetitions", flush=True)
    values = {
        "directory": name,
        "command": " ".join(command),
        "repetitions": repetitions,
        "points": [*map(list, points)],
    }
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    file = where / f"{name}.toml"
    one = '[environment]\nQUIPU_ONE_OF_RANKS = "1"\n' if where.name == "native" else ""
    file.write_text(f'parameters = ["p", "n"]\n[experiment]\n{text}{one}', encoding="utf-8")
    call(("quipu", "campaign", file.name), where)


def load(plan: Plan, folder: Path) -> list[Measured]:
    """Return the measurements of computation and of communication."""
    statement = json.loads((folder / "native" / "complexity.json").read_text())["functions"]
    computation: list[tuple[str, ...]] = [
        (own["region"],) for function in statement if (own := function.get("computation"))
    ]
    orders = [function["computation"]["leading"] for function in statement if "computation" in function]
    calls: list[tuple[str, ...]] = []
    times = []
    for function in statement:
        own = function.get("communication", {"mpi": []})
        for mpi in own["mpi"]:
            calls.append((own["region"], mpi["region"]))
            times.append(mpi["time"]["leading"])
    return [
        _measured("computation", plan, folder / "native", computation, orders),
        _measured("communication", plan, folder / "simulated", calls, times),
    ]


def _measured(
    kind: str, plan: Plan, folder: Path, paths: list[tuple[str, ...]], orders: list[dict[str, Any]]
) -> Measured:
    near = load_experiment(folder / "runs", "mean")
    # An operation of all ranks takes as long as on the slowest rank.
    slowest = load_experiment(folder / "runs", "max")
    rows, slow_rows = (np.array([own[path] for path in paths]) for own in (_rows(near), _rows(slowest)))
    time = _times_at_test(folder, paths, ["test"] if kind == "computation" else [*plan.parts])
    kept = np.flatnonzero(time > 0)  # a simulated time of 0 has no relative error
    order = [int(np.flatnonzero((near.points == point).all(axis=1))[0]) for point in plan.points]
    kind_of = RegionKind.MPI if kind == "communication" else RegionKind.FUNCTION
    regions = tuple(Region(paths[i][-1], paths[i][-1], kind_of) for i in kept)
    count = len(regions)
    experiment = Experiment(
        kind,
        ("p", "n"),
        np.array(plan.points, dtype=np.float64),
        CallTree(regions, np.arange(count), np.full(count, -1)),
        {name: near.metrics[name] for name in ("time", *EFFORT)},
        {
            **{name: near.values[name][rows[kept]][:, order] for name in EFFORT},
            "time": slowest.values["time"][slow_rows[kept]][:, order],
        },
    )
    truth = [{x: (Fraction(power), int(log)) for x, (power, log) in orders[i].items()} for i in kept]
    return Measured(kind, experiment, time[kept], truth, plan.test)


def _times_at_test(folder: Path, paths: list[tuple[str, ...]], parts: list[str]) -> Floats:
    """Return the time at the test point of call paths that end in these regions, median of the repetitions."""
    found: dict[tuple[str, ...], float] = {}
    for part in parts:
        far = load_experiment(folder / part, "max")
        times = np.nanmedian(far.values["time"][:, 0], axis=1)
        found |= {path: float(times[row]) for path, row in _rows(far).items()}
    return np.array([found[path] for path in paths])


def _rows(experiment: Experiment) -> dict[tuple[str, ...], int]:
    """Return the numbers of call paths, by the name of the last region and by the names of the last two."""
    found: dict[tuple[str, ...], int] = {}
    for node in range(len(experiment.tree)):
        names = [experiment.tree.name(i).split("(")[0] for i in experiment.tree.ancestry(node)]
        found |= {tuple(names[-length:]): node for length in (1, 2) if len(names) >= length}
    return found


def with_times(experiment: Experiment, times: Floats) -> Experiment:
    """Return an experiment with other times, (F, C, R); effort has one value for all repetitions."""
    values = {name: experiment.values[name][:, :, :1] for name in EFFORT}
    metrics: dict[str, Metric] = experiment.metrics
    return Experiment(
        experiment.name, experiment.parameters, experiment.points, experiment.tree, metrics, {**values, "time": times}
    )
