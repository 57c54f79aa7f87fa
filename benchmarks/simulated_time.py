# SPDX-License-Identifier: Apache-2.0
"""Test simulation by effort: reproducibility, native runs on 1 and 2 ranks, and predictions from few ranks.

    make bench-simulated_time ARGS="--quick"
    python benchmarks/simulated_time.py --folder DIR      # keeps finished runs in DIR, and continues

The examples in C and C++ are built for MPI and for SMPI. Rates are fitted to native runs of one rank (`quipu rates`).
All other computation is simulated with these rates. The latency and bandwidth of the simulated machine were measured
between two processes on this machine. Native ranks run at real-time priority if that is permitted. Of several
repetitions, the lower quartile counts.

- reproducible: largest difference of the simulated times of a call path in two runs (seconds).
- error_native: error of the simulated time of the program (without MPI_Init and MPI_Finalize, mean over the ranks)
  relative to the native time, with 1 and 2 ranks, of equal size per rank (weak scaling) and of half the size (strong
  scaling). Median over the configurations, and the worst.
- prediction_error: error of models from simulations with 1 to 64 ranks of one size, relative to simulations with 512
  and 1024 ranks. Median over call paths with at least 1 % of the time, and the total of the program; each is the worst
  of the examples.

The time of samplesort depends on its keys. Its models use five sets of keys (--sets), and each target has one set.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from priors_programs import ENVIRONMENT, EXAMPLES
from quipu.agent.launch.launchers.simulated import default_platform
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Experiment

TARGETS = (512, 1024)
MATTERS = 0.01
Point = tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """An example and its runs.

    command: with p, n and perhaps m in braces. one: sizes with one rank, to which rates are fitted. two: sizes of each
    of two ranks. size: of a rank in simulations with many ranks. compiler: the makefile's variable of the compiler.
    algorithms: of collective operations in simulations with many ranks, by operation, if SMPI's default is too slow
    (waiting for all messages of a rank takes hours at 1024 ranks). data: last argument, different data for each
    repetition.
    """

    name: str
    command: str
    one: tuple[Point, ...]
    two: tuple[Point, ...]
    size: Point
    ranks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    compiler: str = "MPICXX"
    algorithms: tuple[tuple[str, str], ...] = ()
    data: str = ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return ("p", "n", "m")[: 1 + len(self.size)]


ALL = (
    Example(
        "heat",
        "./heat {m}x{n}x{n} 100 20",
        one=((24, 24), (32, 32), (40, 20), (40, 40)),
        two=((24, 24), (32, 32), (40, 20), (40, 40)),
        size=(12, 12),
        compiler="MPICC",
    ),
    Example(
        "cg",
        "./cg {n} 60 --planes {m}",
        one=((16, 16), (24, 24), (32, 16), (32, 32)),
        two=((24, 24), (32, 16), (32, 32)),
        size=(10, 10),
    ),
    Example(
        "samplesort",
        "./samplesort {n}",
        one=((65536,), (131072,), (262144,)),
        two=((65536,), (131072,), (262144,)),
        size=(4096,),
        algorithms=tuple((name, "pair") for name in ("allgather", "alltoall", "alltoallv")),
        data=" 0 {repetition}",
    ),
    Example("wavefront", "./wavefront {n} 10", one=((10,), (13,), (16,), (20,)), two=((13,), (16,), (20,)), size=(8,)),
)


def run(command: Sequence[str], folder: Path, **variables: str) -> str:
    """Run a command and return its output; its messages if it failed."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **ENVIRONMENT, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        printed = done.stdout[-2000:] + done.stderr[-4000:]
        sys.exit(f"{' '.join(command)} in {folder} ended with {done.returncode}:\n{printed}")
    return done.stdout


def build(example: Example, folder: Path, simulated: bool) -> Path:
    """Copy and build an example; return its folder."""
    place = folder / ("simulated" if simulated else "native") / example.name
    if not (place / example.name).exists():
        ignored = shutil.ignore_patterns("*.o", "*.d", ".compiler", example.name, "*.runs")
        shutil.copytree(EXAMPLES / example.name, place, ignore=ignored, dirs_exist_ok=True)
        kinds = {"MPICC": ("quipu-mpicc", "quipu-smpicc"), "MPICXX": ("quipu-mpic++", "quipu-smpicxx")}
        run(["make", "-s", f"{example.compiler}={kinds[example.compiler][simulated]}"], place)
    return place


def campaign(
    example: Example, place: Path, name: str, points: Sequence[Point], settings: str, **variables: str
) -> Path:
    """Run a campaign in the folder of an example and return the folder of the runs."""
    names = json.dumps(list(example.parameters))
    rows = json.dumps([list(point) for point in points])
    text = (
        f'parameters = {names}\n[experiment]\nname = "{name}"\ndirectory = "{name}.runs"\npoints = {rows}\n{settings}\n'
    )
    (place / f"{name}.toml").write_text(text, encoding="utf-8")
    run(["quipu", "campaign", "--quiet", f"{name}.toml"], place, **variables)
    return place / f"{name}.runs"


