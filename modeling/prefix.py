# SPDX-License-Identifier: Apache-2.0
"""Find the folders of this installation of Quipu."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path

NATIVE = Path("lib", "quipu")
"""The folder of the libraries, relative to the prefix."""


def prefix(environment: Mapping[str, str] = os.environ, package: Path = Path(__file__).parents[1]) -> Path:
    """Return the prefix, the folder that contains bin and lib/quipu.

    The prefix is the first of these folders: QUIPU_HOME in `environment`; a folder above `package` (the Python package)
    that contains lib/quipu; the prefix of the running Python. The prefix of Python is not always correct: packages of
    Spack, and installations by pip with --user or --prefix, have another prefix.
    """
    home = environment.get("QUIPU_HOME")
    if home:
        return Path(home)
    if package.parent.name not in ("site-packages", "dist-packages"):
        return Path(sysconfig.get_path("data"))
    above = package.parents[1:5]  # the prefix is above lib/python3.11/site-packages, local/lib/python3/dist-packages, …
    found = [folder for folder in above if (folder / NATIVE / "libquipu.so").is_file()]
    return found[0] if found else Path(sysconfig.get_path("data"))


def user_cache() -> Path | None:
    """Return the cache folder ${XDG_CACHE_HOME:-~/.cache}/quipu, which may not exist yet.

    Returns None if the home folder is unknown. In many containers, for example, the user has no entry in passwd.
    """
    configured = os.environ.get("XDG_CACHE_HOME")
    try:
        cache = Path(configured) if configured else Path("~/.cache").expanduser()
    except RuntimeError:
        return None
    return cache.absolute() / "quipu"
