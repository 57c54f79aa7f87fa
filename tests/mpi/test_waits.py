# SPDX-License-Identifier: Apache-2.0
"""The metric wait_time: who came late, seen from the rank that waited."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import quipu.mpi_wrap
from measured import Run, launch

LATE = 0.25  # as in waits.c
# The operations of waits.c by the function that rank 0 waits in.
OPERATIONS = {"MPI_Recv": (0, 1), "MPI_Send": (2,), "MPI_Wait": (3,), "MPI_Allreduce": (4,), "MPI_Bcast": (5,)}
RESOLUTION = 2e-3  # seconds that clocks calibrated over a run this short may be apart
RUNS = 8  # at most; a rank may lose its processor between the begin of a function and the begin of the waiting in it


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


def least_wait(run: Run, name: str) -> float:
    """Return how long rank 0 waited in a function at least, whenever the machine let the ranks run.

    What of its time in the function is after rank 1 began need not be waiting; all before is.
    """
    stamps = np.fromfile(run.folder / "stamps").reshape(-1, 2, 2)
    assert (stamps[:, 1, 0] - stamps[:, 0, 0] >= LATE).all()
    later = sum(stamps[number, 0, 1] - stamps[number, 1, 0] for number in OPERATIONS[name])
    return float(seconds(run, 0, "time")[name] - later - RESOLUTION)


@pytest.mark.parametrize("mode", ["sample", "all"])
def test_the_rank_that_comes_first_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path, mode: str
) -> None:
    missing = dict.fromkeys(OPERATIONS, LATE)
    for number in range(RUNS):
        (tmp_path / str(number)).mkdir()
        run = waits(program("waits"), tmp_path / str(number), library, mode)
        early = seconds(run, 0, "wait_time")
        for name in OPERATIONS:
            assert early[name] >= least_wait(run, name) - LATE / 2, (name, early)
            missing[name] = min(missing[name], least_wait(run, name) - early[name])
        for rank in (0, 1):
            wait, time = seconds(run, rank, "wait_time"), seconds(run, rank, "time")
            assert all(wait[name] <= time[name] for name in wait), (rank, wait, time)
            assert run.profiles[rank].attributes["mpi_wait"] == mode
            assert int(run.profiles[rank].attributes["mpi_wait_probes"]) >= 2
            assert float(run.profiles[rank].attributes["mpi_wait_probe_seconds"]) > 0
        if max(missing.values()) <= 0:
            break
    assert max(missing.values()) <= 0, missing


def test_without_probes_only_point_to_point_waits(
    program: Callable[[str], Path], library: Path, tmp_path: Path
) -> None:
    run = waits(program("waits"), tmp_path, library, "local")
    early = seconds(run, 0, "wait_time")
    assert early["MPI_Recv"] >= least_wait(run, "MPI_Recv") - LATE / 2
    assert early["MPI_Allreduce"] == early["MPI_Bcast"] == 0


def test_waits_can_be_left_out(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    run = waits(program("waits"), tmp_path, library, "off")
    assert all(np.all(run.profiles[rank].values["wait_time"] == 0) for rank in (0, 1))


def test_an_unknown_mode_is_an_error(program: Callable[[str], Path], library: Path, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, subprocess.SubprocessError), match="QUIPU_MPI_WAIT=often: it must be off"):
        waits(program("waits"), tmp_path, library, "often")


def test_a_transfer_that_was_interrupted_teaches_nothing(tmp_path: Path) -> None:
    program, native = tmp_path / "rates", Path(quipu.mpi_wrap.__file__).with_name("native")
    source = Path(__file__).parent / "programs" / "transfer_rates.c"
    compiler: list[str | Path] = ["clang-19", f"-I{native}", source, native / "transfer_rate.c", "-o", program]
    subprocess.run(compiler, check=True)
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.parametrize("mode", ["all", "sample", "local"])
def test_operations_that_are_left_by_longjmp(
    program: Callable[[str], Path], library: Path, tmp_path: Path, mode: str
) -> None:
    """An error handler leaves a call by longjmp: the next call uses its probe, and call paths stay correct."""
    run = waits(program("left_by_longjmp"), tmp_path, library, mode)
    for profile in run.profiles.values():
        names = {
            profile.regions[int(region)].name: profile.regions.get(int(profile.region[int(parent)]))
            for region, parent in zip(profile.region, profile.parent, strict=True)
            if int(region) in profile.regions
        }
        assert {"MPI_Allreduce", "MPI_Bcast", "MPI_Barrier", "MPI_Finalize"} <= set(names)
        assert not any(names.values()), names


@pytest.mark.parametrize("mode", ["all", "sample"])
def test_operations_that_are_refused_on_some_ranks(
    program: Callable[[str], Path], library: Path, tmp_path: Path, mode: str
) -> None:
    """A rank repeats a call until its arguments are valid; the probe communicates only once."""
    assert len(waits(program("refused_collectives"), tmp_path, library, mode).profiles) == 2
