# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of samples, and how well their shares of time agree with enters and exits.

    make bench-sampling_overhead
    benchmarks/sampling_overhead.py --rounds 10 --rate 1000
    benchmarks/sampling_overhead.py --folder DIR         # keeps each round, and continues up to --rounds

The example programs are built once with the wrappers, and run in turn with and without samples. They run at the highest
permitted priority below real time, so that they rarely wait for a processor. The last line is one JSON object:

- `overhead`: processor time with samples / without samples, minus 1; fastest runs, geometric mean over the programs.
- `nrmse`: root mean square over the call paths of (share of the sampled processor time - share of the time that enters
  and exits measured), divided by the largest share. It is computed per program over all sampled runs; the value is the
  largest over the programs. The start and the end of MPI are left out, because a process sleeps there, and the clock of
  enters and exits continues.
- `expected`: the same for random samples. A share s of n samples has the error sqrt(s (1 - s) / n).
- `lost`: samples without a call path.
- `interrupts`, `signals`: processor time of the kernel's timer alone at this rate, and with signals and a handler that
  does nothing (programs/interrupts.c).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from instrumentation_overhead import Kind, Program, add_options, build, code, example, geometric_mean
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

PROGRAMS = (
    example("heat", "96", "1200", "50"),
    example("cg", "56", "400"),
    example("samplesort", "12000000"),
)


START_AND_END = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")


@dataclass
class Round:
    """One run with samples and one without: processor seconds, and time by call path of enters and exits, in seconds,
    and of samples, in nanoseconds.
    """

    plain: float
    sampled: float
    time: dict[str, float]
    task_clock: dict[str, float]
    samples: int
    lost: int
    late: int


def shares_of(raw: Path) -> dict[str, Any]:
    """Return the content of the only profile of a folder: a round without the seconds of its runs."""
    (file,) = raw.glob("profile-*.quipu")
    profile = read_profile(file)
    names: list[tuple[str, ...]] = []
    time: dict[str, float] = defaultdict(float)
    task_clock: dict[str, float] = defaultdict(float)
    for node, (parent, region) in enumerate(zip(profile.parent.tolist(), profile.region.tolist(), strict=True)):
        above = names[parent] if parent >= 0 else ()
        names.append((*above, profile.regions[region].name) if region else above)
        if region and not set(names[-1]) & set(START_AND_END):  # a sample outside of all regions has no measured time
            path = "->".join(names[-1])
            time[path] += float(profile.values["time"][node])
            task_clock[path] += float(profile.values["task_clock"][node])
    return {
        "time": dict(time),
        "task_clock": dict(task_clock),
        "samples": int(profile.values["samples"].sum()),
        "lost": int(profile.attributes["samples_lost"]),
        "late": int(profile.attributes["samples_late"]),
    }


