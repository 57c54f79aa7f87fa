# SPDX-License-Identifier: Apache-2.0
"""What a binary was made for: the section that instrumented code, the pass and the runtime carry."""

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
    """What a native file was made for.

    interface: the number of what instrumented code and runtime must agree on (agent/runtime/interface.h). version: of
    Quipu. source: one of its source files.
    """

    interface: int
    version: str
    source: str


def modules(path: Path) -> list[Module]:
    """Return what a program, a library, the pass or the runtime was made for; several that differ do not work.

    Empty if the file is no ELF file or holds nothing of Quipu (or is of a Quipu that did not say).
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
