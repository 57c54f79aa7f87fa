# SPDX-License-Identifier: Apache-2.0
"""Read the interface number and the version that instrumented code, the compiler pass and the runtime contain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.mpi_wrap.elf import ElfFile, NoElf

from ..layout import LAYOUT

MODULES = LAYOUT.texts["MODULES"]
_MODULE = LAYOUT.packed("module")


@dataclass(frozen=True)
class Module:
    """The interface number and version of a native file.

    interface: number of the interface between instrumented code and runtime (agent/runtime/interface.h); files work
    together only if their numbers are equal. version: of Quipu; empty if unknown. source: one of its source files.
    """

    interface: int
    version: str
    source: str


def modules(path: Path) -> list[Module]:
    """Return the entries in a program, a library, the pass or the runtime, usually one per object file.

    The result is empty if the file cannot be read, is not an ELF file, or contains no entry.
    """
    try:
        with path.open("rb") as file:
            elf = ElfFile(file)
            section = elf.section(MODULES)
            data = b"" if section is None else elf.data(section)
    except (OSError, NoElf, FormatError):
        return []
    whole = len(data) - len(data) % _MODULE.size
    return [
        Module(interface, *(text.split(b"\0")[0].decode("utf-8", "replace") for text in texts))
        for interface, *texts in _MODULE.iter_unpack(data[:whole])
    ]
