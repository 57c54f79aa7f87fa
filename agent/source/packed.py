# SPDX-License-Identifier: Apache-2.0
"""Read texts that the compiler pass stores in sections of a program that are not loaded when it runs.

Such a section contains one block per object file (llvm_pass/sections.h). A block begins with "QPS1" (zstd), "QPZ1"
(zlib) or "QPR1" (uncompressed). The stored size and the size of the text follow (bytes; 32 bits each, little-endian),
then the data.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pyarrow
from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading, without_waiting
from quipu.mpi_wrap.elf import COMPRESSED, ElfFile, NoElf

_HEAD = struct.Struct("<4sII")
_ZSTD, _ZLIB, _PLAIN = b"QPS1", b"QPZ1", b"QPR1"


def texts(path: Path, name: str) -> list[bytes]:
    """Return the text of each object file in a section of a program, library or object file.

    The result is empty if there is no section `name`. A section that begins with text instead of a block is one text.
    Raises FormatError like `pieces`, and for a damaged block.
    """
    found = []
    sections = pieces(path, name)
    content = b"".join(sections)
    if not content.lstrip(b"\0 \n").startswith(b"QP"):
        return [b"\n".join(sections)] if sections else []
    with reading(path, path.stat().st_size) as cost:
        at = 0
        while at < len(content):
            if content[at] == 0:  # padding of the linker
                at += 1
                continue
            cost.check_time()
            if at + _HEAD.size > len(content):
                raise _broken(path, name, at)
            kind, packed, size = _HEAD.unpack_from(content, at)
            at += _HEAD.size
            if kind not in (_ZSTD, _ZLIB, _PLAIN) or at + packed > len(content):
                raise _broken(path, name, at - _HEAD.size)
            cost.spend(size)
            block = content[at : at + packed]
            text = block if kind == _PLAIN else _inflated(path, name, at, block, size, kind == _ZSTD)
            if len(text) != size:
                raise _broken(path, name, at)
            found.append(text)
            at += packed
    return found


def _inflated(path: Path, name: str, at: int, block: bytes, size: int, is_zstd: bool) -> bytes:
    """Return the text of a compressed block. size: of the text. Raises FormatError if the block is damaged."""
    try:
        if is_zstd:
            text: bytes = pyarrow.decompress(block, size, "zstd", asbytes=True)
            return text
        return zlib.decompressobj().decompress(block, size + 1)
    except (zlib.error, pyarrow.ArrowException, OSError) as error:
        raise _broken(path, name, at) from error


def _broken(path: Path, name: str, at: int) -> FormatError:
    return FormatError(path, f"section {name} is damaged at byte {at}: build the program again")


def pieces(path: Path, name: str) -> list[bytes]:
    """Return the contents of all sections `name` of an ELF file; empty if there are none.

    Raises FormatError if the file is damaged or not an ELF file.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb", opener=without_waiting) as file, reading(path, size):
            if not path.is_file():
                raise FormatError(path, "is not a regular file")
            elf = ElfFile(file)
            found = [entry for entry in elf.sections() if entry.name == name]
            if any(entry.flags & COMPRESSED or entry.offset + entry.size > size for entry in found):
                raise FormatError(path, f"section {name} is damaged: build the program again")
            return [elf.data(entry) for entry in found]
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    except NoElf as error:
        raise FormatError(path, "is not a program or object file (ELF), or it is damaged") from error
