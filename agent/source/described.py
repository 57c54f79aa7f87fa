# SPDX-License-Identifier: Apache-2.0
"""The call graph of each object file as stored by the pass (llvm_pass/callgraph.h)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from .functions import damaged, graph_texts

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Sites = tuple[Name, Count, Count]
"""A callee or a type, the number of call sites, and the number of loops around the innermost call site."""


class DescribedFunction(msgspec.Struct, frozen=True, tag="function", tag_field="kind"):
    """A function with a body.

    virtual: row of the table, type, sites, loops. handed: function arguments: callee, argument, sites, loops.
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
    """Another linker name of a function."""

    name: Name
    of: Name
    taken: bool = False


class DescribedAddress(msgspec.Struct, frozen=True, tag="taken", tag_field="kind"):
    """A function of another object file whose address this object file uses."""

    name: Name
    type: str = ""


class DescribedTable(msgspec.Struct, frozen=True, tag="table", tag_field="kind"):
    """Tables of virtual functions of a class, one for each base. rows: name and type of a function, or empty."""

    name: Name
    rows: tuple[tuple[tuple[str, ...], ...], ...] = ()
    bases: tuple[str, ...] = ()


Entry = DescribedFunction | DescribedAlias | DescribedAddress | DescribedTable
_DECODER = msgspec.json.Decoder(Entry)


def object_files(path: Path) -> list[list[Entry]]:
    """Return the call-graph entries of a program, library or object file, one list for each object file.

    The result is empty without entries. Raises FormatError if the file is not an ELF file, or the section is damaged.
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
