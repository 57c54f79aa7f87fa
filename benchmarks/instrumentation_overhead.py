# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of instrumentation in run time and compile time, compared with other instrumentation.

    make bench-instrumentation_overhead
    benchmarks/instrumentation_overhead.py --code lulesh ~/LULESH " -DUSE_MPI=0" "-s 30 -i 100"

The example programs, a call-heavy C++ program, and the codes of `--code` are built once for each kind of
instrumentation. The builds run in turn, one process each. Times are user and system time of the process and its
children. Ratios are medians of the ratios to the plain build of the same round.

The last line is one JSON object:

- `full_geomean`, `full_worst`: ratio of the run time with all effort metrics, visits, time and MPI.
- `blocks_geomean`: the same ratio without time stamps (the effort metrics come from the same counters).
- `compile_geomean`: ratio of the compile time.
- `pair_ns`, `pair_rotating_ns`, `pair_time_ns`: an enter and an exit without time stamps (the first two) and with time
  stamps, minus the plain call.
- `quiet_ns`: a visit of a function without a hook. `two_timestamps_ns`: two time stamps.
- `programs`, `peers`: the figures of each program, and of other instrumentation.
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
import time
from dataclasses import dataclass, field
from pathlib import Path

from quipu.agent.installation import native_file

ROOT = Path(__file__).resolve().parents[1]
HOOKS = "".join(
    f"void __cyg_profile_func_{hook}(void *function, void *site) {{ (void)function; (void)site; }}\n"
    for hook in ("enter", "exit")
)


@dataclass(frozen=True)
class Program:
    """Sources, language and arguments of a program that runs for about a second in one process."""

    name: str
    sources: tuple[Path, ...]
    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def cxx(self) -> bool:
        return self.sources[0].suffix != ".c"


@dataclass(frozen=True)
class Kind:
    """One way to instrument: compilers for C and C++, options, and the environment of the run."""

    name: str
    cc: str = "clang-19"
    cxx: str = "clang++-19"
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    hooks: bool = False
    launcher: tuple[str, ...] = ()


def example(name: str, *arguments: str) -> Program:
    """Return an example program of the repository."""
    folder = ROOT / "examples" / name
    sources = sorted([*folder.glob("*.c"), *folder.glob("*.cpp")])
    return Program(name, tuple(sources), arguments)


def code(name: str, folder: str, options: str, arguments: str) -> Program:
    """Return a program whose sources are all C or C++ files of a folder."""
    root = Path(folder).expanduser().resolve()
    sources = sorted(path for suffix in ("c", "cc", "cpp", "cxx") for path in root.glob(f"*.{suffix}"))
    if not sources:
        raise SystemExit(f"--code {name}: no C or C++ files in {root}")
    return Program(name, tuple(sources), tuple(arguments.split()), (f"-I{root}", *options.split()))


PROGRAMS = (
    example("heat", "96", "1200", "50"),
    example("cg", "56", "400"),
    example("samplesort", "12000000"),
    Program("accessors", (ROOT / "benchmarks/programs/accessors.cpp",), ("1200",)),
)


def kinds() -> list[Kind]:
    """Return all kinds; peers that are not installed are left out, with a message."""
    cc, cxx = str(native_file("quipu-cc")), str(native_file("quipu-c++"))
    found = [
        Kind("plain"),
        Kind("full", cc, cxx, environment={"QUIPU_DIR": "@"}),
        Kind("blocks", cc, cxx, environment={"QUIPU_DIR": "@", "QUIPU_CLOCK": "none"}),
        Kind("not measured", cc, cxx),
        Kind("naive", cc, cxx, ("--quipu-naive",), {"QUIPU_DIR": "@"}),
        Kind("profile-generate", options=("-fprofile-generate",), environment={"LLVM_PROFILE_FILE": "/dev/null"}),
        Kind(
            "profile-instr-generate",
            options=("-fprofile-instr-generate",),
            environment={"LLVM_PROFILE_FILE": "/dev/null"},
        ),
        # This option needs GCC, because programs in C++17 do not link with clang and libstdc++ under this option.
        Kind("gcc instrument-functions", "gcc", "g++", ("-finstrument-functions",), hooks=True),
        Kind("instrument-after-inlining", options=("-finstrument-functions-after-inlining",), hooks=True),
        Kind("gcc plain", "gcc", "g++"),
        Kind("gcc -pg", "gcc", "g++", ("-pg",)),
    ]
    if shutil.which("uftrace"):
        found.append(
            Kind("uftrace", "gcc", "g++", ("-pg",), launcher=("uftrace", "record", "--no-event", "-d", "@/uftrace"))
        )
    else:
        print("uftrace is not installed (apt-get install uftrace): left out", file=sys.stderr)
    xray = {"XRAY_OPTIONS": "patch_premain=true xray_mode=xray-basic verbosity=0"}
    found.append(Kind("xray", options=("-fxray-instrument",), environment=xray))
    return found


def mpi_flags() -> tuple[list[str], list[str]]:
    """Return compile and link options of the MPI at hand."""
    from quipu.mpi_wrap import describe_mpicc

    mpi = describe_mpicc()
    return list(mpi.compile_flags), list(mpi.link_flags)


