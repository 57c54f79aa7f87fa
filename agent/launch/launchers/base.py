# SPDX-License-Identifier: Apache-2.0
"""The interface of launchers: the request, and the plan of a launch."""

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

    - command: all words after `--`. shim: path of quipu-exec. folder: the working folder of the launch.
    - environment: the environment of the user. variables: environment variables that every rank needs.
    - cores: physical cores of this machine.
    - rates: the rates for the runtime, if the time of simulated computation follows from its effort.
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

    - argv: the command. environment: variables to add to the environment of the user, including `variables` of the
      request. settings: the variables in `environment` that only the MPI needs; notes: one line for each.
    - ranks: number of processes, None if unknown. rank_processes: whether each rank is a process. local_ranks: number
      of ranks that run on processors of this machine, None if unknown; 0 for simulated ranks.
    - programs: the executables that were found. files: files to create in the raw folder before the start.
    - details: further facts about the launch, stored with the run.
    - if_it_crashes: a possible cause of a segmentation fault, and what to do. if_unmeasured: a possible reason for
      missing profiles; "" if there is none.
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

    family: its name in runs. title: its name in messages. commands: names of its programs, also with an ending such as
    .openmpi. answer: a pattern that finds the version in the output of `LAUNCHER --version`; its groups are
    alternatives. packages: the Debian packages that install it.
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
        """Return the plan of the launch. Raises MeasurementError with the wrong program or option."""


def find_program(name: str, environment: Mapping[str, str], folders: Sequence[Path] = (Path(),)) -> Path:
    """Return the path of a program, found like the launcher finds it. Raises MeasurementError with its name.

    folders: working folders of the launcher, for relative paths.
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
    """Return whether a word of a command is the name of an executable file."""
    try:
        find_program(name, environment, (folder,))
    except MeasurementError:
        return False
    return True
