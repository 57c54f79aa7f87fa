"""Which MPI a program was linked with."""

from __future__ import annotations

import re
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from .installation import MPICH, OPEN_MPI, SMPI

# Names of libraries. libmpi.so.12 is that of MPICH and all that share its binary interface (Intel MPI, MVAPICH, Cray).
_LIBRARIES = (
    (re.compile(r"libmpi\.so\.[2-9]\d$"), OPEN_MPI),
    (re.compile(r"libmpi(ch|_cray|_gnu.*|_intel.*)?\.so\.12$"), MPICH),
    (re.compile(r"libsimgrid\.so\."), SMPI),
)


def mpi_of_program(program: Path) -> str | None:
    """The binary interface of the MPI that a program asks for itself: OPEN_MPI, MPICH or SMPI.

    None if it names none: scripts, interpreters, programs that are linked statically or through a library of their own.
    """
    try:
        with program.open("rb") as file:
            sections = [part for part in ELFFile(file).iter_sections() if isinstance(part, DynamicSection)]
            needed = [str(vars(tag)["needed"]) for part in sections for tag in part.iter_tags("DT_NEEDED")]
    except (OSError, ELFError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        return None  # pyelftools raises all of these for what is no program, or a damaged one: starting it will show
    return next((family for name in needed for pattern, family in _LIBRARIES if pattern.match(name)), None)
