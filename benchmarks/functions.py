# SPDX-License-Identifier: Apache-2.0
"""Check that inlined functions keep their names, and measure the overhead of timing them.

    make bench-functions
    benchmarks/functions.py --code lulesh ~/LULESH " -DUSE_MPI=0" "-s 20 -i 60"

The examples, a program of ten small functions, and the codes of `--code` are built with -O2, plain and instrumented.
They run in turn, one process each. A build with -O0 shows which functions the program executes, and the work of a visit
of each function.

The last line is one JSON object:

- `named_share`: 1 - a - b; the smallest of all programs. a: share of the time of the -O2 run in regions that the -O0
  run does not contain. b: share of its instructions in functions without a separate time, although a visit does enough
  work (the limit of llvm_pass/worth.cpp, for instructions at -O0 including callees). It is 1 if every such function has
  a separate time, and near 0 if main contains all of them.
- `counted_share`: share of the instructions in functions with separate effort and visits, but without a separate time.
- `overhead_geomean`, `overhead_worst`: processor time / processor time of the plain build, median over the rounds;
  geometric mean and largest of the programs.
- `missing`: functions with at least 1 % of the time of the -O0 run that the -O2 run does not show with a visit.
- `programs`: these figures of each program.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import instrumentation_overhead as overhead
from instrumentation_overhead import Kind, Program, build, code, example, run
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

MATTERS = 0.01
"""Functions with at least this share of the -O0 run must be shown."""

MUCH_WORK = 2048
"""Functions with at least this number of instructions per visit have hooks (MuchWork of llvm_pass/worth.cpp)."""

PROGRAMS = (
    example("heat", "96", "1200", "50"),
    example("cg", "56", "400"),
    example("samplesort", "12000000"),
    Program("ten_functions", (overhead.ROOT / "benchmarks/programs/ten_functions.c",), ("2000", "60")),
)


@dataclass
class ByName:
    """Sums of one run by linker name of the function: exclusive and inclusive."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    visits: Counter[str] = field(default_factory=Counter)
    instructions: Counter[str] = field(default_factory=Counter)
    inclusive: Counter[str] = field(default_factory=Counter)


def profile_of(program: Path, arguments: tuple[str, ...], preload: str) -> ByName:
    """Run once and add up."""
    found = ByName()
    with tempfile.TemporaryDirectory() as raw:
        environment = {**os.environ, "QUIPU_DIR": raw, "LD_PRELOAD": preload}
        subprocess.run([program, *arguments], env=environment, cwd=raw, check=True, capture_output=True)
        for path in Path(raw).glob("profile-*.quipu"):
            profile = read_profile(path)
            inclusive = profile.values["instructions"].astype(float)
            for node in range(inclusive.size - 1, -1, -1):  # parents come before children
                if profile.parent[node] >= 0:
                    inclusive[profile.parent[node]] += inclusive[node]
            for node, region in enumerate(profile.region.tolist()):
                if region:
                    name = profile.regions[region].name
                    found.seconds[name] += float(profile.values["time"][node])
                    found.visits[name] += int(profile.values["visits"][node])
                    found.instructions[name] += int(profile.values["instructions"][node])
                    found.inclusive[name] += int(inclusive[node])
    return found


def named_share(unoptimized: ByName, optimized: ByName) -> float:
    """Return the share of a run in regions with the names of its functions, if these do much work."""
    whole = sum(optimized.instructions.values())
    hidden = sum(
        count
        for name, count in optimized.instructions.items()
        if optimized.seconds[name] == 0 and unoptimized.inclusive[name] >= MUCH_WORK * max(unoptimized.visits[name], 1)
    )
    strange = sum(seconds for name, seconds in optimized.seconds.items() if name not in unoptimized.visits)
    return max(0.0, 1 - hidden / whole - strange / sum(optimized.seconds.values()))


def counted_share(run: ByName) -> float:
    """Return the share of the instructions in functions without a separate time."""
    untimed = sum(count for name, count in run.instructions.items() if run.seconds[name] == 0)
    return untimed / sum(run.instructions.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    overhead.add_options(parser)
    options = parser.parse_args()
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    cc, cxx = str(native_file("quipu-cc")), str(native_file("quipu-c++"))
    plain, full = Kind("plain"), Kind("full", cc, cxx, environment={"QUIPU_DIR": "@"})
    unoptimized = Kind("O0", cc, cxx, options=("-O0",))
    rows: dict[str, dict[str, object]] = {}
    shares, ratios = [], []
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        for program in (*PROGRAMS, *(code(*words) for words in options.code)):
            built = {
                kind.name: build(kind, program, Path(name) / program.name / kind.name)[0]
                for kind in (plain, full, unoptimized)
            }
            before = profile_of(built["O0"], program.arguments, preload)
            after = profile_of(built["full"], program.arguments, preload)
            pairs = []
            for _ in range(options.rounds):
                base = run(plain, built["plain"], program.arguments, preload)
                pairs.append(run(full, built["full"], program.arguments, preload) / base)
            share, ratio = named_share(before, after), statistics.median(pairs)
            limit = MATTERS * sum(before.seconds.values())
            missing = [name for name, spent in before.seconds.items() if spent >= limit and not after.visits[name]]
            shares.append(share)
            ratios.append(ratio)
            rows[program.name] = {
                "named_share": round(share, 4),
                "counted_share": round(counted_share(after), 4),
                "overhead": round(ratio, 4),
                "missing": sorted(missing),
            }
            missed += len(missing)
            print(f"{program.name:14} named {share:.3f}  overhead {ratio:.3f}  missing {len(missing)}", flush=True)
    summary = {
        "named_share": round(min(shares), 4),
        "overhead_geomean": round(statistics.geometric_mean(ratios), 4),
        "overhead_worst": round(max(ratios), 4),
        "missing": missed,
        "programs": rows,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
