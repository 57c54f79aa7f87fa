"""Whether functions keep their name where the compiler inlines them, and what timing them costs.

    make bench-functions
    benchmarks/functions.py --code lulesh ~/LULESH " -DUSE_MPI=0" "-s 20 -i 60"

The examples, a program of ten small functions and codes that are given with --code are built with -O2, plain and
instrumented, and run in turn, one process each. An -O0 build says which functions of the program run and
how long each takes; what has no hook even there belongs to its callers in both. `named_share`: 1, less the share of the
-O0 run in functions that have no time of their own in the -O2 run, less the share of the -O2 run in regions that the
-O0 run does not know. So it is 1 if every function is there with its time, and near 0 if main took them all in; how
much of a function's time is with it is not judged, for optimization changes it. The last line is
one JSON object: `named_share` (the smallest of all programs), `overhead_geomean`, `overhead_worst` (processor time
against the plain build, medians of the ratios of each round), `missing` (functions of at least 1 % of the -O0 run that
the -O2 run does not show with a visit), `programs`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import instrumentation_overhead as overhead
from instrumentation_overhead import Kind, Program, build, code, example, run
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

MATTERS = 0.01
"""Share of the -O0 run from which a function has to be there."""

PROGRAMS = (
    example("heat", "96", "1200", "50"),
    example("cg", "56", "400"),
    example("samplesort", "12000000"),
    Program("ten_functions", (overhead.ROOT / "benchmarks/programs/ten_functions.c",), ("2000", "60")),
)


def profile_of(program: Path, arguments: tuple[str, ...], preload: str) -> tuple[Counter[str], Counter[str]]:
    """Return exclusive seconds and visits of one run by linker name of the function."""
    seconds: Counter[str] = Counter()
    visits: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as raw:
        environment = {**os.environ, "QUIPU_DIR": raw, "LD_PRELOAD": preload}
        subprocess.run([program, *arguments], env=environment, cwd=raw, check=True, capture_output=True)
        for path in Path(raw).glob("profile-*.quipu"):
            profile = read_profile(path)
            for node, region in enumerate(profile.region.tolist()):
                if region:
                    seconds[profile.regions[region].name] += float(profile.values["time"][node])
                    visits[profile.regions[region].name] += int(profile.values["visits"][node])
    return seconds, visits


def named_share(unoptimized: Counter[str], optimized: Counter[str]) -> float:
    """Return what share of a run is in regions of its functions' names; arguments: seconds by name."""
    whole = sum(unoptimized.values())
    hidden = sum(seconds for name, seconds in unoptimized.items() if optimized[name] == 0) / whole
    strange = sum(seconds for name, seconds in optimized.items() if name not in unoptimized) / sum(optimized.values())
    return max(0.0, 1 - hidden - strange)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="alternated runs of each build (default 5)")
    parser.add_argument(
        "--code",
        nargs=4,
        action="append",
        default=[],
        metavar=("NAME", "FOLDER", "OPTIONS", "ARGUMENTS"),
        help="one more program, as in instrumentation_overhead.py",
    )
    options = parser.parse_args()
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    cc, cxx = str(native_file("quipu-cc")), str(native_file("quipu-c++"))
    plain, full = Kind("plain"), Kind("full", cc, cxx, environment={"QUIPU_DIR": "@"})
    unoptimized = Kind("O0", cc, cxx, options=("-O0",))
    rows: dict[str, dict[str, object]] = {}
    shares, ratios = [], []
    with tempfile.TemporaryDirectory() as name:
        for program in (*PROGRAMS, *(code(*words) for words in options.code)):
            built = {
                kind.name: build(kind, program, Path(name) / program.name / kind.name)[0]
                for kind in (plain, full, unoptimized)
            }
            before, _ = profile_of(built["O0"], program.arguments, preload)
            after, visits = profile_of(built["full"], program.arguments, preload)
            pairs = []
            for _ in range(options.rounds):
                base = run(plain, built["plain"], program.arguments, preload)
                pairs.append(run(full, built["full"], program.arguments, preload) / base)
            share, ratio = named_share(before, after), statistics.median(pairs)
            limit = MATTERS * sum(before.values())
            missing = sorted(name for name, seconds in before.items() if seconds >= limit and not visits[name])
            shares.append(share)
            ratios.append(ratio)
            rows[program.name] = {"named_share": round(share, 4), "overhead": round(ratio, 4), "missing": missing}
            print(f"{program.name:14} named {share:.3f}  overhead {ratio:.3f}  missing {len(missing)}", flush=True)
    summary = {
        "named_share": round(min(shares), 4),
        "overhead_geomean": round(statistics.geometric_mean(ratios), 4),
        "overhead_worst": round(max(ratios), 4),
        "missing": sum(len(row["missing"]) for row in rows.values()),  # type: ignore[arg-type]
        "programs": rows,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
