# SPDX-License-Identifier: Apache-2.0
"""Static facts that the compiler pass stored in a program: its functions, their sizes and callees.

The section `.quipu.facts` is not loaded when the program runs. It contains one line of JSON per function, compressed,
of all object files in succession. The call graph is in the same section; its lines begin with their kind.
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

    name: linker name. blocks, instructions: of LLVM IR. calls: linker names of the called functions, in order of the
    first call. indirect_calls: number of calls with an unknown callee. hook: whether it is a separate region. inlined:
    whether this is a copy that was inlined into another function.
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
    """Return the functions of a program, library or object file in the order of the section.

    Inline and template functions in several object files appear once. Raises FormatError if the file is not an ELF
    file, has no such section, or the section is damaged.
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
    """Yield the entries in the text of the section with their numbers, from 1. Raises FormatError if one is damaged."""
    for number, line in enumerate(text.replace(b"\0", b"").split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=kind)
            except (msgspec.DecodeError, RecursionError) as error:
                raise damaged(path, number) from error


def section(path: Path) -> bytes:
    """Return the facts of a program, library or object file. Raises FormatError like `static_functions`."""
    found = texts(path, SECTION)
    if not found:
        raise SectionMissing(
            path,
            f"contains no facts of functions (section {SECTION}): build it with the compiler wrappers, and do not "
            "strip it",
        )
    return b"\n".join(line for text in found for line in text.split(b"\n") if not line.startswith(_GRAPH))


def graph_texts(path: Path) -> list[bytes]:
    """Return the lines about the call graph, for each object file that has some. Raises FormatError like `texts`."""
    lines = [[line for line in text.split(b"\n") if line.startswith(_GRAPH)] for text in texts(path, SECTION)]
    return [b"\n".join(found) for found in lines if found]


def damaged(path: Path, number: int) -> FormatError:
    """Return the error for an invalid entry of a section."""
    return FormatError(path, f"section {SECTION}, entry {number}, is damaged: build the program again")
