"""How little measuring costs after `quipu refine`, and what it still explains.

    make bench-refinement

A call-heavy C++ program (benchmarks/programs/refinement: kernels of a hydrodynamics code on a mesh whose numbers are
behind functions of another file) goes through a whole `quipu refine`. Then it is built without instrumentation, with
hooks in every function, with those of an ordinary build, with the static selection of PIRA II, and with what the cycle
found; these run in turn, and the shortest run of each counts, in processor time. The same cycle over ranks and sizes,
with MPI, follows. Tables like I and II of the paper (PIRA II), then one JSON object in the last line: `overhead` and
`coverage` (exclusive time at the target inside of selected regions, from a separate run there), `iterations`,
`cycle_cost` (processor time of the whole cycle, with its builds, / of one fully instrumented series of measurements),
`full_overhead`, `mpi_overhead`, `paper_selection` {overhead, coverage}.
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
SIZES = (40, 60, 80, 120, 160)
COMPARED = (80, 120)
STEPS = 100
TARGET = 300
REPETITIONS = 3
FULL_SIZE = 60
COMPARISONS = 3
RANKS, MPI_SIZES = (1, 2), (40, 60, 80)

CAMPAIGN = """
[experiment]
name = "cycle"
build = "{build}"
command = "{command}"
repetitions = {repetitions}
[parameters]
{parameters}
[environment]
OMPI_MCA_mpi_yield_when_idle = "1"
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

    def build(self, name: str, **variables: str) -> None:
        """Build a program of this name."""
        command = [*self.build_command[:-1], name]
        subprocess.run(command, cwd=self.folder, check=True, env={**os.environ, **variables})

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

    def seconds(self, name: str, size: int) -> float:
        """Return the processor seconds of one run of a program."""
        raw = tempfile.mkdtemp(dir=self.folder)
        before = _children()
        command: list[str | Path] = [self.folder / name, str(size), str(STEPS)]
        environment = {**os.environ, "QUIPU_DIR": raw}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        return _children() - before

    def compared(self, names: tuple[str, ...]) -> dict[str, float]:
        """Return the processor seconds of programs at all compared sizes, the shortest of runs in turn."""
        found: dict[tuple[str, int], float] = {}
        for _ in range(COMPARISONS):
            for size in COMPARED:
                for name in names:
                    found[name, size] = min(found.get((name, size), math.inf), self.seconds(name, size))
        return {name: sum(found[name, size] for size in COMPARED) for name in names}

    def measure(self) -> tuple[dict[str, str], dict[str, str], dict[str, Any]]:
        before = _children()
        cycle = self.refined()
        cycle_seconds = _children() - before
        final = cycle["iterations"][-1]
        names = frozenset(cycle["regions"])
        self.build("vanilla", QUIPU_OFF="1")
        self.build("full", QUIPU_ALL="1")
        self.build("usual")
        # As the program is without us: what is inlined is part of its callers.
        self.build("target", QUIPU_ONLY_SELECTED="1", QUIPU_INLINED="off")
        graph = call_graph(self.folder / "full")
        paper = select_statically(graph)
        marked = frozenset(function.name for function in paper.kept)
        self.build("static", **self.selecting("static", marked))
        self.build("final", **self.selecting("final", names))
        found = self.compared(("vanilla", "usual", "static", "final"))
        ratio = self.seconds("full", FULL_SIZE) / min(self.seconds("vanilla", FULL_SIZE) for _ in range(COMPARISONS))
        vanilla_series = REPETITIONS * sum(self.seconds("vanilla", size) for size in SIZES)
        at_target = self.at_target()
        vanilla = found["vanilla"]
        rows = {
            "vanilla": f"{vanilla:.3g}",
            "full": _row(ratio * vanilla, vanilla),
            "usual (small functions without hook)": _row(found["usual"], vanilla),
            "static selection of PIRA II": _row(found["static"], vanilla),
            "final": _row(found["final"], vanilla),
            "whole cycle": f"{cycle_seconds:.3g} (one full series: {ratio * vanilla_series:.3g})",
        }
        numbers = {
            "in the code": str(sum(function.defined for function in graph.functions)),
            "executed, full": str(self.executed("full")),
            "executed, usual": str(self.executed("usual")),
            "static selection of PIRA II": f"{len(marked)} marked",
            "final": f"{final['marked']} marked, {final['executed']} executed",
        }
        result = {
            "overhead": found["final"] / vanilla - 1.0,
            "coverage": coverage_of(at_target, names),
            "iterations": len(cycle["iterations"]),
            "cycle_cost": cycle_seconds / (ratio * vanilla_series),
            "full_overhead": ratio - 1.0,
            "paper_selection": {
                "overhead": found["static"] / vanilla - 1.0,
                "coverage": coverage_of(at_target, marked),
            },
        }
        return rows, numbers, result

    def selecting(self, name: str, names: frozenset[str]) -> dict[str, str]:
        """Return the variables that make a build measure just these regions."""
        path = self.folder / f"{name}.filter"
        path.write_text(format_filter(names))
        return {"QUIPU_FILTER": str(path), "QUIPU_ONLY_SELECTED": "1"}

    def at_target(self) -> PathCosts:
        """Return what regions take at the target, in a run of its own."""
        folder = self.folder / "at-target"
        run([f"{self.folder}/target", str(TARGET), str(STEPS)], {"n": TARGET}, 1, folder, LaunchOptions())
        return reference(scan_runs(folder)[0][0])

    def executed(self, name: str) -> int:
        """Return how many functions a small run of a program enters."""
        archive = run([f"{self.folder}/{name}", "20", "3"], {"n": 20}, 1, self.folder / f"{name}-run", LaunchOptions())
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
