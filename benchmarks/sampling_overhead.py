"""What samples cost, and how well their shares of time agree with those of enters and exits.

    make bench-sampling_overhead
    benchmarks/sampling_overhead.py --rounds 10 --rate 1000

The example programs are built once with the wrappers and run in turn with and without samples. `overhead`: processor
time with samples over that without, less 1 (fastest runs of each, geometric mean over the programs). `nrmse`: per
program, over all sampled runs together, the root mean square difference between each call path's share of the sampled
processor time and its share of the time that enters and exits measured, divided by the largest share; the largest
over the programs. Samples are random: with `samples` of them a share of one half is known to 0.5/sqrt(samples),
`expected`. `lost`: samples that belong to no call path. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from instrumentation_overhead import Kind, Program, add_options, build, code, example, geometric_mean
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

PROGRAMS = (
    example("heat", "96", "1200", "50"),
    example("cg", "56", "400"),
    example("samplesort", "12000000"),
)


@dataclass
class Shares:
    """Seconds by call path: of enters and exits, and of samples."""

    time: dict[tuple[str, ...], float] = field(default_factory=lambda: defaultdict(float))
    sampled: dict[tuple[str, ...], float] = field(default_factory=lambda: defaultdict(float))
    samples: int = 0
    lost: int = 0
    late: int = 0

    def add(self, raw: Path) -> None:
        """Add the one profile of a folder."""
        (file,) = raw.glob("profile-*.quipu")
        profile = read_profile(file)
        names: list[tuple[str, ...]] = []
        for node, (parent, region) in enumerate(zip(profile.parent.tolist(), profile.region.tolist(), strict=True)):
            above = names[parent] if parent >= 0 else ()
            names.append((*above, profile.regions[region].name) if region else above)
            if region:  # outside of all regions no time is kept
                self.time[names[-1]] += float(profile.values["time"][node])
                self.sampled[names[-1]] += float(profile.values["task_clock"][node])
        self.samples += int(profile.values["samples"].sum())
        self.lost += int(profile.attributes["samples_lost"])
        self.late += int(profile.attributes["samples_late"])

    def difference(self) -> float:
        """Return the normalized root mean square difference of the shares."""
        total, sampled = sum(self.time.values()), sum(self.sampled.values())
        shares = {path: seconds / total for path, seconds in self.time.items()}
        squares = [(self.sampled[path] / sampled - share) ** 2 for path, share in shares.items()]
        return (sum(squares) / len(squares)) ** 0.5 / max(shares.values())


def run(program: Path, arguments: tuple[str, ...], preload: str, rate: int, shares: Shares | None) -> float:
    """Run once, with samples if there are shares to add to; return user plus system seconds."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "QUIPU_DIR": scratch, "LD_PRELOAD": preload}
        if shares is not None:
            environment["QUIPU_SAMPLE"] = str(rate)
        before = os.times()
        subprocess.run(
            [program, *arguments],
            env=environment,
            cwd=scratch,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
        after = os.times()
        if shares is not None:
            shares.add(Path(scratch))
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--rate", type=int, default=1000, help="samples per second (default 1000)")
    options = parser.parse_args()
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    kind = Kind("full", str(native_file("quipu-cc")), str(native_file("quipu-c++")))
    programs: tuple[Program, ...] = (*PROGRAMS, *(code(*words) for words in options.code))
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for program in programs:
            built, _ = build(kind, program, Path(name) / program.name)
            shares = Shares()
            plain, sampled = [], []
            for _ in range(options.rounds):
                plain.append(run(built, program.arguments, preload, options.rate, None))
                sampled.append(run(built, program.arguments, preload, options.rate, shares))
            pairs = [with_samples / without for with_samples, without in zip(sampled, plain, strict=True)]
            rows[program.name] = {
                "overhead": round(min(sampled) / min(plain) - 1, 4),
                "overhead_median": round(statistics.median(pairs) - 1, 4),
                "nrmse": round(shares.difference(), 5),
                "expected": round(0.5 / max(1, shares.samples) ** 0.5, 5),
                "samples": shares.samples,
                "rate": round(shares.samples / sum(sampled), 1),
                "lost": shares.lost,
                "late": shares.late,
            }
            print(f"{program.name:11} {rows[program.name]}", flush=True)
    summary = {
        "overhead": round(geometric_mean([1 + row["overhead"] for row in rows.values()]) - 1, 4),
        "nrmse": max(row["nrmse"] for row in rows.values()),
        "lost": sum(row["lost"] for row in rows.values()),
        "samples": sum(row["samples"] for row in rows.values()),
        "programs": rows,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
