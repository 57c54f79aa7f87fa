# SPDX-License-Identifier: Apache-2.0
"""Fortran programs, built by gfortran and by flang, through mpif.h, `use mpi` and mpi_f08."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import MPICH, PROGRAMS, check_accounting, run_preloaded
from peers import require
from quipu.agent.installation import native_file

GFORTRAN, FLANG, QUIPU = "mpifort", "flang-new-19", "quipu-mpifort"


def mpifort(question: str) -> list[str]:
    return shlex.split(subprocess.run(["mpifort", question], capture_output=True, text=True, check=True).stdout)


def compile_fortran(name: str, compiler: str, folder: Path, mpi: str) -> Path:
    """Build a program, or skip the test without a peer.

    mpif.h has no interfaces, so its arguments differ from call to call in type.
    ring_mpi is ring_mpif with the module instead of the header.
    """
    require("gfortran", *(["MPICH"] if mpi == MPICH else []))  # modules of both MPIs are of gfortran
    program, source = folder / name, PROGRAMS / f"{name}.f90"
    if name == "ring_mpi":
        text = (PROGRAMS / "ring_mpif.f90").read_text()
        source = folder / source.name
        source.write_text(text.replace("include 'mpif.h'", "").replace("implicit none", "use mpi\nimplicit none", 1))
    if compiler == FLANG:
        includes = subprocess.check_output(["mpicc", "--showme:compile"], text=True).split()
        flags = [*mpifort("--showme:compile"), *includes, *mpifort("--showme:link")]
        command = [compiler, str(source), *flags, "-o", str(program)]
    elif compiler == QUIPU:
        command = [str(native_file(compiler)), str(source), "-o", str(program)]
    else:
        command = [f"{compiler}{mpi}", "-w", "-fallow-argument-mismatch", str(source), "-o", str(program)]
    environment = {**os.environ, "QUIPU_MPIFC": f"mpifort{mpi}"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert result.returncode == 0, result.stderr
    return program


@pytest.fixture(scope="module")
def fortran_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, str], Path]:
    """Build a program by a compiler for an MPI once and give its path."""

    @functools.cache
    def build(name: str, compiler: str, mpi: str) -> Path:
        return compile_fortran(name, compiler, tmp_path_factory.mktemp(name), mpi)

    return build


@pytest.mark.parametrize(
    ("name", "compiler", "mpi", "ranks"),
    [
        ("ring_mpif", GFORTRAN, "", 1),
        ("ring_mpif", GFORTRAN, "", 3),
        ("ring_mpif", FLANG, "", 3),
        ("ring_mpi", GFORTRAN, "", 2),
        ("ring_mpi", QUIPU, "", 2),
        ("ring_mpi", QUIPU, MPICH, 2),
        ("ring_f08", GFORTRAN, "", 1),
        ("ring_f08", GFORTRAN, "", 3),
        ("ring_mpif", GFORTRAN, MPICH, 3),
        ("ring_mpi", GFORTRAN, MPICH, 2),
        ("ring_f08", GFORTRAN, MPICH, 1),
        ("ring_f08", GFORTRAN, MPICH, 3),
        ("ring_f08", QUIPU, "", 3),
        ("ring_f08", QUIPU, MPICH, 3),
    ],
)
def test_fortran_programs_count(
    name: str,
    compiler: str,
    mpi: str,
    ranks: int,
    fortran_program: Callable[[str, str, str], Path],
    libraries: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    run = run_preloaded([str(fortran_program(name, compiler, mpi))], ranks, tmp_path, libraries(mpi), mpi)
    check_accounting(run)
    for profile in run.profiles.values():
        assert profile.attributes["mpi_finalized"] == "1"
        assert {"MPI_Comm_rank", "MPI_Waitall"} <= {region.name for region in profile.regions.values()}


@pytest.mark.parametrize("mpi", ["", MPICH], ids=["openmpi", "mpich"])
def test_mpi_f08_of_flang_for_an_mpi_of_gfortran(
    mpi: str, fortran_program: Callable[[str, str, str], Path], libraries: Callable[[str], Path], tmp_path: Path
) -> None:
    run = run_preloaded([str(fortran_program("handles_f08", QUIPU, mpi))], 3, tmp_path, libraries(mpi), mpi)
    for rank in range(3):  # 5 numbers, and 3 structures of 32 bytes
        assert run.counted(rank)["MPI_Sendrecv"][:4] == (136, 136, 2, 2)
    assert run.profiles[0].attributes["process_grid"] == "3x1"
    assert run.profiles[0].attributes["process_grid_periodic"] == "1x1"
