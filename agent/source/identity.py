# SPDX-License-Identifier: Apache-2.0
"""What identifies a program: its code and data, and its compiler."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

_LONGEST = 200  # characters of the text about compilers


def identity(path: Path) -> tuple[str, str] | None:
    """Return a digest of a program and the compilers that its file names; None if it cannot be read.

    The digest of an ELF file is that of all that is loaded, except notes: a build number or debugging information says
    nothing about what the program does. That of another file is of its content.
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
        with path.open("rb") as file:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section["sh_type"] not in ("SHT_NOTE", "SHT_NOBITS"):
                    digest.update(f"{section.name}\0{section['sh_size']}\0".encode())
                    digest.update(section.data())
            comment = elf.get_section_by_name(".comment")
            text = b"" if comment is None else bytes(comment.data())
            compilers = [part.decode("utf-8", "replace") for part in text.split(b"\0") if part]
            return digest.hexdigest()[:32], "; ".join(dict.fromkeys(compilers))[:_LONGEST]
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        return hashlib.sha256(path.read_bytes()).hexdigest()[:32], ""
