"""Runs that are killed at random moments: does every one merge, and is anything missing?

    make bench-kills

Kills all ranks of a run with SIGKILL (tests/mpi/killing.py) between 0 and 1 s after the work began. The last line is
one JSON object: `runs`, `merged` (bound: all), `complete`: runs in which nothing is missing but what was on its way.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mpi"))

from killing import killed_run
from measured import compile_program
from quipu.mpi_wrap import mpi_library


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    library = mpi_library()
    merged = complete = operations = 0
    with tempfile.TemporaryDirectory() as name:
        program = compile_program("endless", Path(name))
        for number in range(arguments.runs):
            folder = Path(name) / f"run-{number}"
            folder.mkdir()
            try:
                ranks = killed_run(program, library, folder, moments.uniform(0, 1))
            except AssertionError as failure:
                print(f"run {number}: {failure}", flush=True)
                continue
            merged += 1
            complete += all(rank.complete for rank in ranks)
            operations += sum(rank.visits for rank in ranks)
            if not all(rank.complete for rank in ranks):
                print(f"run {number}: {ranks}", flush=True)
    print(json.dumps({"runs": arguments.runs, "merged": merged, "complete": complete, "operations": operations}))


if __name__ == "__main__":
    main()