def real_time(folder: Path) -> tuple[dict[str, str], str]:
    """Return variables and a command prefix so that the ranks of a program run at real-time priority, if permitted.

    mpirun has a higher priority than its ranks, because its daemon must answer them while they poll.
    """
    launcher = shutil.which("mpirun")
    if launcher is None or subprocess.run(["chrt", "-f", "6", "true"], capture_output=True, check=False).returncode:
        return {}, ""
    place = folder / "bin" / "mpirun"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f'#!/bin/sh\nexec chrt -f 6 {launcher} "$@"\n', encoding="utf-8")
    place.chmod(0o755)
    return {"PATH": f"{place.parent}:{ENVIRONMENT['PATH']}"}, "chrt -f 5 "


def platform(folder: Path, variables: dict[str, str], before: str) -> tuple[Path, str]:
    """Measure messages between two processes of this machine; return a SimGrid platform, and options.

    Two lines are fitted to the times over the sizes, below and above 4096 bytes, where Open MPI changes from eager
    messages to rendezvous. A send occupies its rank for some time. Messages are measured under Quipu, like the native
    runs.
    """
    path, options = folder / "machine.xml", folder / "machine.options"
    if not options.exists():
        run(["mpicc", "-O2", str(Path(__file__).parent / "programs" / "transfers.c"), "-o", "transfers"], folder)
        command = ["mpirun", "-n", "2", *before.split(), "./transfers"]
        lines = run(
            ["quipu", "run", "--quiet", "-o", "transfers.runs", "--", *command], folder, **variables
        ).splitlines()
        other, itself = ([tuple(map(float, line.split())) for line in part] for part in (lines[:4], lines[4:8]))
        busy, per_byte = other[0][2], max(0.0, (other[3][2] - other[0][2]) / other[3][0])
        (latency, speed), (long_latency, long_speed) = _line(other[0], other[1], busy), _line(other[2], other[3], busy)
        own_latency, own_speed = _line(itself[2], itself[3], busy)
        path.write_text(
            "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            '<platform version="4.1">\n  <cluster id="machine" prefix="core-" suffix="" radical="0-1" speed="10Gf" '
            f'bw="{speed:.0f}Bps" lat="{latency / 2:.12f}s" loopback_bw="{own_speed * speed / long_speed:.0f}Bps" '
            f'loopback_lat="{own_latency * latency / long_latency:.12f}s"/>\n</platform>\n',
            encoding="utf-8",
        )
        cfg = {
            "lat-factor": f"0:1;4097:{long_latency / latency:.4g}",
            "bw-factor": f"0:1;4097:{long_speed / speed:.4g}",
            "os": f"0:{busy:.4g}:{per_byte:.4g}",
            "ois": f"0:{busy:.4g}:{per_byte:.4g}",
        }
        text = " ".join(f"--cfg=smpi/{name}:{value}" for name, value in cfg.items())
        options.write_text(text, encoding="utf-8")
    return path, options.read_text(encoding="utf-8")


def _line(short: tuple[float, ...], long: tuple[float, ...], busy: float) -> tuple[float, float]:
    """Return latency and bandwidth of the line through two sizes, without the time of the send."""
    per_byte = max((long[1] - short[1]) / (long[0] - short[0]), 1e-12)
    return max(short[1] - short[0] * per_byte - busy, 1e-8), 1 / per_byte


def totals(experiment: Experiment) -> dict[Point, float]:
    """Return the time of the program at each configuration: the lower quartile of repetitions."""
    whole = np.nansum(experiment.values["time"][~experiment.tree.start_and_end], axis=0)
    whole = np.where(whole > 0, whole, np.nan)
    return {
        tuple(int(x) for x in point): float(np.nanquantile(times, 0.25))
        for point, times in zip(experiment.points.tolist(), whole, strict=True)
    }


def against_native(example: Example, folder: Path, repetitions: int) -> tuple[Path, dict[str, float]]:
    """Return the file of rates, and simulated over native time by configuration."""
    variables, before = real_time(folder)
    machine, network = platform(folder, variables, before)
    native = build(example, folder, simulated=False)
    points = [(1, *size) for size in example.one] + [(2, *size) for size in example.two]
    points = sorted({*points, *((1, *size) for size in example.two)})
    command = f'repetitions = {repetitions}\ncommand = "mpirun -n {{p}} {before}{example.command}"'
    runs = campaign(example, native, "native", points, command, **variables)
    rates = folder / f"{example.name}.rates"
    run(["quipu", "rates", str(runs), "-o", str(rates), "--force"], folder)
    command = f'compute = "effort"\nrates = "{rates}"\n'
    command += f'command = "smpirun -np {{p}} -platform {machine} --log=root.thres:error {network} {example.command}"'
    simulated = campaign(example, build(example, folder, simulated=True), "few", points, command)
    there, here = totals(load_experiment(simulated)), totals(load_experiment(runs))
    return rates, {",".join(map(str, point)): there[point] / here[point] for point in points}


