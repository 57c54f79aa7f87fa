# SPDX-License-Identifier: Apache-2.0
"""Identify the measured programs and libraries of a run, for its fingerprint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Region, RegionKind

from ..archive.fingerprint import Fingerprint, ProgramIdentity
from ..profile.reader import ProcessProfile
from ..source.identity import identity
from ..source.libraries import shared_libraries
from ..source.modules import modules

_INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3[.\d]*/")


def with_programs(fingerprint: Fingerprint | None, profiles: Iterable[ProcessProfile]) -> Fingerprint | None:
    """Return the fingerprint with the programs of the processes and their instrumented libraries; None stays None."""
    if fingerprint is None:
        return None
    programs = dict.fromkeys(profile.attributes.get("program", "") for profile in profiles)
    return replace(fingerprint, programs={**fingerprint.programs, **identities(Path(one) for one in programs if one)})


def identities(programs: Iterable[Path]) -> dict[str, ProgramIdentity]:
    """Return the identities of programs and of the instrumented libraries that they load, by file name.

    Files that do not exist are left out.
    """
    files = dict.fromkeys(file for program in programs for file in _files(program))
    return {file.name: known for file in files if (known := program_identity(file)) is not None}


def with_modules(fingerprint: Fingerprint | None, regions: Iterable[Region]) -> Fingerprint | None:
    """Return the fingerprint with the identities of the Python files that contain measured regions.

    Installed packages and the standard library are left out, because they rarely change between runs.
    """
    if fingerprint is None:
        return None
    names = {region.file: None for region in regions if region.kind is RegionKind.PYTHON and region.file}
    files = [Path(name) for name in names if name.startswith("/") and not _INSTALLED.search(name)]
    found = {_module(file): known for file in files if (known := program_identity(file)) is not None}
    return replace(fingerprint, programs={**fingerprint.programs, **found})


def _module(file: Path) -> str:
    return f"{file.parent.name}/{file.name}" if file.name == "__init__.py" else file.name


def program_identity(path: Path) -> ProgramIdentity | None:
    """Return the identity of a file as it is now; None if it does not exist."""
    known = identity(path)
    return None if known is None else ProgramIdentity(str(path), *known)


def _files(program: Path) -> Iterator[Path]:
    yield program
    try:
        yield from (library for library in shared_libraries(program) if modules(library))
    except FormatError:
        return  # the libraries are unknown: the program is for another machine, or was removed
