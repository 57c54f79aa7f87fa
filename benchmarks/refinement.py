"""How little measuring costs after `quipu refine`, and what it still explains.

    make bench-refinement

A call-heavy C++ program (benchmarks/programs/refinement: kernels of a hydrodynamics code on a mesh whose numbers
are behind functions of another file) is measured at five sizes: without instrumentation, with hooks in every function,
with those of an ordinary build, through a whole `quipu refine`, and with the static selection of PIRA II. Then the
same over ranks and sizes, with MPI. Processor time of all processes. Tables like I and II of the paper (PIRA II), then
one JSON object in the last line: `overhead` and `coverage` (exclusive time at the target inside of selected regions,
from a separate run there), `iterations`, `cycle_cost` (elapsed time of the whole cycle / of one fully instrumented series of
measurements), `full_overhead`, `mpi_overhead`, `paper_selection` {overhead, coverage}.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from quipu.agent.archive.read import read_archive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.campaign.selections import coverage_of, reference
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import scan_runs
from quipu.agent.source.callgraph import call_graph
from quipu.modeling.experiment import RegionKind
from quipu.modeling.refine import PathCosts, select_statically
from quipu.report.formats import format_filter

PROGRAM = Path(__file__).parent / "programs" / "refinement"
SIZES = (40, 60, 80, 100, 120)
STEPS = 100
TARGET = 300
REPETITIONS = 2
RANKS, MPI_SIZES = (1, 2), (60, 80, 100)

CAMPAIGN = """
[experiment]
name = "cycle"
build = "{build}"
command = "{command}"
repetitions = {repetitions}
[parameters]
{parameters}
[refine]
at = {at}
program = "hydro"
{more}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        serial = Case(Path(place) / "serial", "quipu-c++", (), "./hydro {n} {s}")
        rows, numbers, result = serial.measure()
        for heading, table in (("processor seconds of one series", rows), ("functions", numbers)):
            print(f"\n{heading}")
            for name, value in table.items():
                print(f"  {name:36} {value}", flush=True)
        mpi = Case(Path(place) / "mpi", "quipu-mpic++", ("-DWITH_MPI",), "mpirun -n {p} ./hydro {n} {s}")
        result["mpi_overhead"] = mpi.refined()["iterations"][-1]["overhead"]
    print(json.dumps(result))


class Case:
    """The program in a folder, built by one wrapper."""

    def __init__(self, folder: Path, wrapper: str, options: tuple[str, ...], command: str) -> None:
        shutil.copytree(PROGRAM, folder)
        self.folder, self.command = folder, command
        self.parallel = "{p}" in command
        self.build_command = [str(native_file(wrapper)), "-O2", *options, "hydro.cpp", "mesh.cpp", "-o", "hydro"]

    def build(self, **variables: str) -> None:
        subprocess.run(self.build_command, cwd=self.folder, check=True, env={**os.environ, **variables})

    def refined(self, more: str = "") -> dict[str, Any]:
        ranks = f"p = {list(RANKS)}\n" if self.parallel else ""
        sizes = MPI_SIZES if self.parallel else SIZES
        text = CAMPAIGN.format(
            build=" ".join(self.build_command),
            command=self.command,
            repetitions=REPETITIONS,
            parameters=f"{ranks}n = {list(sizes)}\ns = [{STEPS}]",
            at=f"{{{'p = 4, ' if self.parallel else ''}n = {TARGET}, s = {STEPS}}}",
            more=more,
        )
        (self.folder / "cycle.toml").write_text(text)
        quipu = Path(sys.executable).with_name("quipu")
        done = subprocess.run(
            [quipu, "refine", "cycle.toml", "--json"], cwd=self.folder, check=True, stdout=subprocess.PIPE
        )
        text = done.stdout.decode()
        return dict(json.loads(text[text.index("{\n") :]))

    def series(self, sizes: tuple[int, ...] = SIZES, repetitions: int = REPETITIONS) -> tuple[float, float]:
        """Return processor and elapsed seconds of the runs of one series, the shortest of `repetitions` at each size."""
        processor = elapsed = 0.0
        for size in sizes:
            times = []
            for _ in range(repetitions):
                raw = tempfile.mkdtemp(dir=self.folder)
                before, began = _children(), time.monotonic()
                subprocess.run(
                    [self.folder / "hydro", str(size), str(STEPS)],
                    check=True,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, "QUIPU_DIR": raw},
                )
                times.append((_children() - before, time.monotonic() - began))
            processor += min(times)[0]
            elapsed += sum(seconds for _, seconds in times) / repetitions
        return processor, elapsed

    def measure(self) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
        cycle = self.refined()
        final = cycle["iterations"][-1]
        names = frozenset(cycle["regions"])
        self.build(QUIPU_OFF="1")
        vanilla, _ = self.series()
        self.build(QUIPU_ALL="1")
        graph = call_graph(self.folder / "hydro")
        full, full_elapsed = self.series(repetitions=1)
        all_functions = self.executed("all")
        self.build()
        usual, _ = self.series()
        usual_functions = self.executed("usual")
        self.build(QUIPU_ONLY_SELECTED="1")
        at_target = self.at_target()
        paper = select_statically(graph)
        marked = frozenset(function.name for function in paper.kept)
        static = self.selected("static", marked)
        refined = self.selected("final", names)
        full_series = full_elapsed * REPETITIONS
        rows = {
            "vanilla": f"{vanilla:.3g}",
            "full": _row(full, vanilla),
            "usual (small functions without hook)": _row(usual, vanilla),
            "static selection of PIRA II": _row(static, vanilla),
            "final": _row(refined, vanilla),
            "whole cycle, elapsed": f"{cycle['seconds']:.3g} (one full series: {full_series:.3g})",
        }
        numbers = {
            "in the code": str(sum(function.defined for function in graph.functions)),
            "executed, full": str(all_functions),
            "executed, usual": str(usual_functions),
            "static selection of PIRA II": f"{len(marked)} marked",
            "final": f"{final['marked']} marked, {final['executed']} executed",
        }
        result = {
            "overhead": refined / vanilla - 1.0,
            "coverage": coverage_of(at_target, names),
            "iterations": len(cycle["iterations"]),
            "cycle_cost": cycle["seconds"] / full_series,
            "full_overhead": full / vanilla - 1.0,
            "paper_selection": {"overhead": static / vanilla - 1.0, "coverage": coverage_of(at_target, marked)},
        }
        return rows, numbers, result

    def selected(self, name: str, names: frozenset[str]) -> float:
        """Return the processor seconds of a series with just these regions."""
        path = self.folder / f"{name}.filter"
        path.write_text(format_filter(names))
        self.build(QUIPU_FILTER=str(path), QUIPU_ONLY_SELECTED="1")
        return self.series()[0]

    def at_target(self) -> PathCosts:
        """Return what regions take at the target, in a run of its own."""
        folder = self.folder / "target"
        run([f"{self.folder}/hydro", str(TARGET), str(STEPS)], {"n": TARGET}, 1, folder, LaunchOptions())
        return reference(scan_runs(folder)[0][0])

    def executed(self, name: str) -> int:
        """Return how many functions a small run of the present build enters."""
        archive = run([f"{self.folder}/hydro", "20", "3"], {"n": 20}, 1, self.folder / name, LaunchOptions())
        tree = read_archive(archive.path, values=False).tree
        found = {tree.region_of(path) for path in range(len(tree))}
        return len({region.name for region in found if region.kind is RegionKind.FUNCTION})


def _row(seconds: float, vanilla: float) -> str:
    return f"{seconds:.3g} (overhead {100 * (seconds / vanilla - 1):.3g} %)"


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
