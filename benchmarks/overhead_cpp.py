# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of the wrappers for C++ programs with many small functions: run time, size, and build.

    make bench-overhead_cpp
    make bench-overhead_cpp ARGS="--rounds 9 --only contact"

Programs of `benchmarks/programs/` and the examples are built by plain clang and by the wrappers. They run in turn, one
process each. Ratios are medians over the rounds of the ratio to the plain build of the same round: user and system time
of the run, size of the program, user and system time of the build, and peak memory of the build.

The last line is one JSON object:

- `unmeasured`: a build with the wrappers that starts without Quipu. `measured`: with `QUIPU_DIR`. `filtered_runtime`:
  measured, with a run-time filter that leaves out all functions except `main`.
- `estimate_error`: |estimate - difference| / difference. The estimate is the overhead that Quipu estimates (all call
  paths, start and end). The difference is `measured` - `plain`. Only programs with a difference of at least 5 % of the
  run are included.
- `estimate_error_resolved`: the same for programs whose difference is at least 8 times its standard error over the
  rounds, which is precise enough to judge an error of 25 %.
- `seconds` of a program: the estimate, the difference, and its standard error.
- `small_call_ns`: nanoseconds that the wrappers add to a call of a small function; measured or unmeasured, the larger.
- `peers`: the same ratios of run time for Score-P and for `-finstrument-functions-after-inlining` with empty hooks, if
  they are installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quipu.agent.installation import native_file

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks/programs"
FILTER = "SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nINCLUDE MANGLED main\nSCOREP_REGION_NAMES_END\n"
HOOKS = "".join(
    f"void __cyg_profile_func_{hook}(void *a, void *b) {{ (void)a; (void)b; }}\n" for hook in ("enter", "exit")
)
SMALL_CALLS = 100_000_000
LEAST_DIFFERENCE = 0.05
RESOLVED = 8  # standard errors; an uncertainty of two standard errors is then 25 % of the difference
MEDIAN = 1.2533  # standard error of a median / standard error of a mean, for a normal distribution


@dataclass(frozen=True)
class Program:
    """A program that runs for about a second; options compile and link it."""

    name: str
    sources: tuple[Path, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        return {".c": "c", ".f90": "fortran"}.get(self.sources[0].suffix, "c++")


@dataclass(frozen=True)
class Build:
    """One way to build: compilers by language, and options."""

    name: str
    compilers: Mapping[str, tuple[str, ...]]
    options: tuple[str, ...] = ()
    hooks: bool = False


@dataclass(frozen=True)
class Built:
    """Results of a build: processor seconds, largest memory in KiB, size in bytes."""

    path: Path
    seconds: float
    memory: int
    size: int


@dataclass
class Result:
    """Ratios to the plain build, by kind of run."""

    runs: dict[str, float] = field(default_factory=dict)
    size: float = 0
    build_cpu: float = 0
    build_memory: float = 0
    estimate_error: float | None = None
    estimate_error_resolved: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)


def programs(mpi: Sequence[str]) -> list[Program]:
    """Return the programs of the benchmark. mpi: options of the examples, which call MPI."""

    def example(name: str, *arguments: str) -> Program:
        folder = ROOT / "examples" / name
        sources = sorted([*folder.glob("*.c"), *folder.glob("*.cpp")])
        return Program(name, tuple(sources), arguments, tuple(mpi))

    own = [
        Program("particles", (PROGRAMS / "particles.cpp",), ("20000", "1000")),
        Program("contact", (PROGRAMS / "contact.cpp",), ("4000", "150")),
        Program("small", (PROGRAMS / "small_calls.cpp",), (str(SMALL_CALLS),)),
        Program("accessors", (PROGRAMS / "accessors.cpp",), ("1200",)),
        example("heat", "96", "1200", "50"),
        example("cg", "56", "400"),
        example("samplesort", "12000000"),
    ]
    if shutil.which("flang-new-19"):
        own.append(Program("stencil", (PROGRAMS / "stencil.f90",), ("120", "200")))
    return own


