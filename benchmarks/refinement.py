# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead after `quipu refine`, and the coverage of the selected regions.

    make bench-refinement

A call-heavy C++ program goes through a complete cycle of `quipu refine`. The program (benchmarks/programs/refinement)
contains kernels of a hydrodynamics code. Functions in another file return the numbers of its mesh. Then five builds run
in turn, in random order: without instrumentation, with hooks in every function, with the hooks of an ordinary build,
with the static selection of PIRA II, and with the selection of the cycle. A second, identical build without
instrumentation shows how much ratios vary by chance.

Times are processor times. An overhead is the median over the turns of the ratio to the uninstrumented run of the same
turn, so slow changes of a shared machine have no effect. The same cycle over ranks and sizes, with MPI, follows.

The program prints tables like I and II of the paper (PIRA II), also for examples/ (one rank, one series of runs). The
last line is one JSON object:

- `overhead`, `overhead_interval` (95 %): overhead with the selection of the cycle. `overhead_of_nothing`: overhead of
  the identical build.
- `coverage`: exclusive time inside of selected regions at the target, from a separate run, as a share of the program.
- `iterations`: number of iterations of the cycle.
- `cycle_cost`: processor time of the whole cycle with its builds / of the same campaign with hooks in every function.
- `full_overhead`: overhead with hooks in every function. `mpi_overhead`: overhead with 2 ranks, with its interval.
- `paper_selection` {overhead, coverage}: the static selection of PIRA II.
- `seconds`, `functions`: the tables of all programs.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from launching import LAUNCH
from quipu.agent.archive.read import read_archive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.campaign.selections import coverage_of, reference
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import scan_runs
from quipu.agent.source.callgraph import call_graph
from quipu.modeling.callgraph import CallGraph
from quipu.modeling.experiment import RegionKind
from quipu.modeling.refine import PathCosts, select_statically
from quipu.report.formats import format_filter
from scipy.stats import bootstrap

HERE = Path(__file__).resolve().parent
SIZES = (40, 60, 80, 120, 160)
COMPARED = (80, 120)
STEPS = 100
TARGET = 300
REPETITIONS = 3
FULL_SIZE = 60
TURNS = 40
"""One ratio scatters by 3 to 5 % on a quiet machine of this kind, the median of 80 by .5 %."""
RANKS, MPI_SIZES = (1, 2), (40, 60, 80)
EXAMPLES = {
    "heat": ("MPICC=quipu-mpicc", "20 5", (24, 32, 48, 64)),
    "cg": ("MPICXX=quipu-mpic++", "20", (16, 24, 32, 48)),
    "samplesort": ("MPICXX=quipu-mpic++", "", (800_000, 1_600_000, 3_200_000, 6_400_000)),
    "wavefront": ("MPICXX=quipu-mpic++", "2", (32, 48, 64, 96)),
}
"""Compiler, further arguments, and sizes of a series."""

