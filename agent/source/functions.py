# SPDX-License-Identifier: Apache-2.0
"""Read the static facts that the compiler pass stores in a program: its functions, their sizes and callees.

They are in the section `.quipu.facts` of the program, which is not loaded when the program runs. The section contains a
compressed text for each object file, with one line of JSON for each function. The lines that begin with "kind" belong
to the call graph (described.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from quipu.modeling.errors import FormatError, SectionMissing

from .packed import texts
from .readable import readable_name

SECTION = ".quipu.facts"
_GRAPH = b'{"kind"'
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class StaticFunction:
    """One function after inlining.

    name: linker name. display: readable name. blocks, instructions: their number in LLVM IR. calls: linker names of the
    called functions, in the order of their first call. indirect_calls: number of calls with an unknown callee. hook:
    whether the function has hooks, so that it is a separate region. inlined: whether this is the copy of a function
    that was inlined into another one.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    display: str = ""
    file: str = ""
    line: Count = 0
    blocks: Count = 0
    instructions: Count = 0
    calls: tuple[str, ...] = ()
    indirect_calls: Count = 0
    hook: bool = False
    inlined: bool = False


def static_functions(path: Path | str) -> list[StaticFunction]:
    """Return the functions of a program, library or object file in the order of the section, without inlined copies.

    A function that several object files contain (inline, template) appears once. Raises FormatError if the file is not
    an ELF file, has no section of facts, or the section is damaged.
    """
    path = Path(path)
    functions: dict[str, StaticFunction] = {}
    for _, function in entries(path, section(path), StaticFunction):
        if not function.inlined:
            functions.setdefault(
                function.name, replace(function, display=function.display or readable_name(function.name))
            )
    return list(functions.values())


def entries(path: Path, text: bytes, kind: type[_Entry]) -> Iterator[tuple[int, _Entry]]:
    """Yield number and content of each entry in the text of the section. Raises FormatError if one is damaged.

    The number is the line of the text, from 1. kind: the type of the entries.
    """
    for number, line in enumerate(text.replace(b"\0", b"").split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=kind)
            except (msgspec.DecodeError, RecursionError) as error:
                raise damaged(path, number) from error


def section(path: Path) -> bytes:
    """Return the text of the section without the call graph. Raises FormatError like `static_functions`."""
    found = texts(path, SECTION)
    if not found:
        raise SectionMissing(
            path,
            f"contains no facts of functions (section {SECTION}): build it with the compiler wrappers, and do not "
            "strip it",
        )
    return b"\n".join(line for text in found for line in text.split(b"\n") if not line.startswith(_GRAPH))


def graph_texts(path: Path) -> list[bytes]:
    """Return the text about the call graph of each object file that has one. Raises FormatError like `texts`."""
    lines = [[line for line in text.split(b"\n") if line.startswith(_GRAPH)] for text in texts(path, SECTION)]
    return [b"\n".join(found) for found in lines if found]


def damaged(path: Path, number: int) -> FormatError:
    """Return the error for an invalid entry of the section. number: as in `entries`."""
    return FormatError(path, f"section {SECTION}, entry {number}, is damaged: build the program again")
