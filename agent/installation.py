# SPDX-License-Identifier: Apache-2.0
"""Find the native parts of Quipu: runtime, pass plugin, shim (quipu-exec), compiler wrappers, headers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.prefix import NATIVE, prefix

_INSTALLED = re.compile(r"quipu-([^-]+)\.dist-info")
REINSTALL = "install Quipu again (in its source folder: make build, or: pip install .)"


def native_folders(environment: Mapping[str, str] = os.environ) -> tuple[Path, Path]:
    """Return the folder of the libraries and the folder of the programs. environment: may contain QUIPU_HOME."""
    home = prefix(environment)
    return home / NATIVE, home / "bin"


def native_file(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the absolute path of a native part, such as "quipu-exec", "libquipu.so" or "include/quipu.h".

    Raises EnvironmentProblem, with the command that installs it, if the part is missing.
    """
    folders = native_folders(environment)
    for folder in folders:
        path = folder / name
        if path.exists():
            return path.absolute()
    home = " (QUIPU_HOME is set: check its value)" if environment.get("QUIPU_HOME") else ""
    raise EnvironmentProblem(f"{name} is neither in {folders[0]} nor in {folders[1]}{home}; {REINSTALL}")


def quipu_version() -> str:
    """Return the version of the installed Quipu; "unknown" if it is not installed as a package."""
    for folder in sys.path:  # the same search as importlib.metadata, whose import takes twenty times as long
        try:
            names = [path.name for path in Path(folder).iterdir()]
        except OSError:
            continue
        if found := next(filter(None, map(_INSTALLED.fullmatch, names)), None):
            return found[1]
    return "unknown"
