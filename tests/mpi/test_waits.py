"""The metric wait_time: who came late, seen from the rank that waited."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from measured import Run, launch

LATE = 0.25  # as in waits.c: long compared with what a busy machine keeps a process from running
ATTEMPTS = 4


def seconds(run: Run, rank: int, metric: str) -> dict[str, float]:
    """Value of a time metric per function."""
    profile = run.profiles[rank]
    found: dict[str, float] = defaultdict(float)
    for node, region in enumerate(profile.region):
        if int(region) in profile.regions:
            found[profile.regions[int(region)].name] += float(profile.values[metric][node])
    return found


def waits(program: Path, folder: Path, library: Path, mode: str) -> Run:
    variables = {"LD_PRELOAD": str(library), "QUIPU_DIR": str(folder), "QUIPU_MPI_WAIT": mode}
    return launch([str(program)], 2, folder, variables)


def undisturbed(program: Path, folder: Path, library: Path, mode: str, check: Callable[[Run], None]) -> Run:
    """Return the first run that passes: ranks wait for each other, too, when the machine stops one of them."""
    for attempt in range(ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        run = waits(program, place, library, mode)
        try:
            check(run)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            break
    return run


@pytest.mark.parametrize("mode", ["sample", "all"])
def test_the_rank_that_comes_first_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path, mode: str
) -> None:
    def check(run: Run) -> None:
        early, late = (seconds(run, rank, "wait_time") for rank in (0, 1))
        time = seconds(run, 0, "time")
        for name, times in {"MPI_Recv": 2, "MPI_Send": 1, "MPI_Wait": 1, "MPI_Allreduce": 1, "MPI_Bcast": 1}.items():
            assert 0.8 * times * LATE < early[name], (name, early)
            # The long message of the late rank goes in pieces: on a busy machine it waits for the receiver at each.
            assert name == "MPI_Send" or late[name] < 0.5 * LATE, (name, late)
        assert early["MPI_Bcast"] > 0.8 * time["MPI_Bcast"]

    run = undisturbed(program("waits"), tmp_path, library, mode, check)
    for rank in (0, 1):
        wait, time = seconds(run, rank, "wait_time"), seconds(run, rank, "time")
        assert all(wait[name] <= time[name] for name in wait), (rank, wait, time)
    for rank in (0, 1):
        assert run.profiles[rank].attributes["mpi_wait"] == mode
        assert int(run.profiles[rank].attributes["mpi_wait_probes"]) >= 2
        assert 0 < float(run.profiles[rank].attributes["mpi_wait_probe_seconds"]) < 5


def test_without_probes_only_point_to_point_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path
) -> None:
    def check(run: Run) -> None:
        assert seconds(run, 0, "wait_time")["MPI_Recv"] > 1.6 * LATE

    run = undisturbed(program("waits"), tmp_path, library, "local", check)
    early = seconds(run, 0, "wait_time")
    assert early["MPI_Allreduce"] == early["MPI_Bcast"] == 0


def test_waits_can_be_left_out(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    run = waits(program("waits"), tmp_path, library, "off")
    assert all(np.all(run.profiles[rank].values["wait_time"] == 0) for rank in (0, 1))


def test_an_unknown_mode_is_an_error(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, subprocess.SubprocessError), match="QUIPU_MPI_WAIT=often: it must be off"):
        waits(program("waits"), tmp_path, library, "often")