CAMPAIGN = """
[experiment]
name = "{name}"
build = "{build}"
command = "{command}"
repetitions = {repetitions}
[parameters]
{parameters}
[environment]
OMPI_MCA_mpi_yield_when_idle = "1"
{environment}
[refine]
at = {at}
program = "{program}"
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        hydro = Case.of_hydro(Path(place) / "serial", "quipu-c++", (), "./hydro {n} {s}")
        result = hydro.measure()
        mpi = Case.of_hydro(Path(place) / "mpi", "quipu-mpic++", ("-DWITH_MPI",), "mpirun -n {p} ./hydro {n} {s}")
        ranks = {"p": list(RANKS), "n": list(MPI_SIZES), "s": [STEPS]}
        mpi.variants(frozenset(mpi.refined(ranks, {"p": 4, "n": TARGET, "s": STEPS})["regions"]))
        result["mpi_overhead"], result["mpi_overhead_interval"] = overhead(mpi.ratios(("final",), MPI_SIZES, TURNS))
        seconds, functions = {"hydro": result.pop("seconds")}, {"hydro": result.pop("functions")}
        for name, (compiler, arguments, sizes) in EXAMPLES.items():
            seconds[name], functions[name] = Case.of_example(Path(place) / name, compiler, arguments).columns(sizes)
    for heading, table in (("processor seconds of one series", seconds), ("functions", functions)):
        print(f"\n{heading}")
        columns = list(table["hydro"])
        print("  " + "".join(f"{column:>12}" for column in ("", *columns)))
        for name, row in table.items():
            print(f"  {name:>12}" + "".join(f"{row[column]:12.4g}" for column in columns))
    print(json.dumps({**result, "seconds": seconds, "functions": functions}))


class Case:
    """A program in a folder: how it is built, its name, and the command of a run."""

    def __init__(self, folder: Path, build: list[str], program: str, command: str) -> None:
        self.folder, self.build_command, self.program, self.command = folder, build, program, command

    @classmethod
    def of_hydro(cls, folder: Path, wrapper: str, options: tuple[str, ...], command: str) -> Case:
        shutil.copytree(HERE / "programs" / "refinement", folder)
        build = [str(native_file(wrapper)), "-O2", *options, "hydro.cpp", "mesh.cpp", "-o", "hydro"]
        return cls(folder, build, "hydro", command)

    @classmethod
    def of_example(cls, folder: Path, compiler: str, arguments: str) -> Case:
        shutil.copytree(HERE.parent / "examples" / folder.name, folder)
        variable, _, wrapper = compiler.partition("=")
        build = ["make", "-B", f"{variable}={native_file(wrapper)}"]
        return cls(folder, build, folder.name, f"./{folder.name} {{n}} {arguments}")

    def build(self, name: str, **variables: str) -> None:
        """Build a program, and keep it with this name."""
        environment = {**os.environ, **variables}
        subprocess.run(self.build_command, cwd=self.folder, check=True, env=environment, stdout=subprocess.DEVNULL)
        (self.folder / self.program).rename(self.folder / name)

    def refined(self, parameters: dict[str, list[int]], at: dict[str, int]) -> dict[str, Any]:
        printed = self.quipu("refine", parameters, at, "", "--json")
        result = dict(json.loads(printed[printed.index("{\n") :]))
        for one in result["iterations"]:
            print("  ".join(f"{name} {value:.3g}" for name, value in one.items() if value is not None), flush=True)
        return result

    def full_series(self, parameters: dict[str, list[int]], at: dict[str, int]) -> float:
        """Return the processor seconds of a campaign with hooks in every function, with its build and its archives."""
        before = _children()
        self.quipu("campaign", parameters, at, 'QUIPU_ALL = "1"')
        return _children() - before

    def quipu(
        self, command: str, parameters: dict[str, list[int]], at: dict[str, int], environment: str, *options: str
    ) -> str:
        """Run a command on the campaign; return what it prints."""
        text = CAMPAIGN.format(
            name=command,
            build=" ".join(self.build_command),
            command=self.command,
            repetitions=REPETITIONS,
            parameters="\n".join(f"{name} = {values}" for name, values in parameters.items()),
            environment=environment,
            at="{" + ", ".join(f"{name} = {value}" for name, value in at.items()) + "}",
            program=self.program,
        )
        (self.folder / f"{command}.toml").write_text(text)
        words = [str(Path(sys.executable).with_name("quipu")), command, f"{command}.toml", *options]
        return subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.PIPE).stdout.decode()

    def seconds(self, name: str, size: int) -> float:
        """Return the processor seconds of one run of a program."""
        raw = tempfile.mkdtemp(dir=self.folder)
        before = _children()
        command = self.command.format(p=RANKS[-1], n=size, s=STEPS).replace(f"./{self.program}", f"./{name}")
        environment = {**os.environ, **LAUNCH, "OMPI_MCA_mpi_yield_when_idle": "1", "QUIPU_DIR": raw}
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL, env=environment, cwd=self.folder)
        return _children() - before

    def compared(self, names: tuple[str, ...], sizes: tuple[int, ...], times: int) -> dict[str, float]:
        """Return the processor seconds of programs at some sizes, the shortest of runs in turn."""
        found: dict[tuple[str, int], float] = {}
        for turn in range(times):
            for size in sizes:
                for name in names[:: 1 if turn % 2 else -1]:
                    found[name, size] = min(found.get((name, size), math.inf), self.seconds(name, size))
        return {name: sum(found[name, size] for size in sizes) for name in names}

    def ratios(self, names: tuple[str, ...], sizes: tuple[int, ...], turns: int) -> dict[str, np.ndarray]:
        """Return the ratios of programs to the uninstrumented one, each in the same turn and size."""
        random = np.random.default_rng(0)
        found: dict[str, list[float]] = {name: [] for name in (*names, "vanilla again")}
        for _ in range(turns):
            for size in sizes:
                seconds = dict.fromkeys(("vanilla", *found), 0.0)
                for name in random.permutation(list(seconds)):
                    seconds[str(name)] = self.seconds(str(name).removesuffix(" again"), size)
                for name, ratios in found.items():
                    ratios.append(seconds[name] / seconds["vanilla"])
        return {name: np.array(ratios) for name, ratios in found.items()}

    def variants(self, selected: frozenset[str]) -> tuple[CallGraph, frozenset[str]]:
        """Build vanilla, full, usual, static (PIRA II), final and target; return call graph and static selection."""
        self.build("vanilla", QUIPU_OFF="1")
        self.build("full", QUIPU_ALL="1")
        self.build("usual")
        # As in the program without Quipu, inlined functions are part of their callers.
        self.build("target", QUIPU_ONLY_SELECTED="1", QUIPU_INLINED="off")
        graph = call_graph(self.folder / "full")
        marked = frozenset(function.name for function in select_statically(graph).kept)
        self.build("static", **self.selecting("static", marked))
        self.build("final", **self.selecting("final", selected))
        return graph, marked

    def columns(self, sizes: tuple[int, ...]) -> tuple[dict[str, float], dict[str, int]]:
        """Return the columns of Tables I and II for a cycle over these sizes, with the target one step beyond."""
        before = _children()
        cycle = self.refined({"n": list(sizes)}, {"n": 2 * sizes[-1] - sizes[-2]})
        total = _children() - before
        graph, marked = self.variants(frozenset(cycle["regions"]))
        found = self.compared(("vanilla", "full", "usual", "static", "final"), sizes, REPETITIONS)
        return {**found, "total": total}, self.functions(graph, marked, cycle, sizes[0])

    def functions(self, graph: CallGraph, marked: frozenset[str], cycle: dict[str, Any], size: int) -> dict[str, int]:
        """Return the columns of Table II."""
        return {
            "code": sum(function.defined for function in graph.functions),
            "full": self.executed("full", size),
            "usual": self.executed("usual", size),
            "static": len(marked),
            "marked": cycle["iterations"][-1]["marked"],
            "executed": cycle["iterations"][-1]["executed"],
        }

    def measure(self) -> dict[str, Any]:
        """Return the results of the call-heavy program, and the columns of the tables."""
        before = _children()
        sizes, at = {"n": list(SIZES), "s": [STEPS]}, {"n": TARGET, "s": STEPS}
        cycle = self.refined(sizes, at)
        cycle_seconds = _children() - before
        full_seconds = self.full_series(sizes, at)
        names = frozenset(cycle["regions"])
        graph, marked = self.variants(names)
        ratios = self.ratios(("static", "final"), COMPARED, TURNS)
        measured, interval = overhead(ratios)
        series = self.compared(("vanilla", "usual", "static", "final"), SIZES, REPETITIONS)
        ratio = self.seconds("full", FULL_SIZE) / self.compared(("vanilla",), (FULL_SIZE,), REPETITIONS)["vanilla"]
        at_target = self.at_target()
        return {
            "overhead": measured,
            "overhead_interval": interval,
            "overhead_of_nothing": np.median(ratios["vanilla again"]) - 1.0,
            "coverage": coverage_of(at_target, names),
            "iterations": len(cycle["iterations"]),
            "cycle_cost": cycle_seconds / full_seconds,
            "full_overhead": ratio - 1.0,
            "paper_selection": {
                "overhead": np.median(ratios["static"]) - 1.0,
                "coverage": coverage_of(at_target, marked),
            },
            "seconds": {**series, "full": full_seconds / REPETITIONS, "total": cycle_seconds},
            "functions": self.functions(graph, marked, cycle, 20),
        }

    def selecting(self, name: str, names: frozenset[str]) -> dict[str, str]:
        """Return the variables for a build that only measures these regions."""
        path = self.folder / f"{name}.filter"
        path.write_text(format_filter(names))
        return {"QUIPU_FILTER": str(path), "QUIPU_ONLY_SELECTED": "1"}

    def at_target(self) -> PathCosts:
        """Return the times of regions at the target, in a separate run."""
        folder = self.folder / "at-target"
        run([f"{self.folder}/target", str(TARGET), str(STEPS)], {"n": TARGET}, 1, folder, LaunchOptions())
        return reference(scan_runs(folder)[0][:1])

    def executed(self, name: str, size: int) -> int:
        """Return the number of functions that a run of a program enters."""
        command = self.command.format(n=size, s=3).split()
        folder = self.folder / f"{name}-run"
        archive = run([f"{self.folder}/{name}", *command[1:]], {"n": size}, 1, folder, LaunchOptions())
        tree = read_archive(archive.path, values=False).tree
        found = {tree.region_of(path) for path in range(len(tree))}
        return len({region.name for region in found if region.kind is RegionKind.FUNCTION})


def overhead(ratios: dict[str, np.ndarray]) -> tuple[float, list[float]]:
    """Return the overhead of the final program, and its 95 % interval."""
    interval = bootstrap((ratios["final"],), np.median, rng=np.random.default_rng(0)).confidence_interval
    return float(np.median(ratios["final"])) - 1.0, [interval.low - 1.0, interval.high - 1.0]


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
