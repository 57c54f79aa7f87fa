# SPDX-License-Identifier: Apache-2.0
"""Measure how much longer a compilation takes to start with the wrappers than with their compiler.

    make bench-wrapper_start

The plain mpicc uses the compiler of the wrappers (OMPI_CC, MPICH_CC), so both ways use the same compiler. Wrapper and
compiler run in turn on `--version` and on an empty source file.

The last line is one JSON object with medians in milliseconds: `added_ms` per wrapper (bound: 30), and the details.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from quipu.agent.installation import native_file

ROUNDS = 21
PAIRS = [
    ("quipu-cc", "clang-19", "empty.c"),
    ("quipu-c++", "clang++-19", "empty.cpp"),
    ("quipu-fc", "flang-new-19", "empty.f90"),
    ("quipu-mpicc", "mpicc", "empty.c"),
    ("quipu-mpic++", "mpicxx", "empty.cpp"),
]
ENVIRONMENT = {
    **os.environ,
    **{f"{family}_CC": "clang-19" for family in ("OMPI", "MPICH")},
    **{f"{family}_CXX": "clang++-19" for family in ("OMPI", "MPICH")},
}


def seconds(command: list[str], folder: Path) -> float:
    """Return the wall-clock time of one call."""
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    return time.perf_counter() - started


def main() -> None:
    added: dict[str, float] = {}
    details: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.c").write_text("")
        (folder / "empty.cpp").write_text("")
        (folder / "empty.f90").write_text("subroutine empty\nend subroutine\n")
        for wrapper, compiler, source in PAIRS:
            for kind, arguments in (("version", ["--version"]), ("compile", ["-c", source, "-o", "empty.o"])):
                plain, wrapped = [], []
                for _ in range(ROUNDS):
                    plain.append(seconds([compiler, *arguments], folder))
                    wrapped.append(seconds([str(native_file(wrapper)), *arguments], folder))
                a, b = (1e3 * statistics.median(times) for times in (plain, wrapped))
                details.setdefault(wrapper, {})[f"{kind}_plain_ms"] = round(a, 2)
                details[wrapper][f"{kind}_wrapped_ms"] = round(b, 2)
                if kind == "version":
                    added[wrapper] = round(b - a, 2)
                print(f"{wrapper:14} {kind:8} {compiler:14} {a:7.1f} ms   wrapper {b:7.1f} ms   {b - a:+6.1f} ms")
    print(json.dumps({"added_ms": added, "worst_added_ms": max(added.values()), "details": details}))


if __name__ == "__main__":
    main()
