# SPDX-License-Identifier: Apache-2.0
"""Measure the time that the MPI wrappers add to small operations, on two ranks.

    make bench-mpi_overhead

The same plain program (mpi_overhead.c) runs in turn without measuring, with measuring, and with measuring of everything
except the time of calls (QUIPU_CLOCK=none). Figures are medians over the rounds of the difference or the ratio of
neighbouring runs. The last line is one JSON object:

- `sendrecv_added_ns` (bound: 60): nanoseconds that measuring adds to a call of MPI_Send or MPI_Recv. The pair of calls
  runs within one process, where no waiting hides the overhead.
- `allreduce_ratio` (bound: 1.05): time of an 8-byte MPI_Allreduce with measuring / without measuring.
- `allreduce_stamped_ratio`: the ratio for the plain program with two time stamps around the operation. This is the
  minimum for any tool that measures the time of the operation.
- `allreduce_least_ratio`: the ratio for a hand-written wrapper without call paths.
- `allreduce_own_points` (bound: 2): time that measuring adds beyond the two time stamps, in percent of the operation.
- `allreduce_ratio_counts`: the ratio for measuring without time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from launching import LAUNCH
from quipu.mpi_wrap import mpi_library

RANKS = 2
KINDS = ("pair", "pingpong", "allreduce")
STAMPED, LEAST = "stamped", "least"


def measure(program: Path, variables: dict[str, str]) -> dict[str, float]:
    """Return the nanoseconds per operation of one run. variables: environment variables of the ranks."""
    words = [f"{name}={value}" for name, value in variables.items()]
    command = ["mpirun", "-n", str(RANKS), "env", *words, str(program)]
    result = subprocess.run(command, env={**os.environ, **LAUNCH}, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(result.stdout)
    return times


def compare(plain: list[dict[str, float]], other: list[dict[str, float]], kind: str) -> dict[str, float]:
    """Return the medians of both times, and of the difference and the ratio of neighbouring runs."""
    both = [(a[kind], b[kind]) for a, b in zip(plain, other, strict=True)]
    return {
        "plain_ns": round(statistics.median(a for a, _ in both), 1),
        "ns": round(statistics.median(b for _, b in both), 1),
        "added_ns": round(statistics.median(b - a for a, b in both), 1),
        "ratio": round(statistics.median(b / a for a, b in both), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60, help="pairs of runs, without and with")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for the measured runs")
    arguments = parser.parse_args()
    chosen = dict(word.split("=", 1) for word in arguments.set)
    ways = {"plain": None, "wrapped": chosen, "counts": {**chosen, "QUIPU_CLOCK": "none"}}
    times: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "mpi_overhead"
        subprocess.run(["mpicc", "-O2", str(Path(__file__).with_suffix(".c")), "-o", str(program)], check=True)
        for _ in range(arguments.rounds):
            for way, variables in ways.items():
                raw = folder / "raw"
                raw.mkdir()
                tool = {"LD_PRELOAD": str(mpi_library()), "QUIPU_DIR": str(raw)}
                times[way].append(measure(program, {} if variables is None else {**tool, **variables}))
                shutil.rmtree(raw)
    details = {
        kind: {way: compare(times["plain"], times[way], kind) for way in ways if way != "plain"} for kind in KINDS
    }
    for kind, rows in details.items():
        for way, row in rows.items():
            print(f"{kind:10} plain {row['plain_ns']:8.1f} ns   {way} {row['ns']:8.1f} ns   {row['added_ns']:+7.1f}")
    stamped = statistics.median(run[STAMPED] / run["allreduce"] for run in times["plain"])
    least = statistics.median(run[LEAST] / run["allreduce"] for run in times["plain"])
    added = round(details["pair"]["wrapped"]["added_ns"] / 2, 1)
    print(
        json.dumps(
            {
                "sendrecv_added_ns": added,
                "allreduce_ratio": details["allreduce"]["wrapped"]["ratio"],
                "allreduce_stamped_ratio": round(stamped, 4),
                "allreduce_least_ratio": round(least, 4),
                "allreduce_own_points": round(100 * (details["allreduce"]["wrapped"]["ratio"] - stamped), 1),
                "allreduce_ratio_counts": details["allreduce"]["counts"]["ratio"],
                "pingpong_added_ns": round(details["pingpong"]["wrapped"]["added_ns"] / 2, 1),
                "rounds": arguments.rounds,
                "details": details,
            }
        )
    )


if __name__ == "__main__":
    main()
