# SPDX-License-Identifier: Apache-2.0
"""The call graph of a whole program at source level: functions before inlining, and the possible calls between them.

The number of a function is its index in `CallGraph.functions`. Arrays have the shape (functions,).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from .errors import ModelingError
from .experiment import CallTree, IntArray, Region


class CallKind(Enum):
    """How the callee of a call is determined.

    - DIRECT: the call names the function.
    - VIRTUAL: the callee is any function with the type of the call in the same entry of the virtual tables.
    - INDIRECT: the callee is any function with the type of the call whose address some code uses.
    - HANDED: the function is an argument of a call of code outside of the graph. That code may call the function.

    The calls of all kinds except DIRECT may never happen.
    """

    DIRECT = "direct"
    VIRTUAL = "virtual"
    INDIRECT = "indirect"
    HANDED = "handed"


@dataclass(frozen=True)
class Function:
    """A function of the source.

    - key: the linker name, followed by "@" and the file if several static functions have the same name.
    - name: the linker name. display: the name in views.
    - statements: number of source lines with executable code (llvm_pass/statements.h).
    - loops, loop_depth: number of loops, and largest nesting depth.
    - defined: its code is in the graph. weak: several object files may contain it (inline functions, templates).
    - local: it is static. declared_inline: the source declares it inline. start: it runs before main.
    - address_taken: some code uses its address. overrides: linker names of the virtual functions that it overrides.
    """

    key: str
    name: str
    display: str
    file: str = ""
    line: int = 0
    statements: int = 0
    loops: int = 0
    loop_depth: int = 0
    defined: bool = True
    local: bool = False
    weak: bool = False
    declared_inline: bool = False
    fortran: bool = False
    start: bool = False
    address_taken: bool = False
    virtual: bool = False
    overrides: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Call:
    """A possible call of one function by another.

    caller, callee: numbers of the functions. sites: number of places in the caller that call the callee. loop_depth:
    largest number of loops around such a place. certain: whether the call is direct, or occurred in a run.
    """

    caller: int
    callee: int
    kind: CallKind
    sites: int = 1
    loop_depth: int = 0
    certain: bool = False


MAIN = ("main", "_QQmain")
"""Linker names of main programs: of C, C++ and gfortran, and of flang."""


@dataclass(frozen=True, eq=False)
class CallGraph:
    """The functions, and at most one call for each pair of functions.

    Raises ModelingError if a call contains a number without a function.
    """

    functions: tuple[Function, ...]
    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        count = len(self.functions)
        if any(not (0 <= call.caller < count and 0 <= call.callee < count) for call in self.calls):
            raise ModelingError("call graph: a call names a function that is not in it")

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Return the number of each function by its key."""
        return {function.key: number for number, function in enumerate(self.functions)}

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for number, function in enumerate(self.functions):
            found.setdefault(function.name, []).append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    def of_region(self, region: Region) -> int | None:
        """Return the number of the function of a measured region; None if the graph does not contain it.

        Functions are compared by linker name; static functions with the same name also by file.
        """
        numbers = self._by_name.get(region.name, ())
        if len(numbers) > 1:
            numbers = tuple(n for n in numbers if self.functions[n].file == region.file) or numbers
        return numbers[0] if numbers else None

    @cached_property
    def main(self) -> int | None:
        """Return the number of the main program; None in a library.

        If a C main starts a Fortran main program, the main program is the Fortran one.
        """
        found = [self._by_name[name][0] for name in MAIN if name in self._by_name]
        defined = [number for number in found if self.functions[number].defined]
        return defined[-1] if defined else None

    @cached_property
    def _adjacency(self) -> csr_matrix:
        size = len(self.functions)
        rows = np.array([call.caller for call in self.calls], dtype=np.int64)
        columns = np.array([call.callee for call in self.calls], dtype=np.int64)
        return csr_matrix((np.ones(rows.size, dtype=np.int8), (rows, columns)), shape=(size, size))

    @cached_property
    def component(self) -> IntArray:
        """Return for each function the number of its strongly connected component (functions that reach each other)."""
        if not self.functions:
            return np.zeros(0, dtype=np.int64)
        return np.asarray(connected_components(self._adjacency, directed=True, connection="strong")[1], dtype=np.int64)

    @cached_property
    def recursive(self) -> NDArray[np.bool_]:
        """Return a mask of the functions that may call themselves, directly or through others."""
        sizes = np.bincount(self.component, minlength=1)
        found = sizes[self.component] > 1
        for call in self.calls:
            if call.caller == call.callee:
                found[call.caller] = True
        return np.asarray(found, dtype=bool)

    @cached_property
    def reachable(self) -> NDArray[np.bool_]:
        """Return a mask of the functions that main may reach, main included; all functions if there is no main."""
        return self.below([self.main]) if self.main is not None else np.ones(len(self.functions), dtype=bool)

    def below(self, functions: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask of these functions and all functions that they may reach."""
        return self._spread(self._adjacency, functions)

    def callees(self, functions: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask of the functions that these functions may call directly."""
        found = np.zeros(len(self.functions), dtype=bool)
        found[self._adjacency[sorted(functions)].indices] = True
        return found

    def above(self, functions: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask of these functions and all functions that may reach them."""
        return self._spread(self._adjacency.T.tocsr(), functions)

    @staticmethod
    def _spread(adjacency: csr_matrix, functions: Iterable[int]) -> NDArray[np.bool_]:
        found = np.zeros(adjacency.shape[0], dtype=bool)
        for function in functions:
            if not found[function]:
                found[breadth_first_order(adjacency, function, return_predecessors=False)] = True
        return found

    def on_paths_from_main(self, functions: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask of all functions on any path from main to these functions, both ends included."""
        return np.asarray(self.above(functions) & self.reachable, dtype=bool)

    @cached_property
    def aggregated_statements(self) -> IntArray:
        """Return for each function its statements plus the statements of all functions that it may reach, each once.

        This is the statement aggregation of PIRA (Lehr, Hück and Bischof, PIRA: performance instrumentation refinement
        automation, 2018, section V-B4).
        """
        count = len(self.functions)
        if count == 0:
            return np.zeros(0, dtype=np.int64)
        components = int(self.component.max()) + 1
        statements = np.array([function.statements for function in self.functions], dtype=np.float64)
        weight = np.bincount(self.component, weights=statements, minlength=components)
        # For each component, the reachable components as bits: 12 MB for 10,000 functions. Callees come first.
        reach = np.zeros((components, (components + 7) // 8), dtype=np.uint8)
        total = np.zeros(components)
        callees: list[set[int]] = [set() for _ in range(components)]
        for call in self.calls:
            callees[self.component[call.caller]].add(int(self.component[call.callee]))
        for number in _callees_first(callees):
            row = reach[number]
            row[number >> 3] |= 128 >> (number & 7)
            for callee in callees[number] - {number}:
                row |= reach[callee]
            total[number] = weight[np.unpackbits(row, count=components).view(bool)].sum()
        return np.asarray(total[self.component], dtype=np.int64)

    def with_seen(self, trees: Iterable[CallTree]) -> CallGraph:
        """Return the graph with the calls that occur in these measured call trees marked as certain."""
        seen: set[tuple[int, int]] = set()
        for tree in trees:
            functions = [self.of_region(region) for region in tree.regions]
            for path, parent in enumerate(tree.parent):
                pair = functions[int(tree.region[int(parent)])], functions[int(tree.region[path])]
                if parent >= 0 and pair[0] is not None and pair[1] is not None:
                    seen.add((pair[0], pair[1]))
        calls = tuple(
            Call(call.caller, call.callee, call.kind, call.sites, call.loop_depth, True)
            if (call.caller, call.callee) in seen
            else call
            for call in self.calls
        )
        return CallGraph(self.functions, calls)


def _callees_first(callees: list[set[int]]) -> list[int]:
    """Return the nodes of an acyclic graph, each after all nodes that it calls."""
    order: list[int] = []
    done = [False] * len(callees)
    for root in range(len(callees)):
        stack = [(root, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                order.append(node)
            elif not done[node]:
                done[node] = True
                stack.append((node, True))
                stack.extend((callee, False) for callee in callees[node] if not done[callee])
    return order
