# SPDX-License-Identifier: Apache-2.0
"""The counts of Python functions in a run under valgrind, by call path.

Valgrind only sees compiled functions of the interpreter and of extension modules. Therefore the interpreter executes
each Python call path through a separate C function (agent/interpreter/paths.c). The inclusive counts of this C function
are the inclusive counts of the call path. The exclusive counts are these minus the inclusive counts of the call paths
directly below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, RegionKind
from quipu.modeling.limits import reading_file

from .callgrind import Costs

OPTIONS = ("--separate-callers12=MPI_*", "--separate-callers12=PMPI_*")
"""Options of callgrind: record up to 12 callers of MPI operations, which lead to the Python function; no other callers.
"""
VARIABLE = "QUIPU_PYTHON_PATHS"
"""Environment variable with the prefix of the files that list the Python call paths (read by sitecustomize.py)."""
_FUNCTION = re.compile(r"quipu_python_path_([0-9a-f]+)\Z")
_NUMBER = re.compile(r"@[0-9]+\Z")  # suffix of functions with equal names
_IMPORTS = ":0"  # file (empty) and line of the region "(imports)"
_COLUMNS = 5


@dataclass(frozen=True)
class PythonPath:
    """A Python call path.

    parent: number of the calling call path; -1 if there is none. line: first line of the function. name: qualified name
    of the function without its module.
    """

    parent: int
    line: int
    name: str
    file: str


def prefix_of(prefix: str) -> str:
    """Return the prefix of the files with call paths that belong to the callgrind files with `prefix`."""
    return f"paths-{prefix}"


def read_paths(path: Path) -> dict[int, PythonPath]:
    """Return the call paths of a process by number. Raises FormatError with the number of the invalid line."""
    with reading_file(path) as content:
        lines = content.decode("utf-8", "replace").splitlines()
    found: dict[int, PythonPath] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split("\t", _COLUMNS - 1)
        try:
            parent, first = int(words[1]), int(words[2])
            found[int(words[0], 16)] = PythonPath(parent, first, words[3], words[4])
        except (ValueError, IndexError):
            raise FormatError(path, f"is not a line that describes a call path: {line[:60]!r}", number) from None
        if parent != -1 and parent not in found:
            raise FormatError(path, f"names call path {parent} before it is known", number)
    return found


def costs_of_python(
    tree: CallTree, costs: Costs, paths: Mapping[int, PythonPath]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the exclusive counts of call paths, shape (call paths, events), and texts about missing counts.

    A Python call path that is not in the tree counts for its caller. MPI operations are separate call paths. If a
    Python function calls compiled regions, callgrind counts all of them together: then none of them gets counts.
    """
    nodes = _Nodes(tree, paths)
    result = np.zeros((len(tree), len(costs.events)), dtype=np.int64)
    for chain, inclusive in costs.inclusive.items():
        values = np.array(inclusive, dtype=np.int64)
        own = _number(chain[0])
        if own is not None and own in paths:
            below, above = nodes.of[own], nodes.of.get(paths[own].parent, -1)
        else:
            below, above = nodes.operation(chain)
        if below >= 0:
            result[below] += values
        if above >= 0:
            result[above] -= values
    mixed = nodes.with_compiled()
    result[sorted(mixed)] = 0
    problems = [f"{tree.name(path)} calls compiled functions that are regions: not counted" for path in sorted(mixed)]
    return result, tuple(dict.fromkeys(problems))


class _Nodes:
    """Map the number of each Python call path to the tree.

    of: for each number the index in the tree, or the index of the nearest caller that the tree contains; -1 if there is
    neither.
    """

    def __init__(self, tree: CallTree, paths: Mapping[int, PythonPath]) -> None:
        self._tree = tree
        # Indices by the nearest Python caller (-1: none) and "file:line" of a Python function, or the name of a region.
        self._below: dict[tuple[int, str], list[int]] = {}
        self._caller = np.full(len(tree), -1, dtype=np.int64)  # the nearest Python function above
        for node, parent in enumerate(tree.parent.tolist()):
            if parent >= 0:
                is_python = tree.region_of(parent).kind is RegionKind.PYTHON
                self._caller[node] = parent if is_python else self._caller[parent]
            region = tree.region_of(node)
            name = f"{region.file}:{region.line}" if region.kind is RegionKind.PYTHON else region.name
            self._below.setdefault((int(self._caller[node]), name), []).append(node)
        self.of: dict[int, int] = {}
        for number, path in paths.items():
            caller = self.of.get(path.parent, -1)
            self.of[number] = self._child(caller, path)

    def _child(self, caller: int, path: PythonPath) -> int:
        """Return the index of a Python call path whose caller has the index `caller`; `caller` if it has none."""
        imports = self._below.get((caller, _IMPORTS), [])
        for above in (caller, *imports):
            for node in self._below.get((above, f"{path.file}:{path.line}"), ()):
                name = _NUMBER.sub("", self._tree.region_of(node).name)
                if name == path.name or name.endswith(f".{path.name}"):
                    return node
        return imports[0] if imports and path.name == "<module>" else caller

    def operation(self, chain: Sequence[str]) -> tuple[int, int]:
        """Return the index of an MPI operation and of the nearest Python function that calls it.

        chain: functions, innermost first. The result is (-1, -1) if the first function is not an MPI operation of the
        tree, or if another MPI operation calls it.
        """
        name = chain[0].removeprefix("P") if chain[0].startswith("PMPI_") else chain[0]
        for function in chain[1:]:
            number = _number(function)
            if number is not None:
                above = self.of.get(number, -1)
                below = self._below.get((above, name), ())
                return (below[0], above) if below and above >= 0 else (-1, -1)
            if function.startswith(("MPI_", "PMPI_")):
                break
        return -1, -1

    def with_compiled(self) -> set[int]:
        """Return the indices of the Python functions that call compiled regions other than MPI operations."""
        compiled = [node for node in range(len(self._tree)) if self._tree.region_of(node).kind is not RegionKind.PYTHON]
        return {
            int(self._caller[node])
            for node in compiled
            if self._caller[node] >= 0 and self._tree.region_of(node).kind is not RegionKind.MPI
        }


def _number(function: str) -> int | None:
    """Return the number of the Python call path that a C function executes; None for other functions."""
    found = _FUNCTION.match(function)
    return int(found[1], 16) if found is not None else None
