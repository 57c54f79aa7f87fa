# SPDX-License-Identifier: Apache-2.0
"""Identify a version of a program by a digest of its code and data, and by its compilers."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading
from quipu.mpi_wrap.elf import ALLOCATED, EMPTY, NOTE, ElfFile, NoElf

_LONGEST = 200  # largest number of characters of the text about compilers


def identity(path: Path) -> tuple[str, str] | None:
    """Return a digest of a program, and the compilers that its file names; None if the file cannot be read.

    The digest of an ELF file covers all sections that are loaded when the program runs, except notes. It does not
    depend on build numbers and debug information, which do not change the behaviour of the program. The digest of any
    other file covers its whole content, and the text of compilers is empty.
    """
    try:
        status = path.stat()
        return _identity(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@lru_cache(256)
def _identity(path: Path, changed: int, size: int) -> tuple[str, str]:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file, reading(path, size):
            elf = ElfFile(file)
            for section in elf.sections():
                if section.flags & ALLOCATED and section.type not in (NOTE, EMPTY):
                    digest.update(f"{section.name}\0{section.size}\0".encode())
                    digest.update(elf.data(section))
            comment = elf.section(".comment")
            text = b"" if comment is None else elf.data(comment)
            compilers = [part.decode("utf-8", "replace") for part in text.split(b"\0") if part]
            return digest.hexdigest()[:32], "; ".join(dict.fromkeys(compilers))[:_LONGEST]
    except (NoElf, FormatError):
        return hashlib.sha256(path.read_bytes()).hexdigest()[:32], ""
