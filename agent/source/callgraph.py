# SPDX-License-Identifier: Apache-2.0
"""Build the call graph of a program and its shared libraries from the data that the compiler pass stored in them.

The object files are joined as the linker does: each global name has one definition. Static functions stay separate, but
copies of a static function from the same line of a header are one function. An indirect call may reach every function
of its type whose address is taken. Functions of the C++ library that have no loops and reach no function of the program
are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quipu.modeling.callgraph import Call, CallGraph, CallKind, Function
from quipu.modeling.errors import SectionMissing

from .described import (
    DescribedAddress,
    DescribedAlias,
    DescribedFunction,
    DescribedTable,
    Entry,
    object_files,
)
from .ir import is_ir
from .ir import object_files as ir_files
from .libraries import shared_libraries
from .readable import readable_name

_Local = tuple[str, str, int]
"""The identity of a static function: name, file and line."""
_Key = str | _Local
_CXX_LIBRARY = re.compile(r"_ZZ*(?:St|N[KVrRO]*(?:S[tabsiod]|9__gnu_cxx))")
"""Linker names in the namespaces std and __gnu_cxx (isOfCxxLibrary in llvm_pass/libraries.cpp)."""


def call_graph(program: Path, libraries: Sequence[Path] = ()) -> CallGraph:
    """Return the call graph of a program, library, object file or LLVM IR (`ir.py`), and of its shared libraries.

    libraries: further libraries that the program loads with dlopen(3). Raises FormatError if none of the files was
    built with the compiler wrappers, or the data of one are damaged.
    """
    if is_ir(program):
        files = ir_files(program)
        for library in libraries:
            files += ir_files(library) if is_ir(library) else object_files(library)
        return joined(files)
    files = object_files(program)
    for library in dict.fromkeys([*shared_libraries(program), *libraries]):
        files += object_files(library)
    if not files:
        raise SectionMissing(
            program, "contains no call graph: build it with the compiler wrappers, and do not strip it"
        )
    return joined(files)


def joined(files: Iterable[Sequence[Entry]]) -> CallGraph:
    """Return the call graph of object files. files: the entries of each object file, in the order of linking."""
    linker = _Linker()
    units = [linker.unit(entries) for entries in files]
    linker.resolve(units)
    return linker.graph()


@dataclass(frozen=True)
class _Unit:
    """An object file.

    functions: its functions that the linked program uses. local: the identity of each of its static functions, by name.
    aliases: the name of the aliased function, by alias.
    """

    functions: tuple[DescribedFunction, ...]
    local: dict[str, _Key]
    aliases: dict[str, str]

    def key(self, name: str) -> _Key:
        """Return the identity of the function that a name means in this object file."""
        name = self.aliases.get(name, name)
        return self.local.get(name, name)


class _Linker:
    """Joins object files to a call graph."""

    def __init__(self) -> None:
        self.definitions: dict[_Key, DescribedFunction] = {}
        self.aliases: dict[str, _Key] = {}
        self.types: dict[_Key, str] = {}  # types of the functions that may be called through pointers
        # Functions by their row in tables of virtual functions and their type.
        self.rows: dict[tuple[int, str], dict[_Key, None]] = defaultdict(dict)
        self.tables: dict[str, tuple[DescribedTable, _Unit]] = {}
        self.virtual: set[_Key] = set()
        # Kind of call, number of call sites, and depth of loops, by caller and callee.
        self.edges: dict[tuple[_Key, _Key], tuple[CallKind, int, int]] = {}
        self.numbers: dict[_Key, int] = {}

    def unit(self, entries: Sequence[Entry]) -> _Unit:
        """Add the definitions of an object file; return the object file with the functions that the program uses."""
        functions = tuple(entry for entry in entries if isinstance(entry, DescribedFunction))
        local: dict[str, _Key] = {f.name: (f.name, f.file, f.line) for f in functions if f.local}
        aliases = {entry.name: entry.of for entry in entries if isinstance(entry, DescribedAlias)}
        unit = _Unit(functions, local, aliases)
        for name in aliases:
            self.aliases.setdefault(name, unit.key(name))
        used: set[_Key] = set()
        for function in functions:
            key = unit.key(function.name)
            before = self.definitions.get(key)
            if before is None or (before.weak and not function.weak):
                self.definitions[key] = function
                used.add(key)
            if function.taken:
                self.types.setdefault(key, function.type)
        for entry in entries:
            if isinstance(entry, DescribedAddress):
                self.types.setdefault(unit.key(entry.name), entry.type)
            elif isinstance(entry, DescribedTable) and entry.name not in self.tables:
                self.tables[entry.name] = (entry, unit)
        return _Unit(tuple(f for f in functions if unit.key(f.name) in used), local, aliases)

    def final(self, key: _Key) -> _Key:
        """Return the function of a name, which may be an alias in another object file."""
        return self.aliases.get(key, key) if isinstance(key, str) and key not in self.definitions else key

    def resolve(self, units: Sequence[_Unit]) -> None:
        """Add the calls of all functions."""
        self.fill_rows()
        by_type: dict[str, list[_Key]] = defaultdict(list)
        for key, text in self.types.items():
            if (target := self.final(key)) in self.definitions:
                by_type[text].append(target)
        for unit in units:
            for function in unit.functions:
                caller = unit.key(function.name)
                for name, sites, depth in function.calls:
                    self.add(caller, self.final(unit.key(name)), CallKind.DIRECT, sites, depth)
                for text, sites, depth in function.indirect:
                    self.add_all(caller, by_type[text], CallKind.INDIRECT, sites, depth)
                for number, text, sites, depth in function.virtual:
                    if found := self.rows.get((number, text)):
                        self.add_all(caller, found, CallKind.VIRTUAL, sites, depth)
                    else:
                        self.add_all(caller, by_type[text], CallKind.INDIRECT, sites, depth)
        self.hand_over(units)
        self.leave_out(units)

    def leave_out(self, units: Sequence[_Unit]) -> None:
        """Remove functions of the C++ library that have no loops and reach no function of the program.

        The pass applies the same rules to each object file (leaveOut in llvm_pass/callgraph.cpp). Here they apply to
        the whole program.
        """
        callees: dict[_Key, set[_Key]] = defaultdict(set)
        for caller, callee in self.edges:
            callees[caller].add(callee)
        candidates = {
            key
            for unit in units
            for function in unit.functions
            if _CXX_LIBRARY.match(function.name)
            and function.weak
            and not (function.loops or function.indirect or function.virtual or function.handed)
            and (key := unit.key(function.name)) not in self.types
            and key not in self.virtual
        }
        left: set[_Key] = set()
        while found := {key for key in candidates if all(c in left or c not in self.definitions for c in callees[key])}:
            left |= found
            candidates -= found
        for key in left:
            del self.definitions[key]
        self.edges = {pair: edge for pair, edge in self.edges.items() if left.isdisjoint(pair)}

    def fill_rows(self) -> None:
        """Set `rows` and `virtual` from the tables of virtual functions."""
        for table, unit in self.tables.values():
            for rows in table.rows:
                for number, row in enumerate(rows):
                    if len(row) == 2:
                        key = self.final(unit.key(row[0]))
                        self.virtual.add(key)
                        if key in self.definitions:
                            self.rows[number, row[1]][key] = None

    def hand_over(self, units: Sequence[_Unit]) -> None:
        """Add calls of callbacks: functions that are passed as arguments to code without a call graph.

        The code that calls the callback is not in the graph. The function that passes the callback is therefore its
        caller. This also holds for a callback that no function of the graph calls.
        """
        called = {target for _, target in self.edges}
        for unit in units:
            for function in unit.functions:
                for to, name, sites, depth in function.handed:
                    target = self.final(unit.key(name))
                    outside = self.final(unit.key(to)) not in self.definitions
                    if outside or (target not in called and target in self.definitions):
                        self.add(unit.key(function.name), target, CallKind.HANDED, sites, depth)

    def add_all(self, caller: _Key, callees: Iterable[_Key], kind: CallKind, sites: int, depth: int) -> None:
        """Add call sites that may reach each of several functions."""
        for callee in callees:
            self.add(caller, callee, kind, sites, depth)

    def add(self, caller: _Key, callee: _Key, kind: CallKind, sites: int, depth: int) -> None:
        """Add call sites between two functions. If one of them is direct, the kind of the whole edge is direct.

        sites: number of call sites. depth: number of loops around the innermost one.
        """
        before = self.edges.get((caller, callee))
        if before is not None:
            kind = CallKind.DIRECT if before[0] is CallKind.DIRECT else kind
            sites, depth = sites + before[1], max(depth, before[2])
        self.edges[caller, callee] = kind, sites, depth

    def graph(self) -> CallGraph:
        """Return the call graph."""
        mentioned = dict.fromkeys(key for pair in self.edges for key in pair)
        self.numbers = {key: number for number, key in enumerate({**dict.fromkeys(self.definitions), **mentioned})}
        shared: dict[str, list[_Local]] = defaultdict(list)
        for key in self.numbers:
            if isinstance(key, tuple):
                shared[key[0]].append(key)
        overrides = self.overrides()
        functions = []
        for key in self.numbers:
            function = self.function(key, shared)
            functions.append(replace(function, overrides=tuple(sorted(overrides.get(key, ())))))
        calls = (
            Call(self.numbers[caller], self.numbers[callee], kind, sites, depth, kind is CallKind.DIRECT)
            for (caller, callee), (kind, sites, depth) in self.edges.items()
        )
        return CallGraph(tuple(functions), tuple(calls))

    def function(self, key: _Key, shared: dict[str, list[_Local]]) -> Function:
        """Return a function of the graph. shared: static functions by name.

        If a static function shares its name with others, its label contains its file and, if necessary, its line.
        """
        found = self.definitions.get(key)
        name = key if isinstance(key, str) else key[0]
        if found is None:
            return Function(name, name, name, defined=False)
        label = name
        if isinstance(key, tuple) and (len(shared[name]) > 1 or name in self.numbers):
            alike = [other for other in shared[name] if other[1] == key[1]]
            label = f"{name}@{key[1]}" + (f":{key[2]}" if len(alike) > 1 else "")
        return Function(
            label,
            name,
            found.display or readable_name(name),
            found.file,
            found.line,
            found.statements,
            found.loops,
            found.depth,
            True,
            found.local,
            found.weak,
            found.inline,
            found.fortran,
            found.start,
            found.taken,
            key in self.virtual,
        )

    def overrides(self) -> dict[_Key, set[str]]:
        """Return the linker names of the base-class functions that each virtual function overrides."""
        found: dict[_Key, set[str]] = defaultdict(set)
        for name, (table, unit) in self.tables.items():
            if not name.startswith("_ZTV"):
                continue
            bases, seen = table.bases, {name}
            while bases and table.rows:
                # Only the first base is followed: its table has the same rows. Tables of other bases contain thunks.
                base = "_ZTV" + bases[0].removeprefix("_ZTI")
                if base in seen or base not in self.tables:
                    break
                seen.add(base)
                above, home = self.tables[base]
                bases = above.bases
                for own, other in zip(table.rows[0], above.rows[0] if above.rows else (), strict=False):
                    if len(own) == len(other) == 2 and own[0] != other[0] and other[0] != "__cxa_pure_virtual":
                        found[self.final(unit.key(own[0]))].add(home.aliases.get(other[0], other[0]))
        return found