def summed(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of each call path, as a share of the total."""
    total: dict[str, float] = defaultdict(float)
    for part in parts:
        for path, value in part.items():
            total[path] += value
    whole = sum(total.values())
    return {path: value / whole for path, value in total.items()}


def row_of(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the combined results of the rounds of a program."""
    shares, sampled = summed(one.time for one in rounds), summed(one.task_clock for one in rounds)
    samples, largest = sum(one.samples for one in rounds), max(shares.values())
    squares = [(sampled.get(path, 0.0) - share) ** 2 for path, share in shares.items()]
    random = [share * (1 - share) / max(1, samples) for share in shares.values()]
    return {
        "overhead": round(min(one.sampled for one in rounds) / min(one.plain for one in rounds) - 1, 4),
        "overhead_median": round(statistics.median(one.sampled / one.plain for one in rounds) - 1, 4),
        "nrmse": round(math.sqrt(statistics.mean(squares)) / largest, 5),
        "expected": round(math.sqrt(statistics.mean(random)) / largest, 5),
        "call_paths": len(shares),
        "samples": samples,
        "rate": round(samples / sum(one.sampled for one in rounds), 1),
        "lost": sum(one.lost for one in rounds),
        "late": sum(one.late for one in rounds),
    }


def run(program: Path, arguments: tuple[str, ...], preload: str, rate: int) -> tuple[float, dict[str, Any]]:
    """Run once, with samples if there is a rate; return user plus system seconds, and the samples."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "QUIPU_DIR": scratch, "LD_PRELOAD": preload}
        if rate:
            environment["QUIPU_SAMPLE"] = str(rate)
        before = os.times()
        subprocess.run(
            [*first(), program, *arguments],
            env=environment,
            cwd=scratch,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr,
        )
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        return seconds, shares_of(Path(scratch)) if rate else {}


def first() -> list[str]:
    """Return a command prefix that gives a program priority; empty if this is not permitted.

    If the kernel groups processes by session (sched(7), "The autogroup feature"), a nice value only counts within its
    session, so the program gets a separate session with priority.
    """
    own = '[ ! -w /proc/self/autogroup ] || echo -20 >/proc/self/autogroup; exec nice -n -20 "$@"'
    before = ["setsid", "--wait", "sh", "-c", own, "sh"]
    return before if subprocess.run([*before, "true"], capture_output=True, check=False).returncode == 0 else []


def alone(folder: Path, rate: int, rounds: int) -> dict[str, float]:
    """Return the processor time of interrupts alone, and of signals with an empty handler: fastest runs."""
    program = folder / "interrupts"
    source = Path(__file__).resolve().parent / "programs" / "interrupts.c"
    subprocess.run(["clang-19", "-O2", str(source), "-o", str(program)], check=True)
    fastest: dict[str, float] = {}
    for _ in range(rounds):
        for kind in ("nothing", "interrupts", "signals"):
            command = [*first(), str(program), kind, str(1_000_000_000 // rate)]
            seconds = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            fastest[kind] = min(seconds, fastest.get(kind, math.inf))
    return {kind: round(fastest[kind] / fastest["nothing"] - 1, 4) for kind in ("interrupts", "signals")}


def rounds_of(program: Program, built: Path, kept: Path, number: int, rate: int, preload: str) -> list[Round]:
    """Run a program until the file `kept` contains the given number of rounds; return them."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    rounds = [Round(**json.loads(line)) for line in lines]
    while len(rounds) < number:
        plain, _ = run(built, program.arguments, preload, 0)
        sampled, found = run(built, program.arguments, preload, rate)
        rounds.append(Round(plain, sampled, **found))
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(rounds[-1])) + "\n")
    return rounds[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--rate", type=int, default=1000, help="samples per second (default 1000)")
    parser.add_argument("--folder", type=Path, help="keeps programs and rounds; rounds that are there are not repeated")
    options = parser.parse_args()
    from quipu.mpi_wrap import mpi_library

    preload = str(mpi_library())
    kind = Kind("full", str(native_file("quipu-cc")), str(native_file("quipu-c++")))
    programs: tuple[Program, ...] = (*PROGRAMS, *(code(*words) for words in options.code))
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            built, _ = build(kind, program, Path(name) / program.name)
            kept = folder / f"{program.name}.{options.rate}.jsonl"
            rows[program.name] = row_of(rounds_of(program, built, kept, options.rounds, options.rate, preload))
            print(f"{program.name:11} {rows[program.name]}", flush=True)
        costs = alone(Path(name), options.rate, min(options.rounds, 10))
    summary = {
        "overhead": round(geometric_mean([1 + row["overhead"] for row in rows.values()]) - 1, 4),
        "nrmse": max(row["nrmse"] for row in rows.values()),
        "expected": max(row["expected"] for row in rows.values()),
        "lost": sum(row["lost"] for row in rows.values()),
        "samples": sum(row["samples"] for row in rows.values()),
        **costs,
        "programs": rows,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
