# SPDX-License-Identifier: Apache-2.0
"""Find the MPI of a compiler wrapper (mpicc), and the options that compile and link programs for it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.modeling.errors import EnvironmentProblem, MeasurementError

from .prototypes import INCLUDE, program_files, run_clang, source_files
from .remembered import remembered

OPEN_MPI, MPICH, INTEL, MVAPICH, SMPI = "Open MPI", "MPICH", "Intel MPI", "MVAPICH", "SMPI"
UNKNOWN = "unknown"
LIBRARY = "libquipu_mpi.so"
"""File name of the PMPI library of an MPI."""
QUESTION_SECONDS = 30  # time limit for one call of a compiler wrapper

# Options with which compiler wrappers print their compile flags and link flags; the first pair that works is used.
QUESTIONS = (
    ("--showme:compile", "--showme:link"),
    ("-compile_info", "-link_info"),
    ("-compile-info", "-link-info"),
    ("-show", "-show"),
)


@dataclass(frozen=True)
class MpiInstallation:
    """An MPI as its compiler wrapper describes it. `family` is one of the constants above."""

    mpicc: Path
    family: str
    version: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    @property
    def interface(self) -> str | None:
        """The family whose binary interface (ABI) this MPI has: MPICH for Intel MPI and MVAPICH. None if unknown."""
        return MPICH if self.family in (INTEL, MVAPICH) else None if self.family == UNKNOWN else self.family

    def __str__(self) -> str:
        """Return family and version for messages."""
        return f"{self.family} {self.version}".strip()


def describe_mpicc(mpicc: str | None = None, *, clang: str = "clang-19") -> MpiInstallation:
    """Return the MPI of a compiler wrapper (default: $QUIPU_MPICC, or the first `mpicc` in PATH).

    clang: the command that reads mpi.h. Raises EnvironmentProblem if the wrapper or clang is missing, MeasurementError
    if the wrapper is no compiler wrapper of an MPI.
    """
    name = mpicc or os.environ.get("QUIPU_MPICC") or "mpicc"
    found = shutil.which(name)
    if found is None:
        raise EnvironmentProblem(
            f"the MPI compiler {name!r} is not in PATH. Install one (apt-get install libopenmpi-dev openmpi-bin), or "
            "name yours in QUIPU_MPICC"
        )
    family, version, *flags = remembered("mpicc", (found, clang), lambda: _describe(found, clang))
    return MpiInstallation(Path(found), family, version, *map(tuple, flags))


def _describe(found: str, clang: str) -> tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], list[Path]]:
    """Return (family, version, compile flags, link flags), and the files that determine them."""
    for compile_question, link_question in QUESTIONS:
        compiling, linking = _ask(found, compile_question), _ask(found, link_question)
        if compiling is not None and linking is not None:
            break
    else:
        raise MeasurementError(f"{found} prints no compile options: neither --showme:compile nor -show works")
    compile_flags, link_flags = _compile_flags(compiling), _link_flags(linking)
    header = run_clang(clang, [*compile_flags, "-E", "-dD"], INCLUDE)
    family, version = _identify(header)
    if family == SMPI:  # the header of -include replaces malloc, exit and other functions by macros
        compile_flags = tuple(_without(compile_flags, "-include"))
        version = (_ask(found, "-version") or "").removeprefix("SimGrid version").strip()
    data = Path(found).parents[1] / "share" / "openmpi" / "mpicc-wrapper-data.txt"
    files = [Path(found), *program_files(clang), *source_files(header), *([data] if data.is_file() else [])]
    return (family, version, compile_flags, link_flags), files


def _ask(program: str, question: str) -> str | None:
    """Return the output of the program for this option; None if the program fails, prints nothing or takes too long."""
    try:
        result = subprocess.run(
            [program, question], capture_output=True, text=True, timeout=QUESTION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 and result.stdout.strip() else None


def _words(answer: str) -> list[str]:
    try:
        return shlex.split(answer.replace("\n", " "))
    except ValueError as error:
        raise MeasurementError(f"the MPI compiler describes itself with a syntax error: {error}") from error


def _compile_flags(answer: str) -> tuple[str, ...]:
    return tuple(_pick(_words(answer), ("-I", "-D", "-U"), ("-isystem", "-include")))


def _link_flags(answer: str) -> tuple[str, ...]:
    words = [word for word in _words(answer) if not word.startswith("-Wl,-z")]
    return tuple(_pick(words, ("-L", "-l", "-Wl,"), ("-Xlinker",), pick_libraries=True))


def _pick(
    words: Sequence[str], prefixes: tuple[str, ...], with_value: tuple[str, ...], *, pick_libraries: bool = False
) -> list[str]:
    """Return the flags that have one of these prefixes or are in `with_value`.

    If the value of a flag is a separate word, as in `-I dir`, it follows its flag. pick_libraries: also return paths
    of libraries.
    """
    picked: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        takes_next = (word in with_value or word in prefixes) and position + 1 < len(words)
        if takes_next:
            picked += [word, words[position + 1]]
        elif word.startswith(prefixes) or (pick_libraries and re.search(r"\.(so(\.\d+)*|a)$", word)):
            picked.append(word)
        position += 2 if takes_next else 1
    return picked


def _without(words: Sequence[str], option: str) -> list[str]:
    """Return the words without this option and its value."""
    return [word for i, word in enumerate(words) if word != option and (i == 0 or words[i - 1] != option)]


def _identify(macros: str) -> tuple[str, str]:
    """Return family and version from the macros of mpi.h."""
    defined: Mapping[str, str] = {
        parts[1]: parts[2].strip('"') if len(parts) > 2 else ""
        for line in macros.splitlines()
        if line.startswith("#define") and len(parts := line.split(maxsplit=2)) > 1 and "(" not in parts[1]
    }
    if "OPEN_MPI" in defined:
        keys = ("OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION")
        return OPEN_MPI, ".".join(defined[key] for key in keys if key in defined)
    for key, family in (("I_MPI_VERSION", INTEL), ("MVAPICH2_VERSION", MVAPICH), ("MPICH_VERSION", MPICH)):
        if key in defined:
            return family, defined[key]
    if "SMPI_H" in defined:
        return SMPI, ""
    return UNKNOWN, ""
