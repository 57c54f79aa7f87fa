# SPDX-License-Identifier: Apache-2.0
"""Kill all ranks of a measured run at a given moment, and compare the remaining profiles with the work of the ranks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from patience import until
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run

RANKS = 2
OPERATION = "MPI_Allreduce"
MAY_MISS = 1.0  # seconds before the kill that a profile may lack
CALIBRATION = 1e-3  # relative error of times, because seconds per tick are calibrated in the first millisecond
WORDS = 3
PROGRAM = Path(__file__).parent / "programs" / "endless.c"


@dataclass(frozen=True)
class Killed:
    """The work of a rank, and its remaining profile.

    begun, finished: operations of the rank; visits, bytes_sent, seconds: values in the profile.
    lived, at_most: seconds from the start of main to the kill (if the test killed the rank), and to the end of the
    launch.
    """

    begun: int
    finished: int
    visits: int
    bytes_sent: int
    lived: float
    at_most: float
    seconds: float

    @property
    def complete(self) -> bool:
        """Return whether at most the operations in progress at the kill and a second of time are missing."""
        counted = self.finished <= self.visits <= self.begun and 8 * self.finished <= self.bytes_sent <= 8 * self.begun
        exact = CALIBRATION * self.at_most
        return counted and self.lived - MAY_MISS - exact <= self.seconds <= self.at_most + exact


@dataclass
class Moments:
    """The moments of the kill and of the end of the launch (CLOCK_MONOTONIC, ns), and an error, if any."""

    killed: int = 0
    ended: int = 0
    told: list[str] = field(default_factory=list)


def compile_endless(folder: Path) -> Path:
    """Build the program with the wrapper, so that main is a region and all time belongs to a call path."""
    wrapper = shutil.which("quipu-mpicc")
    assert wrapper is not None
    program = folder / "endless"
    subprocess.run([wrapper, "-g", "-O1", str(PROGRAM), "-o", str(program)], check=True)
    return program


def progress_of(folder: Path, rank: int) -> list[int] | None:
    """Return the progress that a rank wrote to its file; None before it works (the file may be empty or zero)."""
    path = folder / f"progress-{rank}"
    words = np.fromfile(path, dtype=np.int64).tolist() if path.exists() else []
    return words if len(words) == WORDS and words[0] else None


def is_at_work(folder: Path, rank: int, operations: int) -> bool:
    """Return whether a rank has finished this number of operations."""
    progress = progress_of(folder, rank)
    return progress is not None and progress[-1] >= operations


def wait_until_at_work(folder: Path, operations: int) -> None:
    """Wait until all ranks of a run have finished this number of operations. Raises AssertionError after a timeout."""
    until(lambda: all(is_at_work(folder, rank, operations) for rank in range(RANKS)), "the ranks are at work", 0.001)


def kill_after(folder: Path, seconds: float, operations: int, moments: Moments) -> None:
    """Send SIGKILL to all ranks some seconds after each has finished this number of operations."""
    try:
        wait_until_at_work(folder, operations)  # their notes were written before
    except AssertionError as error:
        moments.told.append(str(error))
        return
    time.sleep(seconds)
    moments.killed = time.monotonic_ns()
    for note in folder.glob(".raw-*/rank-*.json"):
        os.kill(int(json.loads(note.read_text())["pid"]), signal.SIGKILL)


def killed_run(
    program: Path, library: Path, folder: Path, seconds: float, sit: bool = False, node_agent: bool = False
) -> list[Killed]:
    """Run, kill and merge; return one entry per rank. Raises AssertionError if there was no kill or no archive.

    sit: the ranks are in a function without events at the kill.
    """
    moments = Moments()
    killer = threading.Thread(target=kill_after, args=(folder, seconds, int(sit), moments))
    killer.start()
    try:
        return failed_run(program, library, folder, ["sit"] if sit else [], moments, node_agent=node_agent)
    finally:
        killer.join()


def failed_run(
    program: Path, library: Path, folder: Path, mode: list[str], moments: Moments, **options: Any
) -> list[Killed]:
    """Run the program in this mode, which fails; return the merged archive. options: those of `LaunchOptions`."""
    command = ["mpirun", "-n", str(RANKS), str(program), str(folder), *mode]
    try:
        run(command, {"p": RANKS}, None, folder, LaunchOptions(mpi_preload=library, say=lambda text: None, **options))
    except RunFailed as failure:
        moments.ended = time.monotonic_ns()
        assert failure.archive is not None, failure
        archive = read_archive(failure.archive.path)
    else:
        raise AssertionError(f"the run ended by itself; {moments.told}")
    assert not archive.metadata.complete
    assert not list(folder.glob(".raw-*"))
    return [_of_rank(archive, folder, rank, moments) for rank in range(RANKS)]


def _of_rank(archive: RunArchive, folder: Path, rank: int, moments: Moments) -> Killed:
    values = archive.values
    assert values is not None
    progress = progress_of(folder, rank)
    assert progress is not None, moments.told
    start, begun, finished = progress
    of_rank = values.rank == rank
    rows = of_rank & np.array([archive.tree.name(path) == OPERATION for path in values.callpath], dtype=bool)
    visits, sent = (int(values.metrics[name][rows].sum()) for name in ("visits", "bytes_sent"))
    lived, at_most = (moments.killed - start) * 1e-9, (moments.ended - start) * 1e-9
    counted = float(values.metrics["time"][of_rank].sum())
    return Killed(begun, finished, visits, sent, lived, at_most, counted)
