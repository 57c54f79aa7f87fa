"""Kill all ranks of a measured run at a moment of choice and look at what is left of it."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from quipu.agent.archive import read_archive
from quipu.agent.launch import LaunchOptions, RunFailed, run

RANKS = 2
PATIENCE = 30.0  # seconds until the ranks must be at work
PAUSE = 0.001
OPERATION = "MPI_Allreduce"


@dataclass(frozen=True)
class Killed:
    """Operations begun, finished and counted by a rank, and how many calls it counted bytes for."""

    begun: int
    finished: int
    visits: int
    bytes_sent: int

    @property
    def complete(self) -> bool:
        """Nothing is missing but what was on its way when the signal came."""
        return self.finished <= self.visits <= self.begun and 8 * self.finished <= self.bytes_sent <= 8 * self.begun


def at_work(progress: Path) -> bool:
    """Both counters of a rank are there: the file has its full length, not only its name."""
    return progress.exists() and progress.stat().st_size == 2 * np.dtype(np.int64).itemsize


def kill_after(folder: Path, seconds: float, told: list[str]) -> None:
    """SIGKILL for all ranks of the run whose raw folder appears, so long after the last has begun its work."""
    end = time.monotonic() + PATIENCE
    pause = threading.Event()
    while time.monotonic() < end:
        notes = sorted(folder.glob(".raw-*/rank-*.json"))
        if len(notes) == RANKS and all(at_work(folder / f"progress-{rank}") for rank in range(RANKS)):
            pause.wait(seconds)
            for note in notes:
                os.kill(int(json.loads(note.read_text())["pid"]), signal.SIGKILL)
            return
        pause.wait(PAUSE)
    told.append(f"the ranks did not begin within {PATIENCE} s")


def killed_run(program: Path, library: Path, folder: Path, seconds: float) -> list[Killed]:
    """Run, kill, merge; one entry per rank. Raises AssertionError if the run was not killed or left no archive."""
    told: list[str] = []
    killer = threading.Thread(target=kill_after, args=(folder, seconds, told))
    killer.start()
    options = LaunchOptions(mpi_preload=library, node_agent=False, say=lambda text: None)
    try:
        run(["mpirun", "-n", str(RANKS), str(program), str(folder)], {"p": RANKS}, None, folder, options)
    except RunFailed as failure:
        assert failure.archive is not None, failure
        archive = read_archive(failure.archive.path)
    else:
        raise AssertionError(f"the run ended by itself; {told}")
    finally:
        killer.join()
    assert not archive.metadata.complete
    values = archive.values
    assert values is not None
    names = [archive.tree.name(path) for path in range(len(archive.tree))]
    found = []
    for rank in range(RANKS):
        begun, finished = np.fromfile(folder / f"progress-{rank}", dtype=np.int64)
        rows = [i for i, path in enumerate(values.callpath) if names[path] == OPERATION and values.rank[i] == rank]
        visits, sent = (int(sum(values.metrics[name][rows])) for name in ("visits", "bytes_sent"))
        found.append(Killed(int(begun), int(finished), visits, sent))
    return found
