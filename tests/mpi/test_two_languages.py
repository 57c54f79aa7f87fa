# SPDX-License-Identifier: Apache-2.0
"""Programs of Fortran and C together, and operations of MPI 4: all that they do is counted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from measured import LAUNCH, MPICH, PROGRAMS
from patience import PATIENCE
from peers import require
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.installation import native_file

DOUBLE = 8


def build(compiler: str, mpi: str, folder: Path, *words: str) -> None:
    environment = {**os.environ, "QUIPU_MPICC": f"mpicc{mpi}", "QUIPU_MPIFC": f"mpifort{mpi}"}
    command = [str(native_file(compiler)), "-O1", "-g", *words]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=PATIENCE)


def counted(archive: RunArchive, metric: str) -> dict[tuple[str, ...], float]:
    """Return the mean over ranks of a metric by displayed call path below the main program."""
    paths = [archive.tree.ancestry(path) for path in range(len(archive.tree))]
    names = [tuple(archive.tree.region_of(node).display for node in nodes) for nodes in paths]
    values = archive.statistics[metric].mean.tolist()
    return {
        tuple(one for one in name if one not in ("main", "main program")): value
        for name, value in zip(names, values, strict=True)
    }


def measured(folder: Path, mpi: str, program: str) -> RunArchive:
    command = [f"mpirun{mpi}", "-n", "2", f"./{program}"]
    options = LaunchOptions(folder=folder, environment=LAUNCH, say=lambda text: None)
    archive = run(command, {}, None, folder / "runs", options)
    assert archive.metadata.complete and not archive.metadata.problems
    return archive


@pytest.mark.parametrize("mpi", ["", MPICH])
def test_fortran_and_c_call_each_other(mpi: str, tmp_path: Path) -> None:
    require("gfortran", *(["MPICH"] if mpi == MPICH else []))
    build("quipu-mpicc", mpi, tmp_path, "-c", str(PROGRAMS / "two_languages.c"), "-o", "c.o")
    build("quipu-mpifort", mpi, tmp_path, str(PROGRAMS / "two_languages.f90"), "c.o", "-o", "program")
    archive = measured(tmp_path, mpi, "program")
    visits, sent, received = (counted(archive, name) for name in ("visits", "bytes_sent", "bytes_received"))
    assert visits["ckern_",] == visits["cback_",] == visits["cback_", "fsub"] == 3
    assert visits["cwait_", "MPI_Wait"] == 6
    assert sent["cexchange", "MPI_Sendrecv"] == received["cexchange", "MPI_Sendrecv"] == 3 * 16 * DOUBLE
    assert sum(sent.values()) == sum(received.values()) == 3 * (16 + 8 + 1) * DOUBLE


def test_operations_of_mpi_4(tmp_path: Path) -> None:
    require("MPICH")
    build("quipu-mpicc", MPICH, tmp_path, str(PROGRAMS / "mpi_4.c"), "-o", "program")
    archive = measured(tmp_path, MPICH, "program")
    sent, received = counted(archive, "bytes_sent"), counted(archive, "bytes_received")
    assert sum(sent.values()) == sum(received.values()) == (3 * 4 * 8 + 3 * 4 + 3 + 5 + 7) * DOUBLE
    visits = {path[-1]: value for path, value in counted(archive, "visits").items() if path}
    assert (visits["MPI_Pready_range"], visits["MPI_Pready_list"], visits["MPI_Isendrecv_replace"]) == (3, 3, 1)
    assert counted(archive, "messages_sent")["persistent", "MPI_Start"] == 3
