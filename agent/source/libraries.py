# SPDX-License-Identifier: Apache-2.0
"""Find the shared libraries that a program loads, as the dynamic linker does."""

from __future__ import annotations

import os
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading, without_waiting
from quipu.mpi_wrap.elf import NEEDED, RPATH, RUNPATH, ElfFile, NoElf


def shared_libraries(program: Path) -> list[Path]:
    """Return the shared libraries that a program needs, directly or indirectly, each once, in the order of loading.

    The search uses DT_RPATH, $LD_LIBRARY_PATH and DT_RUNPATH. It leaves out the system folders, because the user has
    not built their libraries, and missing libraries. Raises FormatError if `program` is not an ELF file.
    """
    found: dict[Path, None] = {}
    waiting = [program]
    while waiting:
        file = waiting.pop(0)
        needed, folders = _dynamic(file)
        for name in needed:
            place = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if place is not None and place.resolve() not in found:
                found[place.resolve()] = None
                waiting.append(place.resolve())
    return list(found)


def _dynamic(path: Path) -> tuple[list[str], list[Path]]:
    """Return the names of the libraries that a file needs, and the folders to search for them in this order."""
    try:
        with open(path, "rb", opener=without_waiting) as file, reading(path, path.stat().st_size):
            tags = list(ElfFile(file).dynamic())
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    except NoElf as error:
        raise FormatError(path, "is not a program or object file (ELF), or it is damaged") from error
    needed = [text for kind, text in tags if kind == NEEDED]
    early = [folder for kind, text in tags if kind == RPATH for folder in text.split(":")]
    late = [folder for kind, text in tags if kind == RUNPATH for folder in text.split(":")]
    inherited = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    origin = str(path.resolve().parent)
    texts = [*([] if late else early), *inherited, *late]
    return needed, [Path(text.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)) for text in texts if text]
