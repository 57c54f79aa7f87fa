# SPDX-License-Identifier: Apache-2.0
"""What a launcher is asked, and what it answers."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quipu.modeling.errors import MeasurementError

from ...catalogue import NOTHING_STARTED


class NothingStarted(MeasurementError):
    """A launch was refused before anything was started. reason: why, without these words."""

    def __init__(self, reason: str) -> None:
        super().__init__(NOTHING_STARTED(reason=reason))
        self.reason = reason


@dataclass(frozen=True)
class LaunchRequest:
    """A launch as the user wrote it.

    command: all after `--`. shim: path of quipu-exec. environment: the user's environment.
    variables: what every rank must find in its environment. cores: physical cores of this machine.
    folder: the working folder of the launch. rates: what the runtime reads of rates, if computation is simulated by its
    effort.
    """

    command: tuple[str, ...]
    shim: Path
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    cores: int
    folder: Path = Path()
    superuser: bool = field(default_factory=lambda: os.geteuid() == 0)
    rates: str | None = None


@dataclass(frozen=True)
class LaunchPlan:
    """A launch that measures.

    argv: what to start. environment: what to add to the user's environment, `variables` of the request included.
    settings: the part of `environment` that Quipu added for the MPI's sake; notes: one line on each.
    ranks: how many processes, None if the command does not say. programs: the executables that were found.
    files: what must be there before the start, in the folder for raw profiles. details: more about the launch, kept
    with the run. rank_processes: whether each rank is a process. local_ranks: how many run on processors of this
    machine, None if that is not known; simulated ranks need none. if_it_crashes: what a segmentation fault may be of,
    and what to do about it. if_unmeasured: why there may be no profile at all; "" if the launch itself gives no reason.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    ranks: int | None
    programs: tuple[Path, ...]
    family: str
    version: str
    is_mpi: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    files: Mapping[Path, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    rank_processes: bool = True
    local_ranks: int | None = None
    if_it_crashes: str = ""
    if_unmeasured: str = ""
    launcher: str = ""
    may_launch: bool = False


class Launcher(ABC):
    """One family of launchers.

    family: as runs name it. title: as messages name it. commands: what its programs are called, each also with an
    ending such as .openmpi. answer: finds the version in what `LAUNCHER --version` prints; its groups are alternatives.
    packages: the Debian packages that install it.
    """

    family: str
    title: str
    commands: tuple[str, ...]
    answer: re.Pattern[str]
    packages: str

    def __init__(self, version: str = "") -> None:
        """version: as the launcher prints it, like "4.1.4"."""
        self.version = version

    @abstractmethod
    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return the launch that measures. Raises MeasurementError naming the program or option at fault."""


def find_program(name: str, environment: Mapping[str, str], folders: Sequence[Path] = (Path(),)) -> Path:
    """Return the path of a program as the launcher would find it, or raise MeasurementError that names it.

    folders: what relative paths are relative to (the working folders that the launcher was given).
    """
    if "/" not in name:
        found = shutil.which(name, path=environment.get("PATH", os.defpath))
        if found:
            return Path(found)
    for folder in folders:
        candidate = folder / name
        if candidate.is_file():
            if not os.access(candidate, os.X_OK):
                raise NothingStarted(f"{name}: is not executable; run: chmod +x {name}")
            return candidate
    if any((folder / name).is_dir() for folder in folders):
        raise NothingStarted(f"{name}: is a folder, not a program")
    hint = "" if "/" in name else "; it is not in PATH (write ./ before the name of a program in this folder)"
    raise NothingStarted(f"{name}: no such program{hint}")


def is_program(name: str, environment: Mapping[str, str], folder: Path = Path()) -> bool:
    """Whether a word of a command names something that can be executed."""
    try:
        find_program(name, environment, (folder,))
    except MeasurementError:
        return False
    return True