def build(kind: Kind, program: Program, folder: Path) -> tuple[Path, float]:
    """Build a program in a separate folder; return it and the CPU seconds of the compiler."""
    folder.mkdir(parents=True)
    compile_flags, link_flags = mpi_flags()
    compiler = kind.cxx if program.cxx else kind.cc
    standard = "-std=c++17" if program.cxx else "-std=gnu11"
    started = os.times()
    objects = []
    for source in program.sources:
        target = folder / f"{source.stem}.o"
        command: list[str | Path] = [
            compiler,
            "-O2",
            standard,
            "-DOMPI_SKIP_MPICXX",
            "-w",
            *kind.options,
            *program.options,
            *compile_flags,
            "-c",
            source,
            "-o",
            target,
        ]
        subprocess.run(command, check=True)
        objects.append(target)
    ended = os.times()
    if kind.hooks:
        (folder / "hooks.c").write_text(HOOKS)
        subprocess.run([kind.cc, "-O2", "-c", folder / "hooks.c", "-o", folder / "hooks.o"], check=True)
        objects.append(folder / "hooks.o")
    result = folder / program.name
    subprocess.run([compiler, *kind.options, *objects, *link_flags, "-lm", "-o", result], check=True)
    seconds = ended.children_user + ended.children_system - started.children_user - started.children_system
    return result, seconds


def run(kind: Kind, program: Path, arguments: tuple[str, ...], preload: str) -> float:
    """Run once; return user plus system seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, **{k: v.replace("@", scratch) for k, v in kind.environment.items()}}
        if "QUIPU_DIR" in kind.environment:
            environment["LD_PRELOAD"] = preload
        words = [*(word.replace("@", scratch) for word in kind.launcher), str(program), *arguments]
        before = os.times()
        subprocess.run(
            words, env=environment, cwd=scratch, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values)


def call_costs(folder: Path, rounds: int) -> dict[str, float]:
    """Return nanoseconds per call of programs/calls.c, minus the time of a plain call."""
    source = ROOT / "benchmarks/programs/calls.c"
    wrapper = str(native_file("quipu-cc"))
    programs = {"plain": ("clang-19",), "hooks": (wrapper, "--quipu-all"), "quiet": (wrapper,)}
    for name, compiler in programs.items():
        subprocess.run([*compiler, "-O2", source, "-o", folder / f"calls-{name}"], check=True)
    samples: dict[str, list[list[float]]] = {"plain": [], "none": [], "tsc": [], "quiet": []}
    for _ in range(rounds):
        for kind, rows in samples.items():
            with tempfile.TemporaryDirectory() as scratch:
                environment = dict(os.environ)
                if kind != "plain":
                    environment |= {"QUIPU_DIR": scratch, "QUIPU_CLOCK": "none" if kind == "none" else "tsc"}
                program = folder / f"calls-{kind if kind in programs else 'hooks'}"
                answer = subprocess.run([program], env=environment, check=True, capture_output=True, text=True)
                rows.append([float(word) for word in answer.stdout.split()[:3]])
    middle = {kind: [statistics.median(column) for column in zip(*rows, strict=True)] for kind, rows in samples.items()}
    return {
        "pair_ns": middle["none"][0] - middle["plain"][0],
        "pair_rotating_ns": middle["none"][1] - middle["plain"][1],
        "pair_time_ns": middle["tsc"][0] - middle["plain"][0],
        "quiet_ns": middle["quiet"][1] - middle["plain"][1],
        "two_timestamps_ns": middle["plain"][2],
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the number of rounds and for further programs."""
    parser.add_argument("--rounds", type=int, default=5, help="alternated runs of each build (default 5)")
    parser.add_argument(
        "--code",
        nargs=4,
        action="append",
        default=[],
        metavar=("NAME", "FOLDER", "OPTIONS", "ARGUMENTS"),
        help="one more program: all C or C++ files of a folder, options to compile and arguments to run it with"
        " (begin options with a blank: ' -DX=1')",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    options = parser.parse_args()
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    ratios: dict[str, dict[str, float]] = {}
    compiling: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        everything = kinds()
        for program in (*PROGRAMS, *(code(*words) for words in options.code)):
            built, cost = {}, {}
            for kind in everything:
                built[kind.name], cost[kind.name] = build(
                    kind, program, folder / program.name / kind.name.replace(" ", "-")
                )
            samples: dict[str, list[float]] = {kind.name: [] for kind in everything}
            for _ in range(options.rounds):
                for kind in everything:
                    samples[kind.name].append(run(kind, built[kind.name], program.arguments, preload))
            ratios[program.name], compiling[program.name] = {}, {}
            for kind in everything:
                base = "gcc plain" if kind.cc == "gcc" else "plain"
                pairs = [a / b for a, b in zip(samples[kind.name], samples[base], strict=True)]
                ratios[program.name][kind.name] = round(statistics.median(pairs), 4)
                compiling[program.name][kind.name] = round(cost[kind.name] / cost[base], 3)
            row = "  ".join(
                f"{kind} {ratio:.2f}" for kind, ratio in ratios[program.name].items() if "plain" not in kind
            )
            print(f"{program.name:11} {statistics.median(samples['plain']):.2f} s   {row}", flush=True)
        calls = call_costs(folder, options.rounds)
    peers = {
        kind: round(geometric_mean([ratios[program][kind] for program in ratios]), 4)
        for kind in next(iter(ratios.values()))
    }
    summary = {
        "full_geomean": peers["full"],
        "full_worst": max(row["full"] for row in ratios.values()),
        "blocks_geomean": peers["blocks"],
        "compile_geomean": round(geometric_mean([row["full"] for row in compiling.values()]), 3),
        **{key: round(value, 2) for key, value in calls.items()},
        "programs": ratios,
        "compile": compiling,
        "peers": peers,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
