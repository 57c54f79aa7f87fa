"""Fortran programs, built by gfortran and by flang, through mpif.h and mpi_f08."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from measured import PROGRAMS, check_accounting, run_preloaded


def mpifort(question: str) -> list[str]:
    return shlex.split(subprocess.run(["mpifort", question], capture_output=True, text=True, check=True).stdout)


def compile_fortran(name: str, compiler: str, folder: Path) -> Path:
    """Build a program; mpif.h has no interfaces, so its arguments differ from call to call in type."""
    program = folder / name
    source = str(PROGRAMS / f"{name}.f90")
    if compiler == "flang-new-19":
        includes = subprocess.check_output(["mpicc", "--showme:compile"], text=True).split()
        flags = [*mpifort("--showme:compile"), *includes, *mpifort("--showme:link")]
        command = [compiler, source, *flags, "-o", str(program)]
    else:
        command = [compiler, "-w", "-fallow-argument-mismatch", source, "-o", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return program


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("name", "compiler"), [("ring_mpif", "mpifort"), ("ring_mpif", "flang-new-19"), ("ring_f08", "mpifort")]
)
def test_fortran_programs_count(name: str, compiler: str, ranks: int, library: Path, tmp_path: Path) -> None:
    program = compile_fortran(name, compiler, tmp_path)
    check_accounting(run_preloaded([str(program)], ranks, tmp_path, library))
