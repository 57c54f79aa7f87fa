# SPDX-License-Identifier: Apache-2.0
"""Another PMPI library in the process, or a program that wraps MPI: both count, or the run has a note."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import LAUNCH, MPICH, PROGRAMS, Run, compile_program
from quipu.agent.installation import native_file

MPIS = pytest.mark.parametrize("mpi", ["", MPICH], ids=["default", "mpich"])
SEND = (30 * 80, 0, 30, 0, 2)


def site_library(folder: Path, mpi: str, *options: str) -> Path:
    """Build programs/site.c as a library."""
    library = folder / "libsite.so"
    command = [f"mpicc{mpi}", "-shared", "-fPIC", *options, str(PROGRAMS / "site.c"), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


def build(folder: Path, mpi: str, *options: str) -> Path:
    """Build programs/rounds.c with the compiler wrapper."""
    program = folder / "rounds"
    compiler = str(native_file("quipu-mpicc"))
    command = [compiler, "-O1", "--quipu-all", str(PROGRAMS / "rounds.c"), "-o", str(program), *options]
    subprocess.run(command, check=True, env={**os.environ, "QUIPU_MPICC": f"mpicc{mpi}"})
    return program


def run(command: list[str], folder: Path, library: Path, mpi: str, **environment: str) -> tuple[Run, str]:
    """Run two ranks as `quipu run` does; return the run and what the program printed."""
    raw = folder / "raw"
    raw.mkdir()
    settings = {"QUIPU_DIR": str(raw), "QUIPU_PRELOAD": str(library), **environment}
    shim = str(native_file("quipu-exec"))
    # The launcher itself should not get what is meant for the program.
    starts = ["env", *(f"{name}={value}" for name, value in settings.items()), shim, *command]
    done = subprocess.run(
        [f"mpirun{mpi}", "-n", "2", *starts],
        env={**os.environ, **LAUNCH},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Run(raw, 2), done.stdout


def check_counted(measured: Run) -> None:
    assert measured.counted(0)["MPI_Send"] == SEND
    assert measured.counted(1)["MPI_Recv"] == (0, 30 * 80, 0, 30, 2)
    for rank in (0, 1):
        assert {"MPI_Init", "MPI_Finalize", "MPI_Barrier", "MPI_Comm_rank"} <= set(measured.counted(rank))
        assert "mpi_problem" not in measured.profiles[rank].attributes


@MPIS
@pytest.mark.parametrize("way", ["variable", "env", "first", "linked", "own"])
def test_both_count(libraries: Callable[[str], Path], tmp_path: Path, mpi: str, way: str) -> None:
    site = site_library(tmp_path, mpi)
    link = [f"-L{tmp_path}", "-lsite", f"-Wl,-rpath,{tmp_path}"] if way == "linked" else []
    own = [f"-I{PROGRAMS}", "-DOWN"] if way == "own" else []
    program = str(build(tmp_path, mpi, *link, *own))
    library = libraries(mpi)
    environment = {"LD_PRELOAD": str(site)} if way == "variable" else {}
    command = {
        "env": ["env", f"LD_PRELOAD={site}", program],
        "first": ["sh", "-c", f'LD_PRELOAD="{site}:$LD_PRELOAD" exec {program}'],
    }.get(way, [program])
    measured, printed = run(command, tmp_path, library, mpi, **environment)
    assert printed == "30 messages\n"
    check_counted(measured)


@MPIS
def test_a_program_without_the_preload_is_counted(libraries: Callable[[str], Path], tmp_path: Path, mpi: str) -> None:
    program = str(build(tmp_path, mpi))
    measured, _ = run(["env", "-u", "LD_PRELOAD", program], tmp_path, libraries(mpi), mpi)
    check_counted(measured)


@MPIS
def test_functions_that_another_library_keeps_for_itself_are_named(
    libraries: Callable[[str], Path], tmp_path: Path, mpi: str
) -> None:
    site = site_library(tmp_path, mpi, "-DHIDES_ITS_CALLS")
    program = str(build(tmp_path, mpi))
    command = ["sh", "-c", f'LD_PRELOAD="{site}:$LD_PRELOAD" exec {program}']
    measured, printed = run(command, tmp_path, libraries(mpi), mpi)
    assert printed == "30 messages\n"
    assert "MPI_Send" not in measured.counted(0)
    problem = measured.profiles[0].attributes["mpi_problem"]
    assert problem == "libsite.so calls MPI past the MPI library of Quipu, so these functions are not counted: MPI_Send"


@MPIS
def test_plain_programs_call_both_too(libraries: Callable[[str], Path], tmp_path: Path, mpi: str) -> None:
    """The program is neither built with the wrappers nor measured; the other library still sees all calls."""
    site = site_library(tmp_path, mpi)
    program = str(compile_program("rounds", tmp_path, mpi=mpi))
    preload = f"{libraries(mpi)}:{site}"
    done = subprocess.run(
        [f"mpirun{mpi}", "-n", "2", "env", f"LD_PRELOAD={preload}", program],
        env={**os.environ, **LAUNCH},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == "30 messages\n"
