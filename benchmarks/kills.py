# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed at random moments: does every one merge, and is anything missing?

    make bench-kills

Kills all ranks of a run with SIGKILL (tests/mpi/killing.py) between 0 and 2 s after the work began. Every second run
works on without a pause, the others sit in one function when they are killed; both with and without node agent. The
last line is one JSON object: `runs`, `merged` (bound: all), `complete` (bound: all): runs in which nothing is missing
but what was on its way and at most the last second of time; `operations` counted; `missing_seconds`: the most time
that was missing of a rank.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mpi"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from killing import Killed, compile_endless, killed_run
from quipu.mpi_wrap import mpi_library


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    library = mpi_library()
    merged = 0
    found: list[list[Killed]] = []
    with tempfile.TemporaryDirectory() as name:
        program = compile_endless(Path(name))
        for number in range(arguments.runs):
            folder = Path(name) / f"run-{number}"
            folder.mkdir()
            sit, agent = number % 2 == 1, number % 4 > 1
            try:
                ranks = killed_run(program, library, folder, moments.uniform(0, 2), sit, agent)
            except AssertionError as failure:
                print(f"run {number}: {failure}", flush=True)
                continue
            merged += 1
            found.append(ranks)
            if not all(rank.complete for rank in ranks):
                print(f"run {number}: {ranks}", flush=True)
    result = {
        "runs": arguments.runs,
        "merged": merged,
        "complete": sum(all(rank.complete for rank in ranks) for ranks in found),
        "operations": sum(rank.visits for ranks in found for rank in ranks),
        "missing_seconds": round(max((rank.lived - rank.seconds for ranks in found for rank in ranks), default=0.0), 6),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
