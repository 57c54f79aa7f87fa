# SPDX-License-Identifier: Apache-2.0
"""Measure the processor time that `quipu run` adds to a program, and the additional time of the first run.

    make bench-first_run

Programs that do nothing run alternately without and with `quipu run`: one rank under mpirun, and one process without
MPI. The processor time is the user and system time of all processes, including the node agent. Before the first run,
`quipu doctor --prepare` runs once with an empty cache, as `make build` does.

The last line is one JSON object:

- `fixed_cpu_s` (bound: 0.35): processor seconds that `quipu run` adds; median, the larger of both programs.
- `first_run_extra_s` (bound: 1): processor seconds of the first run with the default MPI, minus the median of later
  runs.
- the times of Python and of its imports.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from quipu.agent.installation import native_file

ROUNDS = 11
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
MPI_PROGRAM = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n"
PROGRAM = "int main(void) { return 0; }\n"
IMPORTS = {"python": "pass", "libraries": "import numpy, pyarrow.parquet, typer, rich.console, msgspec"}


def cpu_seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Return the processor time of a command and of all its descendants, after they have ended."""
    before = _children()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"first_run: {' '.join(command)} ended with exit code {done.returncode}: {done.stderr}")
    try:
        while True:
            os.waitpid(-1, 0)  # waits for the node agent, which became a child of this process when the shim ended
    except ChildProcessError:
        return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def build(folder: Path, environment: dict[str, str]) -> None:
    """Build the two programs."""
    for name, text, compiler in (("mpi", MPI_PROGRAM, "quipu-mpicc"), ("plain", PROGRAM, "quipu-cc")):
        (folder / f"{name}.c").write_text(text)
        command = [str(native_file(compiler)), "-O1", f"{name}.c", "-o", name]
        subprocess.run(command, cwd=folder, env=environment, check=True)


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    quipu = shutil.which("quipu") or sys.exit("first_run: quipu is not in PATH")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # As for a user, Python stores bytecode. The variables allow root to start Open MPI.
        environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"XDG_CACHE_HOME": str(folder / "cache")}
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        build(folder, environment)
        prepare = cpu_seconds([quipu, "doctor", "--prepare"], folder, environment)
        programs = {"mpi": ["mpirun", "-n", "1", "./mpi"], "plain": ["./plain"]}
        measured = {kind: [quipu, "run", "-o", f"{kind}.runs", "--", *command] for kind, command in programs.items()}
        first = cpu_seconds(measured["mpi"], folder, environment)
        times: dict[str, list[float]] = {}
        for _ in range(ROUNDS):
            for kind, command in programs.items():
                times.setdefault(kind, []).append(cpu_seconds(command, folder, environment))
                times.setdefault(f"{kind}_measured", []).append(cpu_seconds(measured[kind], folder, environment))
            for kind, source in IMPORTS.items():
                command = [sys.executable, "-c", source]
                times.setdefault(kind, []).append(cpu_seconds(command, folder, environment))
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    for kind, seconds in medians.items():
        print(f"{kind:16} {seconds:6.3f} s of processor time, {min(times[kind]):6.3f} at least")
    added = {kind: round(medians[f"{kind}_measured"] - medians[kind], 3) for kind in programs}
    result = {
        "fixed_cpu_s": max(added.values()),
        "first_run_extra_s": round(first - medians["mpi_measured"], 3),
        "prepare_cpu_s": round(prepare, 2),
        "added_s": added,
        "imports_s": {kind: round(medians[kind], 3) for kind in IMPORTS},
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
