# SPDX-License-Identifier: Apache-2.0
"""Which job the processes of a command belong to: launchers behind other words, and variables of other launchers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from measured import LAUNCH, MPICH
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run
from quipu.agent.installation import native_file

IN_A_JOB = """#include <mpi.h>
static volatile long sink;
__attribute__((noinline)) void share(int rank) {
    for (int i = 0; i <= rank; i++)
        sink += i;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 3; i++)
        share(rank);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""
ALONE = """static volatile long sink;
__attribute__((noinline)) void share(void) { sink++; }
int main(void) {
    for (int i = 0; i < 3; i++)
        share();
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs job (Open MPI), job.mpich and alone."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "job.c").write_text(IN_A_JOB)
    (folder / "alone.c").write_text(ALONE)
    for wrapper, source, name, mpi in (
        ("quipu-mpicc", "job.c", "job", "mpicc"),
        ("quipu-mpicc", "job.c", "job.mpich", "mpicc.mpich"),
        ("quipu-cc", "alone.c", "alone", "mpicc"),
    ):
        command = [str(native_file(wrapper)), "-O1", "--quipu-all", source, "-o", name]
        subprocess.run(command, cwd=folder, env={**os.environ, "QUIPU_MPICC": mpi}, check=True)
    return folder


def measured(
    folder: Path, runs: Path, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> RunArchive:
    environment = {**LAUNCH, **(variables or {})}
    return run(command, {}, None, runs, LaunchOptions(environment=environment, folder=folder, say=lambda text: None))


def visits(archive: RunArchive, region: str) -> list[int]:
    """Return the visits of a region in each rank that has it, in order of rank."""
    assert archive.values is not None
    own = [path for path in range(len(archive.tree)) if archive.tree.region_of(path).display == region]
    rows = np.isin(archive.values.callpath, own)
    ranks, place = np.unique(archive.values.rank[rows], return_inverse=True)
    sums = np.bincount(place, weights=archive.values.metrics["visits"][rows], minlength=ranks.size)
    return [int(value) for value in sums]


BEHIND = {
    "env": ("env", "X=1"),
    "env without variables": (
        *("env", "-i", f"PATH={os.environ['PATH']}", "HOME=/tmp"),  # Open MPI 5 does not start without a home
        *(f"{name}={value}" for name, value in LAUNCH.items()),
    ),
    "timeout": ("timeout", "-k", "5", "100"),
    "nice": ("nice", "-n", "1"),
    "nohup": ("nohup",),
    "taskset": ("taskset", "-c", "0-1"),
    "two": ("timeout", "100", "env", "X=1", "nice"),
}


@pytest.mark.parametrize("words", BEHIND.values(), ids=BEHIND)
def test_a_launcher_behind_other_words(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    if shutil.which(words[0]) is None:
        words = ("env",)
    archive = measured(folder, tmp_path, [*words, "mpirun", "-n", "2", "./job"])
    assert (archive.metadata.complete, archive.metadata.ranks) == (True, 2)
    assert archive.metadata.launcher["family"] == "openmpi"
    assert visits(archive, "share") == [3, 3]
    assert visits(archive, "MPI_Barrier") == [1, 1]


@pytest.mark.parametrize("mpi", ["", MPICH], ids=["Open MPI", "MPICH"])
def test_a_launcher_that_a_script_calls(folder: Path, tmp_path: Path, mpi: str) -> None:
    """The processes of the job are ranks; the shell is not."""
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\ncd {folder}\nmpirun{mpi} -n 2 ./job{mpi}\n")
    for number, command in enumerate((["bash", str(script)], ["sh", "-c", f"sh {script}; exit"])):
        archive = measured(folder, tmp_path / str(number), command)
        assert (archive.metadata.complete, archive.metadata.ranks, archive.metadata.problems) == (True, 2, ())
        assert archive.metadata.launcher["ranks"] == 2
        assert (visits(archive, "share"), visits(archive, "MPI_Barrier")) == ([3, 3], [1, 1])
        assert [[rank["rank"] for rank in node["ranks"]] for node in archive.metadata.nodes] == [[0, 1]]


def test_jobs_of_one_script_are_added_up_and_told(folder: Path, tmp_path: Path) -> None:
    archive = measured(folder, tmp_path, ["sh", "-c", "mpirun -n 2 ./job && mpirun --version && mpirun -n 1 ./job"])
    assert archive.metadata.complete
    assert archive.metadata.problems == (
        "the command launched 2 jobs: the values of ranks with the same number are added",
    )
    assert visits(archive, "share") == [6, 3]


def test_a_launcher_that_nobody_sees_makes_the_run_partial(folder: Path, tmp_path: Path) -> None:
    """The ranks are distinguished, and the run lists what is missing."""
    mpirun = shutil.which("mpirun")
    with pytest.raises(RunFailed, match=r"mpirun, which Quipu did not start, .*MPI was not counted") as failure:
        measured(folder, tmp_path, ["sh", "-c", f"{mpirun} -n 2 ./job"])
    archive = failure.value.archive
    assert archive is not None and archive.metadata.partial
    assert visits(archive, "share") == [3, 3]


def test_a_launcher_of_another_mpi_in_a_script_makes_the_run_partial(folder: Path, tmp_path: Path) -> None:
    """Each process runs alone, as without Quipu; the run contains the launch command and the reason."""
    command = ["sh", "-c", f"mpirun{MPICH} -n 2 ./job"]
    expected = (
        rf"mpirun{MPICH}: its processes are not measured as ranks: job was built for Open MPI, .* belongs to MPICH"
    )
    with pytest.raises(RunFailed, match=expected) as failure:
        measured(folder, tmp_path, command)
    assert "nothing was started" not in str(failure.value) and "by its name" not in str(failure.value)
    archive = failure.value.archive
    assert archive is not None and archive.metadata.partial
    assert visits(archive, "share") == [3, 3]


def test_a_measurement_inside_of_a_job_is_partial(folder: Path, tmp_path: Path) -> None:
    """mpirun starts quipu run twice: each measures one rank of a job of two."""
    command = ["mpirun", "-n", "2", str(native_file("quipu")), "run", "-o", str(tmp_path / "runs"), "--", "./job"]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **LAUNCH}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "MPI reports 2 ranks, but Quipu started 1" in done.stderr


STALE = {
    "Open MPI": {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "5"},
    "Slurm": {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "3", "SLURM_STEP_NUM_TASKS": "4"},
    "Hydra": {"PMI_RANK": "3", "PMI_SIZE": "4"},
}


@pytest.mark.parametrize("variables", STALE.values(), ids=STALE)
def test_variables_of_an_outer_job_mean_nothing_for_a_program_alone(
    folder: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    inside = ["env", *(f"{name}={value}" for name, value in variables.items()), "./alone"]
    for number, command in enumerate((["./alone"], inside, ["sh", "-c", "./alone; true"])):
        archive = measured(folder, tmp_path / str(number), command, variables)
        assert (archive.metadata.complete, archive.metadata.ranks, archive.metadata.problems) == (True, 1, ())
        assert [record.rank for record in archive.ranks] == [0]
        assert visits(archive, "share") == [3]


@pytest.mark.parametrize("mpi", ["", MPICH], ids=["Open MPI", "MPICH"])
def test_variables_of_another_launcher_mean_nothing_for_ranks(folder: Path, tmp_path: Path, mpi: str) -> None:
    stale = {**STALE["Slurm"], **(STALE["Open MPI"] if mpi else STALE["Hydra"])}
    archive = measured(folder, tmp_path, [f"mpirun{mpi}", "-n", "2", "./alone"], stale)
    assert (archive.metadata.complete, [record.rank for record in archive.ranks]) == (True, [0, 1])
    assert visits(archive, "share") == [3, 3]
