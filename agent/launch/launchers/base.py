# SPDX-License-Identifier: Apache-2.0
"""The interface of launchers: the requested launch, and the plan of the measured launch."""

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
    """Quipu refused a launch before anything was started. reason: why; the message adds "(nothing was started)"."""

    def __init__(self, reason: str) -> None:
        super().__init__(NOTHING_STARTED(reason=reason))
        self.reason = reason


@dataclass(frozen=True)
class LaunchRequest:
    """The launch that the user requested.

    - command: all words after `--`.
    - shim: path of quipu-exec, the program that the launcher starts for each rank instead of the measured program.
      quipu-exec prepares the measurement and then executes the measured program.
    - environment: the environment of the user. variables: environment variables that every rank needs.
    - cores: number of physical cores that the launch may use. folder: the working folder of the launch.
    - superuser: whether the user is root.
    - rates: content of the file of rates (seconds per unit of effort), if simulated computation takes the time of its
      effort (`--compute effort`); otherwise None.
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
    """The plan of a measured launch.

    - argv: the command to execute. environment: variables to add to the environment of the user, including `variables`
      of the request.
    - ranks: number of ranks; None if unknown. rank_processes: whether each rank is a process (simulated ranks are not).
      local_ranks: number of ranks that run on processors of this machine; None if unknown or simulated.
    - programs: paths of the measured executables. is_mpi: whether they are MPI programs.
    - family, version: of the launcher. launcher: its name in the command of the user.
    - settings: the variables in `environment` that Quipu adds for the MPI. notes: lines for the user about additions.
    - files: text of each file to create before the start, by path. details: further facts to store with the run.
    - if_it_crashes: a possible cause of a segmentation fault, and what to do. if_unmeasured: a possible reason for
      missing profiles. Both are empty if none is known.
    - may_launch: whether the command is a script or another program that may itself start a launcher.
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
    """A family of launchers, such as the launchers of Open MPI.

    family: its name in archives. title: its name in messages. commands: names of its programs, which may have an ending
    such as .openmpi. answer: a pattern for the output of `LAUNCHER --version` of this family; the group that matches is
    the version. packages: the Debian packages that install it.
    """

    family: str
    title: str
    commands: tuple[str, ...]
    answer: re.Pattern[str]
    packages: str

    def __init__(self, version: str = "") -> None:
        """Create the launcher. version: as printed by the launcher, like "4.1.4"."""
        self.version = version

    @abstractmethod
    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return the plan of a launch. Raises MeasurementError, which names the program or option at fault."""


def find_program(name: str, environment: Mapping[str, str], folders: Sequence[Path] = (Path(),)) -> Path:
    """Return the path of a program: a name without "/" is first searched in PATH, then in `folders`.

    folders: working folders of the launcher, tried in this order. Raises NothingStarted if there is no such executable.
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
    if "/" in name:
        raise NothingStarted(f"{name}: the program does not exist")
    raise NothingStarted(f"{name}: is not in PATH; write ./{name} for a program in this folder")


def is_program(name: str, environment: Mapping[str, str], folder: Path = Path()) -> bool:
    """Return whether a word of a command is the name of an executable file in PATH or `folder`."""
    try:
        find_program(name, environment, (folder,))
    except MeasurementError:
        return False
    return True
