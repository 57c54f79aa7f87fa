"""What the MPI wrappers add to small operations, on two ranks.

    make bench-mpi_overhead

The same plain program runs without and with measuring in turn (mpi_overhead.c). The last line is one JSON object:
`sendrecv_added_ns`, nanoseconds added per call (bound: 60), from a pair of MPI_Send and MPI_Recv within one process,
where no waiting hides a cost; `allreduce_ratio`, time of an 8-byte MPI_Allreduce with and without (bound: 1.05);
medians over the rounds of the difference and the ratio of neighbouring runs; and the details.
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

from quipu.mpi_wrap import mpi_library

RANKS = 2
LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}
KINDS = ("pair", "pingpong", "allreduce")


def measure(program: Path, variables: dict[str, str]) -> dict[str, float]:
    """Nanoseconds per operation of one run; the variables are for the ranks."""
    words = [f"{name}={value}" for name, value in variables.items()]
    command = ["mpirun", "-n", str(RANKS), "env", *words, str(program)]
    result = subprocess.run(command, env={**os.environ, **LAUNCH}, check=True, capture_output=True, text=True)
    times: dict[str, float] = json.loads(result.stdout)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="pairs of runs, without and with")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for the measured runs")
    arguments = parser.parse_args()
    library = mpi_library()
    plain: list[dict[str, float]] = []
    wrapped: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "mpi_overhead"
        subprocess.run(["mpicc", "-O2", str(Path(__file__).with_suffix(".c")), "-o", str(program)], check=True)
        for _ in range(arguments.rounds):
            raw = folder / "raw"
            raw.mkdir()
            plain.append(measure(program, {}))
            chosen = dict(word.split("=", 1) for word in arguments.set)
            wrapped.append(measure(program, {"LD_PRELOAD": str(library), "QUIPU_DIR": str(raw), **chosen}))
            shutil.rmtree(raw)
    details: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        both = [(a[kind], b[kind]) for a, b in zip(plain, wrapped, strict=True)]
        details[kind] = {
            "plain_ns": round(statistics.median(a for a, _ in both), 1),
            "wrapped_ns": round(statistics.median(b for _, b in both), 1),
            "added_ns": round(statistics.median(b - a for a, b in both), 1),
            "ratio": round(statistics.median(b / a for a, b in both), 4),
        }
        row = details[kind]
        print(f"{kind:10} plain {row['plain_ns']:8.1f} ns   with {row['wrapped_ns']:8.1f} ns   {row['added_ns']:+7.1f}")
    added = round(details["pair"]["added_ns"] / 2, 1)
    print(
        json.dumps(
            {
                "sendrecv_added_ns": added,
                "allreduce_ratio": details["allreduce"]["ratio"],
                "pingpong_added_ns": round(details["pingpong"]["added_ns"] / 2, 1),
                "rounds": arguments.rounds,
                "details": details,
            }
        )
    )


if __name__ == "__main__":
    main()
