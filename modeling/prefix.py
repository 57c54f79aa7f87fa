# SPDX-License-Identifier: Apache-2.0
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

    Each package of Spack has a separate prefix, and so has an installation by pip with --user or --prefix. The prefix
    of the running Python is used only if no prefix is found above the package.
    """
    home = environment.get("QUIPU_HOME")
    if home:
        return Path(home)
    if package.parent.name not in ("site-packages", "dist-packages"):
        return Path(sysconfig.get_path("data"))
    above = package.parents[1:5]  # of lib/python3.11/site-packages, local/lib/python3/dist-packages, …
    found = [folder for folder in above if (folder / NATIVE / "libquipu.so").is_file()]
    return found[0] if found else Path(sysconfig.get_path("data"))


def user_cache() -> Path | None:
    """Return the folder for what can be made again, ${XDG_CACHE_HOME:-~/.cache}/quipu, which need not be there.

    None if nothing says where a user without an entry in the list of users, as in many containers, is at home.
    """
    configured = os.environ.get("XDG_CACHE_HOME")
    try:
        cache = Path(configured) if configured else Path("~/.cache").expanduser()
    except RuntimeError:
        return None
    return cache.absolute() / "quipu"
