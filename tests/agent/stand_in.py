# SPDX-License-Identifier: Apache-2.0
"""Replace quipu-exec in tests: write the files of shim and runtime, including a profile, and run the program.

Environment: STAND_IN_RANK, STAND_IN_RANKS; STAND_IN_PROFILE=no: write no profile, =running: a truncated profile,
=unfinished: a profile without the end of MPI.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from profile_writer import rank_profile


def main() -> int:
    """Run the program as one rank."""
    raw = Path(os.environ["QUIPU_DIR"])
    rank, ranks = int(os.environ.get("STAND_IN_RANK", "0")), int(os.environ.get("STAND_IN_RANKS", "1"))
    note = {"rank": rank, "ranks": ranks, "pid": os.getpid(), "host": "n1", "affinity": [0], "program": sys.argv[1]}
    (raw / f"rank-{rank}.json").write_text(json.dumps(note))
    kind = os.environ.get("STAND_IN_PROFILE", "")
    if kind != "no":
        changes: dict[str, Any] = {"state": 0} if kind == "running" else {}
        if kind == "unfinished":
            changes["attributes"] = {"rank": str(rank), "ranks": str(ranks), "mpi_library": "Open MPI"}
        rank_profile(rank, ranks, pid=os.getpid(), **changes).write(raw)
    return subprocess.run(sys.argv[1:], check=False).returncode


if __name__ == "__main__":
    code = main()
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)
