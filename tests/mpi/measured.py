# SPDX-License-Identifier: Apache-2.0
"""Build and run test programs under the PMPI library, and read their profiles and the expected counts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from launching import YIELDING
from patience import PATIENCE
from peers import require
from quipu.agent.installation import native_folders
from quipu.agent.merge.communication import communication_of
from quipu.agent.merge.ranks import RankedProcess
from quipu.agent.profile.reader import ProcessProfile, read_profile
from quipu.mpi_wrap.table import load_table, operations_of

PROGRAMS = Path(__file__).parent / "programs"
METRICS = ("bytes_sent", "bytes_received", "messages_sent", "messages_received", "comm_size")
Counts = tuple[int, int, int, int, int]
MPICH = ".mpich"  # end of the names of MPICH's tools; the tools of the default MPI have none
LARGE = "_c"  # end of the names of large-count functions
LAUNCH = YIELDING


@dataclass(frozen=True)
class Run:
    """One finished run: its folder has the profiles and, per rank, the counts that the program expects."""

    folder: Path
    ranks: int

    @cached_property
    def profiles(self) -> dict[int, ProcessProfile]:
        """Return the profile of each rank."""
        profiles = [read_profile(path) for path in sorted(self.folder.glob("*.quipu"))]
        assert all(not profile.problems for profile in profiles)
        return {int(profile.attributes["rank"]): profile for profile in profiles}

    def expected(self, rank: int) -> dict[str, Counts]:
        """Return the counts per function that the program itself computed."""
        rows = [line.split("\t") for line in (self.folder / f"expected-{rank}.tsv").read_text().splitlines()]
        return {row[0]: _counts(row[1:]) for row in rows}

    def counted(self, rank: int) -> dict[str, Counts]:
        """Return the counts per function in the profile, over all call paths and threads, also of large-count forms."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0] * len(METRICS))
        for path, counts in self.call_paths(rank):
            row = sums[path[-1].removesuffix(LARGE)]
            for i, value in enumerate(counts[:-1]):
                row[i] += value
            row[-1] = max(row[-1], counts[-1])
        return {name: _counts(row) for name, row in sums.items()}

    def call_paths(self, rank: int) -> list[tuple[tuple[str, ...], Counts]]:
        """Return the counts per call path (names of regions, outermost first)."""
        profile = self.profiles[rank]
        paths: list[tuple[str, ...]] = []
        found = []
        for node, region in enumerate(profile.region):
            parent = int(profile.parent[node])
            above = paths[parent] if parent >= 0 else ()
            name = profile.regions.get(int(region))
            paths.append(above if name is None else (*above, name.name))
            if name is not None:
                found.append((paths[-1], _counts([profile.values[metric][node] for metric in METRICS])))
        return found


def _counts(values: Sequence[object]) -> Counts:
    sent, received, messages_sent, messages_received, processes = (int(str(value)) for value in values)
    return sent, received, messages_sent, messages_received, processes


def compile_program(name: str, folder: Path, flags: Sequence[str] = (), mpi: str = "") -> Path:
    """Build tests/mpi/programs/<name>.c with the plain mpicc. Skip the test without the MPI."""
    if mpi == MPICH:
        require("MPICH")
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    command = [f"mpicc{mpi}", "-g", "-O1", "-Wall", str(source), "-pthread", "-o", str(program), *flags]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return program


def preloaded(library: Path | str) -> str:
    """Return LD_PRELOAD with a library, after that of a sanitizer (docs/design/sanitizers.md)."""
    return ":".join([*map(str, native_folders()[0].glob("sanitizer.so")), str(library)])


def launch(command: Sequence[str], ranks: int, folder: Path, environment: dict[str, str], mpi: str = "") -> Run:
    """Run a command with these variables (for the ranks, not for mpirun) and the folder as its last argument."""
    mpirun = shutil.which(f"mpirun{mpi}")
    assert mpirun is not None
    preload = preloaded(environment.get("LD_PRELOAD", ""))
    variables = [f"{name}={value}" for name, value in {**environment, "LD_PRELOAD": preload}.items()]
    result = subprocess.run(
        [mpirun, "-n", str(ranks), "env", *variables, *command, str(folder)],
        env={**os.environ, **LAUNCH},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return Run(folder, ranks)


def run_preloaded(command: Sequence[str], ranks: int, folder: Path, library: Path, mpi: str = "") -> Run:
    """Run a command under the PMPI library, measured."""
    return launch(command, ranks, folder, {"LD_PRELOAD": str(library), "QUIPU_DIR": str(folder)}, mpi)


def check_accounting(run: Run) -> None:
    """Check that the counts of every rank are those that the program expects, and 0 for all other functions."""
    assert sorted(run.profiles) == list(range(run.ranks))
    for rank in range(run.ranks):
        expected, counted = run.expected(rank), run.counted(rank)
        wrong = {name: (counted.get(name), own) for name, own in expected.items() if counted.get(name) != own}
        assert not wrong, f"rank {rank}, counted and expected: {wrong}"
        assert all(counts[:4] == (0, 0, 0, 0) for name, counts in counted.items() if name not in expected)
    check_matrix(run)


def check_matrix(run: Run) -> None:
    """Check that the communication matrix has the sums of messages and one-sided operations over call paths."""
    operations = operations_of(load_table())
    sums = [0, 0]
    for rank in range(run.ranks):
        for name, (sent, received, messages_sent, messages_received, _) in run.counted(rank).items():
            operation = operations.get(name)
            if operation is None:
                continue
            if operation.persistent and operation.to is None and operation.sent is not None:
                return  # a collective operation that MPI_Start starts, too
            if operation.to is not None or operation.completes in ("start", "startall"):
                fetches = operation.kind == "one-sided"
                sums[0] += sent + received * fetches
                sums[1] += messages_sent + messages_received * fetches
    matrix, problems = communication_of(RankedProcess(rank, "", profile) for rank, profile in run.profiles.items())
    assert not problems
    assert ([0, 0] if matrix is None else [matrix.bytes.sum(), matrix.messages.sum()]) == sums
