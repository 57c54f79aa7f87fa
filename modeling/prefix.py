"""Where Quipu is installed."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path

NATIVE = Path("lib", "quipu")
"""The folder of Quipu's libraries below its prefix."""


def prefix(environment: Mapping[str, str] = os.environ, package: Path = Path(__file__).parents[1]) -> Path:
    """Return the folder above bin and lib/quipu: QUIPU_HOME, else the one that `package`, the Python package, is in.

    Each package of Spack has a prefix of its own, as has what pip installs with --user, --prefix or --target: that of
    the running Python is right only if there is nothing above the package.
    """
    home = environment.get("QUIPU_HOME")
    if home:
        return Path(home)
    in_python = package.parent.name in ("site-packages", "dist-packages")  # below lib/python3, lib/python3.11, …
    above = package.parents[1:5] if in_python else package.parents[:1]  # the latter is the folder of --target
    found = [folder for folder in above if (folder / NATIVE / "libquipu.so").is_file()]
    return found[0] if found else Path(sysconfig.get_path("data"))
