# SPDX-License-Identifier: Apache-2.0
"""Read the prototypes of an mpi.h with clang.

Clang prints its abstract syntax tree as JSON. The tree does not depend on macros, attributes and the style of an
mpi.h: Open MPI, MPICH and SimGrid SMPI need no special cases here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.modeling.errors import EnvironmentProblem, MeasurementError

INCLUDE = "#include <mpi.h>\n"
_MARKER = re.compile(r'^# \d+ "(.*)"', re.MULTILINE)
CONVERSION = re.compile(r"_(c|f|f08)2(c|f|f08)$")  # functions that convert handles and statuses between languages


@dataclass(frozen=True)
class Parameter:
    """A parameter: C type as printed by clang, and the name in mpi.h (may be empty)."""

    type: str
    name: str

    def declare(self, name: str) -> str:
        """Return the C declaration of a parameter of this type with that name."""
        if "(*)" in self.type:
            return self.type.replace("(*)", f"(*{name})", 1)
        return f"{self.type}{'' if self.type.endswith('*') else ' '}{name}"


@dataclass(frozen=True)
class Function:
    """A function MPI_X for which mpi.h also declares PMPI_X."""

    name: str
    parameters: tuple[Parameter, ...]


def run_clang(clang: str, arguments: Sequence[str], source: str) -> str:
    """Return the output of clang for `source` on its standard input.

    Raises EnvironmentProblem if clang is missing, MeasurementError if clang rejects the source.
    """
    command = [clang, *arguments, "-x", "c", "-"]
    try:
        result = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    except OSError as error:
        problem = f"cannot run {clang}: {error.strerror}. Install it: apt-get install {clang}"
        raise EnvironmentProblem(problem) from error
    if result.returncode != 0:
        first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
        raise MeasurementError(f"{clang} cannot read mpi.h: {first}")
    return result.stdout


def source_files(preprocessed: str) -> list[Path]:
    """Return the files that a preprocessed source was read from, according to its line markers."""
    return [Path(name) for name in dict.fromkeys(_MARKER.findall(preprocessed)) if not name.startswith("<")]


def program_files(program: str) -> list[Path]:
    """Return the file of a program as a list; empty if it is missing."""
    found = shutil.which(program)
    return [] if found is None else [Path(found)]


def read_prototypes(clang: str, flags: Sequence[str]) -> tuple[Function, ...]:
    """Return the functions of mpi.h that can be wrapped, sorted by name; `flags` are compiler flags that find mpi.h.

    Other functions are omitted, because they move no data and take almost no time: functions without a PMPI_ form or
    with a variable number of arguments (MPI_Pcontrol), conversions of handles, and functions that return no error code
    (MPI_Wtime).

    Raises EnvironmentProblem if clang is missing, MeasurementError if clang cannot read mpi.h.
    """
    dump = run_clang(clang, [*flags, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json"], INCLUDE)
    try:
        tree = json.loads(dump)
    except json.JSONDecodeError as error:
        raise MeasurementError(f"{clang} -ast-dump=json printed text that is not JSON: {error}") from error
    declared = {node["name"]: node for node in _functions(tree)}
    return tuple(
        _function(declared[name])
        for name in sorted(declared)
        if name.startswith("MPI_")
        and f"P{name}" in declared
        and not declared[name].get("variadic", False)
        and str(declared[name]["type"]["qualType"]).split("(", 1)[0].strip() == "int"
        and not CONVERSION.search(name)
    )


def _functions(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for node in tree.get("inner", ()):
        if node.get("kind") == "FunctionDecl" and node.get("name", "").startswith(("MPI_", "PMPI_")):
            yield node
        elif node.get("kind") == "LinkageSpecDecl":
            yield from _functions(node)


def _function(node: Mapping[str, Any]) -> Function:
    parameters = tuple(
        Parameter(str(child["type"]["qualType"]), str(child.get("name", "")))
        for child in node.get("inner", ())
        if child.get("kind") == "ParmVarDecl"
    )
    return Function(str(node["name"]), parameters)
