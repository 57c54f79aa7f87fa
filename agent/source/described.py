"""What the pass says of the call graph of each object file: the section .quipu.callgraph (llvm_pass/callgraph.h)."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Annotated

import msgspec
from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading

from .functions import damaged, pieces

SECTION = ".quipu.callgraph"
_HEAD = struct.Struct("<4sII")
_COMPRESSED, _PLAIN = b"QPZ1", b"QPR1"

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Sites = tuple[Name, Count, Count]
"""A callee or a type, the call sites, and the loops around the innermost of them."""


class DescribedFunction(msgspec.Struct, frozen=True, tag="function", tag_field="kind"):
    """A function with a body. virtual: row, type, sites, loops; handed: to whom, which function, sites, loops."""

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
    """A function of another object file whose address is taken in this one."""

    name: Name
    type: str = ""


class DescribedTable(msgspec.Struct, frozen=True, tag="table", tag_field="kind"):
    """Tables of virtual functions of a class, one for each base; rows: name and type of a function, or nothing."""

    name: Name
    rows: tuple[tuple[tuple[str, ...], ...], ...] = ()
    bases: tuple[str, ...] = ()


Entry = DescribedFunction | DescribedAlias | DescribedAddress | DescribedTable
_DECODER = msgspec.json.Decoder(Entry)


def object_files(path: Path) -> list[list[Entry]]:
    """Return what the object files in a program, library or object file say, one list each; empty without the section.

    Raises FormatError if the file is no ELF file, or the section is damaged.
    """
    found: list[list[Entry]] = []
    number = 0
    for text in _texts(path):
        entries: list[Entry] = []
        for line in text.splitlines():
            number += 1
            try:
                entries.append(_DECODER.decode(line))
            except (msgspec.DecodeError, RecursionError) as error:
                raise damaged(path, number, SECTION) from error
        found.append(entries)
    return found


def _texts(path: Path) -> list[bytes]:
    texts = []
    content = b"".join(pieces(path, SECTION))
    with reading(path, path.stat().st_size) as cost:
        at = 0
        while at < len(content):
            if content[at] == 0:  # padding of the linker
                at += 1
                continue
            cost.check_time()
            if at + _HEAD.size > len(content):
                raise _broken(path, at)
            kind, packed, size = _HEAD.unpack_from(content, at)
            at += _HEAD.size
            if kind not in (_COMPRESSED, _PLAIN) or at + packed > len(content):
                raise _broken(path, at - _HEAD.size)
            cost.spend(size)
            block = content[at : at + packed]
            text = _inflated(path, at, block, size) if kind == _COMPRESSED else block
            if len(text) != size:
                raise _broken(path, at)
            texts.append(text)
            at += packed
    return texts


def _inflated(path: Path, at: int, block: bytes, size: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(block, size + 1)
    except zlib.error as error:
        raise _broken(path, at) from error


def _broken(path: Path, at: int) -> FormatError:
    return FormatError(path, f"section {SECTION} is damaged at byte {at}: build the program again")
