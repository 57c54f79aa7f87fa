# SPDX-License-Identifier: Apache-2.0
"""Run the examples for the accuracy of kernel models: strong scaling in simulation, and larger problems natively.

Each configuration is one archive of `quipu run`. Existing archives are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from priors_programs import EXAMPLES
from quipu.agent.archive.run_json import read_json
from quipu.agent.launch.launchers.simulated import default_platform
from quipu.agent.merge.experiment import scan_runs
from quipu.modeling.machine import Machine, from_document
from quipu.modeling.process_grid import prime_factors_in_turn
from simulated_time import build, run

FEW, MANY = (4, 8, 16), (64, 128)
"""Numbers of ranks for models, and numbers of ranks that are predicted."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a rank for models, a size with 8 times the largest problem, and further arguments."""

    small: tuple[int, ...]
    large: int
    further: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """An example and its problem sizes; `compiler`: the variable of its makefile that has it.

    total: the extents (or the number) of the problem that is strongly scaled. larger: sizes on one rank whose data fit
    into caches. beyond: a large one that has twice as many data as the last-level cache of current processors (32 MB).
    repetitions: of native runs.
    """

    name: str
    compiler: str
    total: tuple[int, ...]
    larger: Sizes
    beyond: Sizes
    repetitions: int = 20

    def simulated(self, ranks: int) -> list[str]:
        """Return the command of one of `ranks` ranks that share the problem `total`."""
        if self.name in ("heat", "wavefront"):
            grid = prime_factors_in_turn(ranks, 3)
            block = "x".join(str(extent // parts) for extent, parts in zip(self.total, grid, strict=True))
            return [f"./{self.name}", block, *(("20", "5") if self.name == "heat" else ("5",))]
        if self.name == "cg":
            return ["./cg", str(self.total[1]), "20", "--planes", str(self.total[0] // ranks)]
        return ["./samplesort", str(self.total[0] // ranks)]

    def native(self, size: int, further: Sequence[str]) -> list[str]:
        """Return the command with a size per rank."""
        start = [sys.executable, "jacobi.py"] if self.name == "jacobi_py" else [f"./{self.name}"]
        return [*start, str(size), *further]

    def elements(self, size: int, ranks: int) -> int:
        """Return the problem size D in elements: cells, rows, zones or keys over all ranks."""
        if self.name == "samplesort":
            return size * ranks
        return size**2 if self.name == "jacobi_py" else size**3 * ranks


PROGRAMS = (
    Program(
        "heat",
        "MPICC",
        (128, 128, 128),
        Sizes((24, 32, 40), 80, ("60", "5")),
        Sizes((48, 64, 80), 160, ("20", "5")),
    ),
    Program("cg", "MPICXX", (128, 32), Sizes((16, 20, 24), 48, ("60",)), Sizes((24, 32, 40), 80, ("30",))),
    Program(
        "samplesort",
        "MPICXX",
        (1 << 20,),
        Sizes((1 << 15, 1 << 16, 1 << 17), 1 << 20),
        Sizes((1 << 17, 1 << 18, 1 << 19), 1 << 22),
    ),
    Program("wavefront", "MPICXX", (64, 64, 64), Sizes((8, 10, 12), 24, ("20",)), Sizes((48, 64, 80), 160, ("2",))),
    Program(
        "jacobi_py",
        "",
        (),
        Sizes((256, 320, 400), 1131, ("50", "10")),
        Sizes((418, 512, 591), 1672, ("20", "10")),
    ),
)


@dataclass(frozen=True)
class SimulatedAs:
    """compute: "effort" (times rates of a file) or "measured" (real time on this machine)."""

    compute: str

    def options(self, program: Program, folder: Path) -> list[str]:
        if self.compute == "measured":
            return []
        return ["--compute", "effort", "--rates", str(rates(program, folder))]


def rates(program: Program, folder: Path) -> Path:
    """Return the rates of a program, from native runs of one rank."""
    path = folder / f"{program.name}.rates"
    if not path.exists():
        runs = folder / f"{program.name}.one"
        place = prepared(program, folder, simulated=False)
        for size in program.larger.small:
            command = ["mpirun", "-n", "1", *program.native(size, program.larger.further)]
            measure(runs, {"n": size}, command, place, 5)
        run(["quipu", "rates", str(runs), "-o", str(path)], folder)
    return path


def prepared(program: Program, folder: Path, simulated: bool) -> Path:
    """Copy and build a program; return its folder."""
    if not program.compiler:
        return EXAMPLES / program.name
    return build(program, folder, simulated)  # type: ignore[arg-type]


def measure(
    runs: Path,
    parameters: dict[str, int],
    command: Sequence[str],
    place: Path,
    repetitions: int = 1,
    options: Sequence[str] = (),
    **variables: str,
) -> None:
    """Run a configuration until it has this number of complete repetitions."""
    done = 0
    if runs.is_dir():
        found, _ = scan_runs(runs)
        done = sum(one.metadata.complete and dict(one.metadata.parameters) == parameters for one in found)
    if done >= repetitions:
        return
    given = [word for name, value in parameters.items() for word in ("--param", f"{name}={value}")]
    how = ["--rep", str(repetitions - done), "-o", str(runs), "--quiet", *given, *options]
    run(["quipu", "run", *how, "--", *command], place, **variables)


def strong(program: Program, folder: Path, how: SimulatedAs) -> tuple[Path, Path]:
    """Simulate one problem on few and on many ranks; return the folders of both."""
    place = prepared(program, folder, simulated=True)
    found = []
    for name, numbers in (("few", FEW), ("many", MANY)):
        runs = folder / f"{program.name}.{how.compute}.{name}"
        for ranks in numbers:
            options = ["--launcher", "smpi", "-n", str(ranks), *how.options(program, folder)]
            measure(runs, {"p": ranks}, program.simulated(ranks), place, 1, options)
        found.append(runs)
    return found[0], found[1]


def larger(
    program: Program, sizes: Sizes, name: str, folder: Path, before: Sequence[str], variables: dict[str, str]
) -> tuple[Path, Path]:
    """Run small problems and a problem of 8 times the size natively on one rank; return both folders. name: of these.

    Sizes alternate, so that the machine is in the same state for all. Reuse distances of the small problems are counted
    once.
    """
    place = prepared(program, folder, simulated=False)
    small, large = folder / f"{program.name}.{name}.small", folder / f"{program.name}.{name}.large"
    options = ["--python"] if program.name == "jacobi_py" else []
    for size in sizes.small:
        command = ["mpirun", "-n", "1", *program.native(size, sizes.further)]
        counting = ["--counters", "reuse", *options]
        measure(small, {"p": 1, "D": program.elements(size, 1)}, command, place, 1, counting)
    for done in range(program.repetitions):
        for runs, size in [*((small, size) for size in sizes.small), (large, sizes.large)]:
            command = ["mpirun", "-n", "1", *before, *program.native(size, sizes.further)]
            measure(runs, {"p": 1, "D": program.elements(size, 1)}, command, place, done + 1, options, **variables)
    return small, large


def description(folder: Path) -> Machine:
    """Return this machine, described once."""
    return _described(folder / "machine.json")


def simulated_description(folder: Path) -> Machine:
    """Return this machine with the network of the simulation that `quipu run` sets up by itself, described once."""
    platform, hosts = folder / "two.xml", folder / "two.hosts"
    platform.write_text(default_platform(2), encoding="utf-8")
    hosts.write_text("node-0\nnode-1\n", encoding="utf-8")
    launch = f"smpirun -np 2 -platform {platform} -hostfile {hosts} --cfg=smpi/simulate-computation:no"
    return _described(folder / "simulated.json", "--mpicc", "smpicc", "--network", launch)


def _described(path: Path, *options: str) -> Machine:
    if not path.exists():
        run(["quipu", "machine", "--quiet", "-o", str(path), *options], path.parent)
    return from_document(read_json(path), path)
