"""The metric wait_time: who came late, seen from the rank that waited."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from measured import Run, launch

LATE = 0.05


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


@pytest.mark.parametrize("mode", ["sample", "all"])
def test_the_rank_that_comes_first_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path, mode: str
) -> None:
    run = waits(program("waits"), tmp_path, library, mode)
    early, late = (seconds(run, rank, "wait_time") for rank in (0, 1))
    time, late_time = (seconds(run, rank, "time") for rank in (0, 1))
    for name, times in {"MPI_Recv": 2, "MPI_Send": 1, "MPI_Wait": 1, "MPI_Allreduce": 1, "MPI_Bcast": 1}.items():
        assert 0.8 * times * LATE < early[name] <= time[name], (name, early, time)
        assert late[name] <= late_time[name], (name, late)  # it waits where it does not get a processor
    for rank in (0, 1):
        assert run.profiles[rank].attributes["mpi_wait"] == mode
        assert int(run.profiles[rank].attributes["mpi_wait_probes"]) >= 2
        assert 0 < float(run.profiles[rank].attributes["mpi_wait_probe_seconds"]) < 5


def test_without_probes_only_point_to_point_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path
) -> None:
    run = waits(program("waits"), tmp_path, library, "local")
    early = seconds(run, 0, "wait_time")
    assert early["MPI_Recv"] > 1.6 * LATE
    assert early["MPI_Allreduce"] == early["MPI_Bcast"] == 0


def test_waits_can_be_left_out(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    run = waits(program("waits"), tmp_path, library, "off")
    assert all(np.all(run.profiles[rank].values["wait_time"] == 0) for rank in (0, 1))


def test_an_unknown_mode_is_an_error(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, subprocess.SubprocessError), match="QUIPU_MPI_WAIT=often: it must be off"):
        waits(program("waits"), tmp_path, library, "often")
