"""Where the native parts of Quipu are: runtime, pass plugin, shim, compiler wrappers, headers."""

from __future__ import annotations

import importlib.metadata
import os
import struct
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from quipu.modeling.errors import EnvironmentProblem

MODULES = ".quipu.modules"
_MODULE = struct.Struct("<I28s96s")  # struct quipu_module of inlined.h
REINSTALL = "install Quipu again (in its source folder: make build, or: pip install .)"


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
            section = ELFFile(file).get_section_by_name(MODULES)
            data = b"" if section is None else bytes(section.data())
    except (OSError, ELFError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        return []  # what pyelftools raises for files that are damaged
    whole = len(data) - len(data) % _MODULE.size
    return [
        Module(interface, *(text.split(b"\0")[0].decode("utf-8", "replace") for text in texts))
        for interface, *texts in _MODULE.iter_unpack(data[:whole])
    ]


def native_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, Path]:
    """Return the folder of libraries and the folder of programs: below QUIPU_HOME, else of this Python environment."""
    home = environment.get("QUIPU_HOME")
    if home:
        return Path(home) / "lib" / "quipu", Path(home) / "bin"
    return Path(sysconfig.get_path("data")) / "lib" / "quipu", Path(sysconfig.get_path("scripts"))


def native_file(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the absolute path of a native part, like "quipu-exec", "libquipu.so" or "include/quipu.h".

    Raises EnvironmentProblem, with the command that installs it, if the part is missing.
    """
    folders = native_folders(environment)
    for folder in folders:
        path = folder / name
        if path.exists():
            return path.absolute()
    home = " (QUIPU_HOME is set: is it right?)" if environment.get("QUIPU_HOME") else ""
    raise EnvironmentProblem(f"{name} is neither in {folders[0]} nor in {folders[1]}{home}; {REINSTALL}")


def quipu_version() -> str:
    """Return the version of this Quipu, "unknown" if it runs from sources that were never installed."""
    try:
        return importlib.metadata.version("quipu")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
