# SPDX-License-Identifier: Apache-2.0
"""Find the MPI that a program was linked with."""

from __future__ import annotations

import re
from pathlib import Path

from quipu.modeling.errors import FormatError

from .elf import NEEDED, ElfFile, NoElf
from .installation import MPICH, OPEN_MPI, SMPI

# File names of MPI libraries. libmpi.so.12 is MPICH or an MPI with the ABI of MPICH (Intel MPI, MVAPICH, Cray).
_LIBRARIES = (
    (re.compile(r"libmpi\.so\.[2-9]\d$"), OPEN_MPI),
    (re.compile(r"libmpi(ch|_cray|_gnu.*|_intel.*)?\.so\.12$"), MPICH),
    (re.compile(r"libsimgrid\.so\."), SMPI),
)


def mpi_of_program(program: Path) -> str | None:
    """Return the ABI of the MPI that a program is linked with directly: OPEN_MPI, MPICH or SMPI.

    Returns None for scripts, interpreters, and programs that link MPI statically or through another library.
    """
    needed = needed_libraries(program)
    return next((family for name in needed for pattern, family in _LIBRARIES if pattern.match(name)), None)


def needed_libraries(program: Path) -> list[str]:
    """Return the libraries that a program is linked with directly; none if it is a script or cannot be read."""
    try:
        with program.open("rb") as file:
            return [text for tag, text in ElfFile(file).dynamic() if tag == NEEDED]
    except (OSError, NoElf, FormatError):
        return []  # not a program, or damaged: starting it reports the error


def is_elf(program: Path) -> bool:
    """Return whether a file is a compiled program or library."""
    try:
        with program.open("rb") as file:
            ElfFile(file)
    except (OSError, NoElf, FormatError):
        return False
    return True


def is_instrumented(program: Path) -> bool:
    """Return whether a file has sections that Quipu's compiler pass wrote; false for scripts and missing files."""
    try:
        with program.open("rb") as file:
            return any(section.name.startswith(".quipu.") for section in ElfFile(file).sections())
    except (OSError, NoElf, FormatError):
        return False
