# SPDX-License-Identifier: Apache-2.0
"""Read the call graph of each object file, which the compiler pass stores as lines of JSON (llvm_pass/callgraph.h)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from .functions import damaged, graph_texts

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Sites = tuple[Name, Count, Count]
"""A callee or the type of a function, the number of call sites, and the number of loops around the innermost one."""


class DescribedFunction(msgspec.Struct, frozen=True, tag="function", tag_field="kind"):
    """A function with a body.

    - name: linker name. display: readable name; empty if it follows from the linker name.
    - statements: number of source lines with executed code (llvm_pass/statements.h). loops: number of loops. depth:
      largest number of nested loops.
    - local: static. fortran: a Fortran procedure. start: runs without a caller, such as main. taken: the program uses
      its address, so that it may be called through a pointer. type: the type of the function, as indirect calls use it.
    - calls: direct calls. indirect: calls through pointers, by type.
    - virtual: calls of virtual functions: row of the table, type, number of call sites, depth of loops.
    - handed: functions that are passed as arguments: callee, passed function, number of call sites, depth of loops.
    """

    name: Name
    display: str = ""
    file: str = ""
    line: Count = 0
    statements: Count = 0
    loops: Count = 0
    depth: Count = 0
    local: bool = False
    weak: bool = False
    inline: bool = False
    fortran: bool = False
    start: bool = False
    taken: bool = False
    type: str = ""
    calls: tuple[Sites, ...] = ()
    indirect: tuple[Sites, ...] = ()
    virtual: tuple[tuple[Count, str, Count, Count], ...] = ()
    handed: tuple[tuple[Name, Name, Count, Count], ...] = ()


class DescribedAlias(msgspec.Struct, frozen=True, tag="alias", tag_field="kind"):
    """Another linker name of a function. of: the linker name of this function."""

    name: Name
    of: Name
    taken: bool = False


class DescribedAddress(msgspec.Struct, frozen=True, tag="taken", tag_field="kind"):
    """A function of another object file whose address this object file takes."""

    name: Name
    type: str = ""


class DescribedTable(msgspec.Struct, frozen=True, tag="table", tag_field="kind"):
    """The tables of virtual functions of a class.

    rows: for each table, its rows: linker name and type of a function; empty for a row without a known function. bases:
    linker names of the type information of the base classes.
    """

    name: Name
    rows: tuple[tuple[tuple[str, ...], ...], ...] = ()
    bases: tuple[str, ...] = ()


Entry = DescribedFunction | DescribedAlias | DescribedAddress | DescribedTable
_DECODER = msgspec.json.Decoder(Entry)


def object_files(path: Path) -> list[list[Entry]]:
    """Return the call-graph entries in a program, library or object file, one list for each object file with entries.

    Raises FormatError if the file is not an ELF file, or the section is damaged.
    """
    found: list[list[Entry]] = []
    number = 0
    for text in graph_texts(path):
        entries: list[Entry] = []
        for line in text.splitlines():
            number += 1
            try:
                entries.append(_DECODER.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                raise damaged(path, number) from error
        found.append(entries)
    return found
