# SPDX-License-Identifier: Apache-2.0
"""Programs and packages that some tests need and that may be missing on a machine.

A test that needs a missing peer is skipped, and the reason names the peer. The file build/missing-peers holds one
`name: reason` per line for each peer whose installation failed.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
RECORD = Path(__file__).parents[2] / "build" / "missing-peers"


@dataclass(frozen=True)
class Peer:
    """A peer: `is_there` finds it, and `install` says how to install it."""

    is_there: Callable[[], bool]
    install: str


def _module(name: str, package: str) -> Peer:
    return Peer(lambda: _importable(name), f"pip install {package}")


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a package that should contain it is missing
        return False


def _programs(*names: str, packages: str) -> Peer:
    return Peer(lambda: all(map(shutil.which, names)), f"apt-get install {packages}")


def _one_of(*names: str, package: str) -> Peer:
    return Peer(lambda: any(map(shutil.which, names)), f"apt-get install {package}")


SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
PEERS = {
    **{
        package: _module(module, package)
        for package, module in {
            "caliper-reader": "caliperreader",
            "llnl-hatchet": "hatchet",
            "llnl-thicket": "thicket",
            "llvmlite": "llvmlite",
            "matplotlib": "matplotlib",
            "ipykernel": "ipykernel",
            "mpi4py": "mpi4py",
            "mypy": "mypy",
            "nbclient": "nbclient",
            "pandas": "pandas",
            "plotly": "plotly",
            "protobuf": "google.protobuf",
            "psij-python": "psij",
            "pycubexr": "pycubexr",
        }.items()
    },
    "chromium": _one_of("chromium", "google-chrome", package="chromium"),
    "environment-modules": Peer(
        lambda: Path("/usr/share/modules/init/sh").is_file(), "apt-get install environment-modules"
    ),
    "fish": _programs("fish", packages="fish"),
    "gfortran": _programs("gfortran", packages="gfortran"),
    "lld": _one_of("ld.lld-19", "ld.lld", package="lld-19"),
    "PAPI": Peer(lambda: ctypes.util.find_library("papi") is not None, "apt-get install libpapi7.0"),
    "MPICH": _programs("mpicc.mpich", "mpirun.mpich", packages="mpich libmpich-dev"),
    "npm": _programs("npm", "node", packages="npm nodejs"),
    "SimGrid": _programs("smpicc", "smpirun", packages="libsimgrid-dev"),
    "Slurm": _programs(*SLURM, packages="slurmctld slurmd slurm-client munge"),
    "zsh": _programs("zsh", packages="zsh"),
}


@cache
def _recorded() -> dict[str, str]:
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.is_file() else []
    pairs = [line.partition(":") for line in lines if line.strip()]
    return {name.strip(): reason.strip() for name, _, reason in pairs}


@cache
def lacking(*names: str) -> str:
    """Return why tests that need these peers cannot run here: the first that is missing. "" if all are there."""
    for name in names:
        peer = PEERS[name]
        if not peer.is_there():
            why = _recorded().get(name)
            return f"{name} failed to install: {why}" if why else f"{name} is not installed: {peer.install}"
    return ""


def needs(*names: str) -> pytest.MarkDecorator:
    """Return the mark of a test, a parameter or a module (`pytestmark`) that needs these peers."""
    return pytest.mark.skipif(bool(lacking(*names)), reason=lacking(*names) or "all peers are there")


def require(*names: str) -> None:
    """Skip the test that runs, or the module that is imported, if one of these peers is missing."""
    if reason := lacking(*names):
        pytest.skip(reason, allow_module_level=True)


@cache
def _installation(name: str, install: Callable[[], T]) -> tuple[T | None, str]:
    if why := _recorded().get(name):
        return None, why
    try:
        return install(), ""
    except (OSError, subprocess.SubprocessError) as error:
        return None, str(error)


def installed_on_use(name: str, install: Callable[[], T]) -> T:
    """Install a peer on first use, and return the result of `install`: its path.

    Skip the running test if the installation failed, in this process or earlier.
    """
    found, why = _installation(name, install)
    if found is None:
        pytest.skip(f"{name} failed to install: {why}")
    return found
