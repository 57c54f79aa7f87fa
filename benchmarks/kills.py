# SPDX-License-Identifier: Apache-2.0
"""Kill runs at random moments, and check that every run merges and lacks at most its last second.

    make bench-kills

1. SIGKILL ends all ranks of a run (tests/mpi/killing.py) between 0 and 2 s after the work began. Half of the runs
   execute MPI operations without a pause. The others execute one operation, and then stay in a function without events.
   Half of each kind run with a node agent.
2. SIGKILL or SIGTERM ends `quipu refine` after random times. The command is repeated until it succeeds, or fails for
   another reason.

The last line is one JSON object:

- `runs`: number of runs. `merged` (bound: all): number of merged runs.
- `complete` (bound: all): number of runs in which at most the operations in progress and the last second are missing.
- `operations`: number of counted operations. `missing_seconds`: largest missing time of a rank.
- `refinements`: number of refinements. `refined` (bound: all): number of refinements that succeeded. `kills`: number of
  signals.
- `lost` (bound: 0): complete runs that a signal removed or replaced, and raw profiles without a run.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "mpi"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from killed_refine import declare, lost_in, runs_in
from killing import Killed, compile_endless, killed_run
from quipu.agent.installation import native_file
from quipu.mpi_wrap import mpi_library

MOST_KILLS = 200  # largest number of signals for one refinement
LONGEST = 1.5  # longest time until a refinement is killed (seconds); it includes some builds and runs


def refinement(folder: Path, moments: random.Random) -> tuple[bool, int, int]:
    """Return whether a refinement that is killed repeatedly succeeds, the number of kills, and lost runs."""
    file, lost = declare(folder), 0
    kept: dict[str, int] = {}
    command = [str(native_file("quipu")), "refine", str(file)]
    for kills in range(MOST_KILLS):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                said = process.communicate(timeout=moments.uniform(0.2, LONGEST))[1]
            except subprocess.TimeoutExpired:
                process.send_signal(moments.choice((signal.SIGKILL, signal.SIGTERM)))
                said = process.communicate()[1]
        found = runs_in(folder / "cycle") if (folder / "cycle").is_dir() else {}
        lost += sum(found.get(name) != number for name, number in kept.items())
        kept = found
        if process.returncode == 0:
            return True, kills, lost + len(lost_in(folder / "cycle"))
        if process.returncode not in (-signal.SIGKILL, -signal.SIGTERM, 143) and "still runs" not in said:
            print(f"refinement: exit code {process.returncode}: {said}", flush=True)
            return False, kills, lost
    return False, MOST_KILLS, lost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--refinements", type=int, default=10)
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
    refined, kills, lost = 0, 0, 0
    for _ in range(arguments.refinements):
        with tempfile.TemporaryDirectory() as name:
            ended, killed, gone = refinement(Path(name), moments)
        refined, kills, lost = refined + ended, kills + killed, lost + gone
    result = {
        "runs": arguments.runs,
        "merged": merged,
        "complete": sum(all(rank.complete for rank in ranks) for ranks in found),
        "operations": sum(rank.visits for ranks in found for rank in ranks),
        "missing_seconds": round(max((rank.lived - rank.seconds for ranks in found for rank in ranks), default=0.0), 6),
        "refinements": arguments.refinements,
        "refined": refined,
        "kills": kills,
        "lost": lost,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