def simulate(example: Example, folder: Path, rates: Path, name: str, ranks: Sequence[int], sets: int) -> Path:
    """Simulate numbers of ranks of one size on the default platform; return the folder of the runs.

    sets: of data, each a repetition, if the example has other data for each.
    """
    program, repetitions = example.command, 1
    if example.data:
        program, repetitions, name = program + example.data, sets, f"{name}-{sets}-sets"
    command = f'compute = "effort"\nrates = "{rates}"\nrepetitions = {repetitions}\n'
    if example.algorithms:
        platform = folder / "default.xml"
        platform.write_text(default_platform(max(TARGETS)), encoding="utf-8")
        chosen = " ".join(f"--cfg=smpi/{operation}:{how}" for operation, how in example.algorithms)
        quiet = "--log=root.thres:error"
        command += f'command = "smpirun -np {{p}} -platform {platform} {quiet} {chosen} {program}"'
    else:
        command += f'launcher = "smpi"\nranks = "{{p}}"\ncommand = "{program}"'
    points = [(number, *example.size) for number in ranks]
    return campaign(example, build(example, folder, simulated=True), name, points, command)


def difference(first: Experiment, second: Experiment) -> float:
    """Return the largest difference of the times of a call path."""
    return float(np.nanmax(np.abs(first.values["time"] - second.values["time"])))


def prediction(few: Experiment, many: Experiment) -> dict[str, dict[str, float]]:
    """Return the errors of models per target: the median over relevant call paths, of the total, and the worst."""
    analysis = analyze(few)
    matters = ~many.tree.start_and_end
    place = {few.tree.key(path): path for path in range(len(few.tree))}
    result = {}
    for at, point in enumerate(many.points.tolist()):
        simulated = np.where(matters, many.values["time"][:, at, 0], 0.0)
        predicted = evaluate(analysis, dict(zip(many.parameters, point, strict=True))).exclusive
        values = np.zeros(len(many.tree))
        for path in np.flatnonzero(matters).tolist():
            if (known := place.get(many.tree.key(path))) is not None:
                values[path] = np.nan_to_num(predicted[known].value)
        large = simulated >= MATTERS * simulated.sum()
        errors = np.abs(values[large] / simulated[large] - 1)
        result[f"{point[0]:.0f}"] = {
            "median": float(np.median(errors)),
            "worst": float(errors.max()),
            "total": abs(float(values.sum() / simulated.sum()) - 1),
            "paths": int(large.sum()),
        }
        for path in np.flatnonzero(large).tolist():
            print(f"  {point[0]:.0f} {many.tree.label(path)}: {simulated[path]:.3g} s, {values[path]:.3g} s predicted")
    return result


def measure(example: Example, folder: Path, quick: bool, sets: int) -> dict[str, Any]:
    """Return all three results of one example. sets: see `simulate`."""
    rates, ratios = against_native(example, folder, 3 if quick else 7)
    print(f"{example.name}: simulated over native", {key: round(ratio, 3) for key, ratio in ratios.items()}, flush=True)
    few = load_experiment(simulate(example, folder, rates, "scaling", example.ranks, sets))
    again = load_experiment(simulate(example, folder, rates, "again", example.ranks, sets))
    targets = TARGETS[:1] if quick else TARGETS
    many = load_experiment(simulate(example, folder, rates, "target", targets, 1))
    found = prediction(few, many)
    print(f"{example.name}: models against simulation {found}", flush=True)
    return {"difference": difference(few, again), "native": ratios, "prediction": found}


def main() -> None:
    """Run all examples and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two examples, 3 repetitions, and 512 ranks only")
    parser.add_argument("--folder", type=Path, help="keeps programs and runs; runs that are there are not repeated")
    parser.add_argument("--size", type=int, metavar="N", help="of a rank in simulations of many, instead of the usual")
    parser.add_argument("--sets", type=int, default=5, metavar="N", help="of keys that models of samplesort rest on")
    parser.add_argument("--example", action="append", choices=[example.name for example in ALL], help="only this one")
    options = parser.parse_args()
    chosen = [example for example in ALL if example.name in (options.example or [e.name for e in ALL])]
    if options.size:
        chosen = [replace(example, size=(options.size,) * len(example.size)) for example in chosen]
    if options.quick and not options.example:
        chosen = chosen[:1] + chosen[-1:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        found = {example.name: measure(example, folder, options.quick, options.sets) for example in chosen}
    native = [abs(ratio - 1) for entry in found.values() for ratio in entry["native"].values()]
    predicted = [entry for example in found.values() for entry in example["prediction"].values()]
    result = {
        "reproducible": max(entry["difference"] for entry in found.values()),
        "error_native": statistics.median(native),
        "error_native_worst": max(native),
        "prediction_error": max(entry["median"] for entry in predicted),
        "prediction_error_total": max(entry["total"] for entry in predicted),
        "part": "quick" if options.quick else "all",
        "examples": found,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
