# SPDX-License-Identifier: Apache-2.0
"""Read programs, libraries and object files (ELF): their sections, and the libraries that they need.

Source: System V Application Binary Interface, chapters 4 (object files) and 5 (dynamic section); elf.h. Every start
of `quipu run` uses this module to read the measured program, so the module imports little.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from quipu.modeling.limits import current

COMPRESSED = 0x800
"""SHF_COMPRESSED, a flag of a section."""
NEEDED, RPATH, RUNPATH = 1, 15, 29
"""DT_NEEDED, DT_RPATH and DT_RUNPATH, tags of entries of the dynamic section whose values are strings."""
ALLOCATED = 0x2
"""SHF_ALLOC, a flag of a section: the section is in memory while the program runs."""
NOTE, EMPTY = 7, 8
"""SHT_NOTE and SHT_NOBITS, types of a section."""
_DYNAMIC = 6  # SHT_DYNAMIC
_EXTENDED = 0xFFFF  # SHN_XINDEX in e_shstrndx: the link of section 0 is the index of the section with all names
_IDENTIFICATION = 16  # bytes of e_ident at the beginning of a file
# Formats for `struct`, by the class of a file (1: 32 bits, 2: 64 bits): the file header after e_ident, the header of a
# section, an entry of the dynamic section.
_HEADER = {1: "HHIIIIIHHHHHH", 2: "HHIQQQIHHHHHH"}
_SECTION = {1: "IIIIIIIIII", 2: "IIQQQQIIQQ"}
_ENTRY = {1: "iI", 2: "qQ"}
_SHOFF, _SHENTSIZE, _SHNUM, _SHSTRNDX = 5, 10, 11, 12  # indices of fields in the unpacked file header


class NoElf(ValueError):
    """A file is not an ELF file, or it is damaged."""


class Section(NamedTuple):
    """A section: name, type and flags as in elf.h; load address; offset and size in the file, in bytes.

    link: index of the section that this section refers to, for example the string table of a symbol table.
    """

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


class ElfFile:
    """An ELF file that is open for reading in binary mode.

    Methods raise NoElf for a damaged file, OSError if reading fails, and FormatError beyond the limits of
    `quipu.modeling.limits`.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read the header. Raises NoElf if the file has no ELF header."""
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        ident = self._read(0, _IDENTIFICATION)
        if ident[:4] != b"\x7fELF" or ident[4] not in _HEADER or ident[5] not in (1, 2):
            raise NoElf("not an ELF file")
        self.bits = 32 * ident[4]
        self.little_endian = ident[5] == 1
        self._class, self._order = ident[4], "<" if self.little_endian else ">"
        header = self._unpack(_HEADER, _IDENTIFICATION)
        self._first, self._step = header[_SHOFF], header[_SHENTSIZE]
        self._count, self._names = header[_SHNUM], header[_SHSTRNDX]
        if self._first and (self._count == 0 or self._names == _EXTENDED):
            first = self._raw(0)
            self._count = self._count or first.size
            self._names = first.link if self._names == _EXTENDED else self._names
        if not self._first:
            self._count = 0
        if self._count and self._first + self._count * self._step > self._size:
            raise NoElf("its table of sections ends behind the file")

    def sections(self) -> Iterator[Section]:
        """Yield all sections in file order, including the empty section at index 0."""
        names = self.data(self._raw(self._names)) if self._count else b""
        for index in range(self._count):
            current().check_time()  # a damaged header may give billions of sections
            section = self._raw(index)
            yield section._replace(name=text_at(names, int(section.name)))

    def section(self, name: str) -> Section | None:
        """Return the first section of this name; None if there is none."""
        return next((section for section in self.sections() if section.name == name), None)

    def data(self, section: Section) -> bytes:
        """Return the bytes of a section as stored in the file (possibly compressed).

        The bytes count toward the limit on memory (`quipu.modeling.limits`).
        """
        if section.type == EMPTY:
            return b""
        current().spend(section.size)
        return self._read(section.offset, section.size)

    def linked(self, section: Section) -> bytes:
        """Return the bytes of the section that this section refers to."""
        return self.data(self._raw(section.link))

    def dynamic(self) -> Iterator[tuple[int, str]]:
        """Yield tag (NEEDED, RPATH or RUNPATH) and string of each entry of the dynamic section with such a tag."""
        entry = struct.Struct(self._order + _ENTRY[self._class])
        for section in self.sections():
            if section.type == _DYNAMIC:
                texts, entries = self.linked(section), self.data(section)
                for tag, value in entry.iter_unpack(entries[: len(entries) // entry.size * entry.size]):
                    if tag in (NEEDED, RPATH, RUNPATH):
                        yield tag, text_at(texts, value)

    def _raw(self, index: int) -> Section:
        """Return a section by its index. Its name is replaced by the decimal offset of the name in the string table."""
        if index and index >= self._count:
            raise NoElf("it names a section that it does not have")
        fields = self._unpack(_SECTION, self._first + index * self._step)
        return Section(str(fields[0]), *fields[1:7])

    def _unpack(self, formats: dict[int, str], offset: int) -> tuple[int, ...]:
        layout = struct.Struct(self._order + formats[self._class])
        return layout.unpack(self._read(offset, layout.size))

    def _read(self, offset: int, size: int) -> bytes:
        if offset + size > self._size:
            raise NoElf("it is cut off")
        self._file.seek(offset)
        content = self._file.read(size)
        if len(content) != size:
            raise NoElf("it is cut off")
        return content


def text_at(texts: bytes, at: int) -> str:
    """Return the string at an offset of a string table; empty if the offset is outside."""
    return texts[at : texts.find(b"\0", at)].decode("utf-8", "replace") if at < len(texts) else ""
