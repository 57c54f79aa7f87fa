# SPDX-License-Identifier: Apache-2.0
"""Find the family of the launcher in a command, and plan the measured launch."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quipu.modeling.errors import MeasurementError, UsageError

from .base import Launcher, LaunchPlan, LaunchRequest, find_program, is_program
from .local import Direct, Hydra, OpenMPI, Slurm
from .prefix import is_env, start_of_command, waiting
from .simulated import Simulated, smpirun_command

_TIMEOUT = 20.0  # seconds until `LAUNCHER --version` must have ended
FAMILIES: tuple[type[Launcher], ...] = (OpenMPI, Hydra, Slurm, Simulated)
_COMMANDS = re.compile(rf"({'|'.join(name for kind in FAMILIES for name in kind.commands)})([.-].*)?")

Ask = Callable[[Path, Mapping[str, str]], str]
"""A function that returns the version text of a launcher: `version_text`, or another one in tests."""


def is_launcher(command: str) -> bool:
    """Return whether `command`, the first word of a command, is the name or path of a supported launcher."""
    return _COMMANDS.fullmatch(Path(command).name) is not None


def launch_command(launcher: str, program: Sequence[str], ranks: int | None, platform: Path | None) -> tuple[str, ...]:
    """Return the launch command for the option `--launcher`, whose command is the program without a launcher.

    platform: file that describes the simulated machine; None: a default. Raises UsageError if the launcher is not smpi,
    the program is itself a launcher, or the program or the number of ranks is missing.
    """
    if launcher != "smpi":
        raise UsageError(
            f"launcher {launcher!r} is unknown; choose smpi, or write the launcher in the command: mpirun -n 4 ./app"
        )
    if program and is_launcher(program[0]):
        raise UsageError(f"with launcher smpi the command is the program alone (./app): remove {program[0]}")
    return smpirun_command(program, ranks, platform)


def version_text(path: Path, environment: Mapping[str, str]) -> str:
    """Return the output of `path --version`. Raises MeasurementError if it does not start or does not end in time."""
    try:
        answer = subprocess.run(
            [path, "--version"],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"{path} --version: no answer within {_TIMEOUT:.0f} s; run: quipu doctor") from error
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be started: {error.strerror or error}") from error
    return answer.stdout + answer.stderr


def launcher_for(text: str) -> Launcher | None:
    """Return the launcher that prints this version text; None for an unknown family."""
    for kind in FAMILIES:
        match = kind.answer.search(text)
        if match:
            return kind(next((group for group in match.groups() if group), ""))
    return None


def plan_launch(request: LaunchRequest, ask: Ask = version_text) -> LaunchPlan:
    """Return the plan of a measured launch. This function starts nothing but `LAUNCHER --version`.

    The command may begin with programs that run another command, such as env or timeout. Raises MeasurementError if the
    command is empty, the family of the launcher is unknown, or a program is missing.
    """
    if not request.command:
        raise MeasurementError("no command given; write it after --, like: quipu run -- mpirun -n 4 ./app")
    place = start_of_command(request.command, lambda word: is_program(word, request.environment, request.folder))
    before, own = request.command[:place], replace(request, command=request.command[place:])
    if before:
        find_program(before[0], request.environment, (request.folder,))
    plan = _plan(_launcher(own, ask), own)
    # The variables are set a second time after `env`, because `env -i` removes the variables that start measuring.
    again = ("env", *(f"{name}={value}" for name, value in plan.environment.items())) if is_env(before) else ()
    return replace(plan, argv=(*waiting(before), *again, *plan.argv))


def _launcher(request: LaunchRequest, ask: Ask) -> Launcher:
    """Return the launcher that is the first word of a command; `Direct` if the first word is no launcher."""
    name = request.command[0]
    if not is_launcher(name):
        return Direct()
    path = _find_launcher(request)
    environment = dict(request.environment)
    environment.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    environment.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    text = ask(path, environment)
    launcher = launcher_for(text)
    if launcher is None:
        first = text.strip().splitlines()[:1]
        raise MeasurementError(
            f"{name}: is not a launcher that Quipu supports ({', '.join(kind.title for kind in FAMILIES)}); "
            f"it prints {first[0] if first else 'nothing'!r}"
        )
    # The plan keeps the name of the launcher as the user wrote it. Open MPI treats an absolute path like --prefix: it
    # puts its own folder first in the PATH of the ranks.
    return launcher


def _find_launcher(request: LaunchRequest) -> Path:
    """Return the path of the launcher. Raises MeasurementError with the command that installs a missing launcher."""
    name = request.command[0]
    if not is_program(name, request.environment, request.folder) and "/" not in name:
        kind = next(kind for kind in FAMILIES if re.match(rf"({'|'.join(kind.commands)})\b", name))
        raise MeasurementError(
            f"{name} of {kind.title} is not installed, or not in PATH (nothing was started). On Debian, install it "
            f"with: apt-get install {kind.packages}"
        )
    return find_program(name, request.environment, (request.folder,)).absolute()


def _plan(launcher: Launcher, request: LaunchRequest) -> LaunchPlan:
    if request.rates is not None and not isinstance(launcher, Simulated):
        raise MeasurementError(
            f"{request.command[0]}: computation takes the time of its effort in simulations only; "
            "give --launcher smpi and the program alone"
        )
    variables = {**request.variables, "QUIPU_LAUNCHER": launcher.family}
    return replace(launcher.plan(replace(request, variables=variables)), launcher=request.command[0])
