# SPDX-License-Identifier: Apache-2.0
"""Test programs with failing calls and with handlers that do not return: do they end as without Quipu?

    make bench-faults
    make bench-faults ARGS='--most 3 --alarms 1000'

The benchmark makes the n-th call of each function fail that the runtime, quipu-exec and the MPI library call
(tests/native/programs/faults.c), for every n that the examples reach. Then a timer interrupts the program at random
moments, mostly while call paths are created. The handlers of the timer return, leave by siglongjmp, fork, or end the
process. Messages between ranks and collective operations are not disturbed, because otherwise no program would end.

The last line is one JSON object:

- `injected`: number of faults and alarms.
- `different_output`, `hangs`, `crashes` (bound: 0): number of these consequences.
- `unsaid` (bound: 0): number of faults after which numbers differ from a run without the fault, without a message.
- `left_out`: examples that do not work on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "native"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from injection import Example, build_faults, ending_of, injected
from launching import LAUNCH
from quipu.agent.installation import native_file
from quipu.mpi_wrap import mpi_library

TESTS = Path(__file__).parents[1] / "tests"
PROGRAMS = TESTS / "native" / "programs"
KEYS = {"different output": "different_output", "hang": "hangs", "crash": "crashes", "unsaid": "unsaid"}


def built(source: Path, folder: Path, wrapper: str, *options: str) -> Path:
    """Compile an example with one of the compiler wrappers."""
    program = folder / source.stem
    run([native_file(wrapper), "-O1", *options, source, "-pthread", "-o", program], check=True)
    return program


def examples(folder: Path) -> Iterator[tuple[str, Example]]:
    """Yield examples for failing calls, with names."""
    paths = str(built(PROGRAMS / "folded.cpp", folder, "quipu-c++"))
    yield "call paths", Example([paths, "9"])
    yield "forks", Example([str(built(PROGRAMS / "forks.c", folder, "quipu-cc")), "50"])
    yield "threads", Example([str(built(PROGRAMS / "threads.cpp", folder, "quipu-c++")), "4"])
    sampled = {"QUIPU_SAMPLE": "1000", "QUIPU_SAMPLE_FUNCTIONS": "1"}
    yield "samples", Example([str(folder / "threads"), "4"], {**sampled, "QUIPU_COUNTERS": "page_faults=1:2"})
    yield "PAPI", Example([str(folder / "threads"), "4"], {**sampled, "QUIPU_COUNTERS": "faults=@perf::PAGE-FAULTS"})
    shim = {"OMPI_COMM_WORLD_LOCAL_RANK": "1"}
    yield "quipu-exec", Example([str(native_file("quipu-exec")), paths, "2"], shim)
    program = built(TESTS / "mpi" / "programs" / "reduction.c", folder, "quipu-mpicc")
    for rank in (0, 1):
        measured = f"env LD_PRELOAD={mpi_library()}"
        others = f"if [ $OMPI_COMM_WORLD_RANK != {rank} ]; then exec {measured} {program} plain; fi"
        script = f"{others}; exec FAULTS {program} plain"
        settings = {**LAUNCH, "LD_PRELOAD": str(mpi_library()), "QUIPU_MPI_REDUCE": "1", "QUIPU_MPI_WAIT": "sample"}
        yield f"MPI, rank {rank}", Example(["mpirun", "-n", "2", "bash", "-c", script], settings)


def alarmed(folder: Path, library: Path, alarms: int) -> Iterator[tuple[int, str]]:
    """Yield the number of alarms and the result of the program."""
    program = str(built(PROGRAMS / "left_by_handlers.c", folder, "quipu-cc", "--quipu-all"))
    for way, rounds in (("return", alarms), ("jump", alarms), ("overflow", alarms // 20), ("fork", alarms // 100)):
        found = ending_of(Example([program, way, str(rounds)]), library, {})
        expected = found is not None and found.returncode == 0 and found.stdout == "1\n" and not found.said
        yield rounds, "as before" if expected else "hang" if found is None else "crash"
    for number in range(alarms // 10):  # one alarm each
        found = ending_of(Example([program, "exit", "1", str(20 + number * 37 % 5000)]), library, {})
        yield 1, "hang" if found is None else "as before" if found.returncode == 0 else "crash"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--most", type=int, default=1 << 30, help="calls of one function that fail in an example")
    parser.add_argument("--most-mpi", type=int, default=4, help="the same where ranks are started")
    parser.add_argument("--alarms", type=int, default=10_000)
    arguments = parser.parse_args()
    os.environ.pop("QUIPU_DIR", None)
    total, consequences = 0, Counter[str]()
    left_out: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build_faults(folder)
        for title, example in examples(folder):
            most = arguments.most_mpi if title.startswith("MPI") else arguments.most
            found: Counter[str] = Counter()
            usual = ending_of(example, library, {})
            if usual is None or usual.said:  # for example, if PAPI lacks an event on this machine
                print(f"{title:14} left out: it does not work here, without a fault either", flush=True)
                left_out.append(title)
                continue
            for function, number, verdict in injected(example, library, most):
                found[verdict] += 1
                if verdict != "as before":
                    print(f"  {title}: call {number} of {function}: {verdict}", flush=True)
            print(f"{title:14} {found.total():5} faults: {found['as before']} without a consequence", flush=True)
            total += found.total()
            consequences += found
        for alarms, ending in alarmed(folder, library, arguments.alarms):
            total += alarms
            consequences[ending] += 1
        print(f"{'handlers':14} {arguments.alarms:5} alarms and more", flush=True)
    found_of = {key: consequences[text] for text, key in KEYS.items()}
    print(json.dumps({"injected": total, "left_out": left_out, **found_of}))


if __name__ == "__main__":
    main()
