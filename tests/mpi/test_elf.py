# SPDX-License-Identifier: Apache-2.0
"""The reader of ELF files against pyelftools, and on files that are damaged."""

from __future__ import annotations

import io
import shutil
import struct
import sys
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from quipu.agent.installation import native_file
from quipu.mpi_wrap.elf import NEEDED, ElfFile, NoElf

FILES = [
    Path(sys.executable).resolve(),
    Path(shutil.which("clang-19") or "/bin/sh").resolve(),
    native_file("libquipu.so"),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sections_are_those_of_another_reader(path: Path) -> None:
    with path.open("rb") as file, path.open("rb") as other:
        expected = [
            (part.name, part["sh_flags"], part["sh_addr"], part["sh_offset"], part["sh_size"], part["sh_link"])
            for part in ELFFile(other).iter_sections()
        ]
        elf = ElfFile(file)
        found = [(part.name, part.flags, part.address, part.offset, part.size, part.link) for part in elf.sections()]
        assert found == expected
        assert (elf.bits, elf.little_endian) == (64, True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_needed_libraries_are_those_of_another_reader(path: Path) -> None:
    with path.open("rb") as file, path.open("rb") as other:
        parts = [part for part in ELFFile(other).iter_sections() if isinstance(part, DynamicSection)]
        expected = [str(vars(tag)["needed"]) for part in parts for tag in part.iter_tags("DT_NEEDED")]
        assert [text for tag, text in ElfFile(file).dynamic() if tag == NEEDED] == expected


def big_endian() -> bytes:
    """A 32-bit big-endian file with one named section of four bytes."""
    names = b"\0.names\0.here\0"
    sections = [(0,) * 10, (1, 3, 0, 0, 52, len(names), 0, 0, 1, 0), (8, 1, 2, 4096, 66, 4, 0, 0, 1, 0)]
    header = struct.pack(">HHIIIIIHHHHHH", 1, 8, 1, 0, 0, 72, 0, 52, 0, 0, 40, 3, 1)
    content = b"\x7fELF\x01\x02\x01" + bytes(9) + header + names + b"data" + b"\0\0"
    return content + b"".join(struct.pack(">10I", *section) for section in sections)


def test_files_of_32_bits_and_the_other_byte_order() -> None:
    elf = ElfFile(io.BytesIO(big_endian()))
    assert (elf.bits, elf.little_endian) == (32, False)
    part = elf.section(".here")
    assert part is not None
    assert (part.address, elf.data(part)) == (4096, b"data")
    assert elf.section(".not-here") is None


def test_what_is_cut_off_anywhere_is_an_error_or_read_as_it_is() -> None:
    whole = big_endian()
    for length in range(len(whole)):
        with pytest.raises(NoElf):
            list(ElfFile(io.BytesIO(whole[:length])).sections())


def test_every_changed_byte_is_an_error_or_read() -> None:
    whole = big_endian()
    for place in range(len(whole)):
        for value in (0, 1, 0x7F, 0xFF):
            content = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                elf = ElfFile(io.BytesIO(content))
                for part in elf.sections():
                    elf.data(part)
                list(elf.dynamic())
            except NoElf:
                continue