def builds() -> list[Build]:
    """Return the ways to build; the first is plain clang."""
    wrappers = {"c": "quipu-cc", "c++": "quipu-c++", "fortran": "quipu-fc"}
    found = [
        Build("plain", {"c": ("clang-19",), "c++": ("clang++-19",), "fortran": ("flang-new-19",)}),
        Build("quipu", {language: (str(native_file(name)),) for language, name in wrappers.items()}),
        # Without inlining, clang calls inline functions of libstdc++ that the library does not contain.
        Build(
            "instrument-functions",
            {"c": ("clang-19",), "c++": ("clang++-19",)},
            ("-finstrument-functions-after-inlining",),
            True,
        ),
    ]
    if shutil.which("scorep"):
        found.append(Build("scorep", {"c": ("scorep", "gcc"), "c++": ("scorep", "g++")}))
    else:
        print("Score-P is not installed: left out", file=sys.stderr)
    return found


def took(command: Sequence[str | Path], environment: Mapping[str, str], folder: Path) -> tuple[float, int]:
    """Run a command; return the seconds of processor time and the KiB of memory of the largest process."""
    process = subprocess.Popen(
        [str(word) for word in command],
        env=dict(environment),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def build(kind: Build, program: Program, folder: Path) -> Built:
    """Build a program in a new folder."""
    folder.mkdir(parents=True)
    command = kind.compilers[program.language]
    standard = {"c": ["-std=gnu11"], "c++": ["-std=c++17"], "fortran": []}[program.language]
    quiet = [] if program.language == "fortran" else ["-w"]
    seconds, memory, objects = 0.0, 0, []
    for source in program.sources:
        objects.append(folder / f"{source.stem}.o")
        options = [*standard, *quiet, *kind.options, *program.options]
        cost = took([*command, "-O2", *options, "-c", source, "-o", objects[-1]], os.environ, folder)
        seconds, memory = seconds + cost[0], max(memory, cost[1])
    if kind.hooks:
        (folder / "hooks.c").write_text(HOOKS)
        objects.append(folder / "hooks.o")
        took(["clang-19", "-O2", "-c", folder / "hooks.c", "-o", objects[-1]], os.environ, folder)
    target = folder / program.name
    cost = took([*command, *objects, *program.options, "-lm", "-o", target], os.environ, folder)
    return Built(target, seconds + cost[0], max(memory, cost[1]), target.stat().st_size)


def run(built: Built, program: Program, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run once; return the processor seconds, and the overhead in them according to Quipu, with start and end."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "filter").write_text(FILTER)
        variables = {key: value.replace("@", scratch) for key, value in environment.items()}
        seconds, _ = took([built.path, *program.arguments], {**os.environ, **variables}, Path(scratch))
        return seconds, estimate(Path(scratch))


def estimate(folder: Path) -> float:
    """Return the overhead in seconds according to the profiles in a folder."""
    from quipu.agent.profile.reader import read_profile

    total = 0.0
    for path in folder.glob("*.quipu"):
        profile = read_profile(path)
        total += profile.setup_seconds
        total += float(profile.values["overhead"].sum()) if "overhead" in profile.values else 0.0
    return total


KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("plain", {}),
    "unmeasured": ("quipu", {}),
    "measured": ("quipu", {"QUIPU_DIR": "@"}),
    "filtered_runtime": ("quipu", {"QUIPU_DIR": "@", "QUIPU_FILTER": "@/filter"}),
    "instrument-functions": ("instrument-functions", {}),
    "scorep": ("scorep", {"SCOREP_EXPERIMENT_DIRECTORY": "@/scorep"}),
}


def measure(program: Program, ways: Sequence[Build], folder: Path, rounds: int) -> tuple[Result, list[float]]:
    """Build and run one program in all ways; also return the seconds added per run, not measured and measured."""
    made = {way.name: build(way, program, folder / way.name) for way in ways if program.language in way.compilers}
    kinds = {name: kind for name, kind in KINDS.items() if kind[0] in made}
    samples: dict[str, list[float]] = {name: [] for name in kinds}
    estimates: list[float] = []
    for _ in range(rounds):
        for name, (way, environment) in kinds.items():
            seconds, estimated = run(made[way], program, environment)
            samples[name].append(seconds)
            if name == "measured":
                estimates.append(estimated)
    plain, quipu = made["plain"], made["quipu"]
    result = Result(
        size=quipu.size / plain.size, build_cpu=quipu.seconds / plain.seconds, build_memory=quipu.memory / plain.memory
    )
    for name in kinds:
        pairs = [a / b for a, b in zip(samples[name], samples["plain"], strict=True)]
        result.runs[name] = round(statistics.median(pairs), 4)
    middle = {name: statistics.median(values) for name, values in samples.items()}
    added = middle["measured"] - middle["plain"]
    differences = [a - b for a, b in zip(samples["measured"], samples["plain"], strict=True)]
    scatter = MEDIAN * statistics.stdev(differences) / math.sqrt(rounds) if rounds > 1 else math.inf
    estimated = statistics.median(estimates)
    result.seconds = {"estimate": estimated, "added": added, "standard_error": scatter}
    if added >= LEAST_DIFFERENCE * middle["plain"]:
        result.estimate_error = abs(estimated - added) / added
    if added >= RESOLVED * scatter:
        result.estimate_error_resolved = abs(estimated - added) / added
    return result, [middle[name] - middle["plain"] for name in ("unmeasured", "measured")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each build, in turn (default 5)")
    parser.add_argument("--only", action="append", help="programs to measure (default: all)")
    options = parser.parse_args()
    from quipu.mpi_wrap import describe_mpicc

    mpi = describe_mpicc()
    results: dict[str, Result] = {}
    small: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        ways = builds()
        for program in programs(["-DOMPI_SKIP_MPICXX", *mpi.compile_flags, *mpi.link_flags]):
            if options.only and program.name not in options.only:
                continue
            results[program.name], added = measure(program, ways, Path(name) / program.name, options.rounds)
            if program.name == "small":
                small = [seconds / SMALL_CALLS * 1e9 for seconds in added]
            row = "  ".join(f"{kind} {ratio:.3f}" for kind, ratio in results[program.name].runs.items())
            print(f"{program.name:10} {row}  size {results[program.name].size:.2f}", flush=True)
    print(json.dumps(summary(results, small)))


def summary(results: Mapping[str, Result], small: Sequence[float]) -> dict[str, object]:
    """Return the content of the last line."""

    def column(kind: str) -> list[float]:
        return [result.runs[kind] for result in results.values() if kind in result.runs]

    def mean(values: Sequence[float]) -> float | None:
        return round(statistics.geometric_mean(values), 4) if values else None

    def worst(errors: Sequence[float | None]) -> float | None:
        return max((round(error, 3) for error in errors if error is not None), default=None)

    found: dict[str, object] = {}
    for kind in ("unmeasured", "measured", "filtered_runtime"):
        found |= {f"{kind}_geomean": mean(column(kind)), f"{kind}_worst": max(column(kind))}
    return {
        **found,
        "small_call_ns": round(max(small), 3) if small else None,
        "estimate_error_worst": worst([result.estimate_error for result in results.values()]),
        "estimate_error_resolved_worst": worst([result.estimate_error_resolved for result in results.values()]),
        "size_geomean": mean([result.size for result in results.values()]),
        "size_worst": round(max(result.size for result in results.values()), 3),
        "build_cpu_geomean": mean([result.build_cpu for result in results.values()]),
        "build_memory_worst": round(max(result.build_memory for result in results.values()), 3),
        "programs": {name: vars(result) for name, result in results.items()},
        "peers": {kind: mean(column(kind)) for kind in ("instrument-functions", "scorep") if column(kind)},
    }


if __name__ == "__main__":
    main()
