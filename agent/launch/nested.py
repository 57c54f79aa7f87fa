# SPDX-License-Identifier: Apache-2.0
"""Measure the ranks of launchers that the launched command itself starts: job.sh in `quipu run -- bash job.sh`.

Quipu puts a folder at the begin of PATH. It contains a script for each launcher in PATH, with the same name. Each
script runs this module, which plans the launch like `quipu run`, records it in the raw folder (job-<number>.json), and
executes the launcher. A launcher that the command calls by its path does not use these scripts; the runtime then
detects its ranks (other_launcher.cpp).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quipu.modeling.errors import QuipuError
from quipu.modeling.prefix import NATIVE

from .launchers import LaunchPlan, LaunchRequest, plan_launch
from .launchers.base import NothingStarted
from .launchers.detect import is_launcher
from .mpi_choice import with_mpi
from .processors import own_cores

FOLDER = "launchers"
_PRELOAD, _PYTHONPATH = "QUIPU_OUTER_PRELOAD", "QUIPU_OUTER_PYTHONPATH"
_OF_PROCESSES = ("QUIPU_RANK", "QUIPU_RANKS", "QUIPU_PARENT")  # variables of the outer process, wrong for the ranks


def with_launchers_replaced(plan: LaunchPlan, shim: Path, raw: Path, environment: Mapping[str, str]) -> LaunchPlan:
    """Return a plan with the scripts for a command that may start launchers.

    shim: path of quipu-exec. raw: the raw folder of the run. environment: the environment of the user.
    """
    search = environment.get("PATH", os.defpath)
    names = sorted({name for folder in search.split(os.pathsep) for name in _launchers_in(Path(folder))})
    if not names:
        return plan
    scripts = {raw / FOLDER / name: _script(name, shim, environment) for name in names}
    path = f"{(raw / FOLDER).absolute()}{os.pathsep}{search}"
    return replace(plan, files={**plan.files, **scripts}, environment={**plan.environment, "PATH": path})


def _launchers_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if is_launcher(path.name) and os.access(path, os.X_OK)]
    except OSError:
        return []


def _script(name: str, shim: Path, environment: Mapping[str, str]) -> str:
    """Return the script that replaces a launcher.

    The script executes this module with the Python that runs Quipu. It first removes what would measure this Python:
    LD_PRELOAD, and the entries of Quipu in PYTHONPATH.
    """
    command = shlex.join([sys.executable, "-P", "-m", __name__, str(shim), name])
    own = environment.get("PYTHONPATH", "")
    return (
        "#!/bin/sh\n"
        f'export {_PRELOAD}="$LD_PRELOAD" {_PYTHONPATH}="$PYTHONPATH" PYTHONPATH={shlex.quote(own)}\n'
        "unset LD_PRELOAD\n"
        f'exec {command} "$@"\n'
    )


def main(arguments: Sequence[str]) -> int:
    """Execute a launcher so that its ranks are measured; return 127 if it cannot be started.

    If the launch cannot be planned, its processes are measured, but not as ranks. arguments: the path of quipu-exec,
    the name of the launcher, and its arguments.
    """
    environment = _outer_environment()
    shim, name, *rest = arguments
    argv = [name, *rest]
    started = environment
    if any(not word.startswith("-") for word in rest):
        try:
            plan = _planned(tuple(argv), Path(shim), environment)
            argv, started = list(plan.argv), {**environment, **plan.environment}
        except (QuipuError, OSError) as error:
            reason = error.reason if isinstance(error, NothingStarted) else str(error)
            print(f"quipu: {name}: the processes of this launch are not measured as ranks: {reason}", file=sys.stderr)
            started = {**environment, **_for_unmeasured(argv, reason)}
    try:
        os.execvpe(argv[0], argv, started)
    except OSError as error:
        print(f"quipu: {argv[0]}: {error.strerror}", file=sys.stderr)
    return 127


def _for_unmeasured(argv: Sequence[str], reason: str) -> dict[str, str]:
    """Record a launch whose processes are not measured as ranks; return an environment variable for these processes.

    The result restores QUIPU_PARENT, the process that started the program; it is empty if that is unknown.
    """
    raw = Path(os.environ["QUIPU_DIR"])
    try:
        _, descriptor = _new_job(raw)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"family": "none", "version": "", "ranks": None, "argv": argv, "refused": reason}, file)
    except OSError as error:
        print(f"quipu: {raw}: {error.strerror}", file=sys.stderr)
    parent = os.environ.get("QUIPU_PARENT")
    return {"QUIPU_PARENT": parent} if parent else {}


def _outer_environment() -> dict[str, str]:
    """Return the environment of this process without the changes that Quipu made to measure the outer command."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_PROCESSES}
    raw = Path(environment["QUIPU_DIR"])
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    environment["PATH"] = os.pathsep.join(folder for folder in folders if Path(folder) != (raw / FOLDER).absolute())
    preloads = environment.pop(_PRELOAD, "").split(":")
    paths = environment.pop(_PYTHONPATH, "").split(":")
    _set_list(environment, "LD_PRELOAD", [path for path in preloads if not _is_own_library(Path(path))])
    _set_list(environment, "PYTHONPATH", [path for path in paths if not path.endswith(f"{NATIVE}/python")])
    return environment


def _is_own_library(path: Path) -> bool:
    """Return whether an entry of LD_PRELOAD is a library of Quipu or a link to one (quipu-exec names both)."""
    return path.name.startswith(("libquipu", "quipu-"))


def _set_list(environment: dict[str, str], name: str, entries: list[str]) -> None:
    """Set a variable to a list separated by colons; remove the variable if the list is empty."""
    environment.pop(name, None)
    if text := ":".join(entry for entry in entries if entry):
        environment[name] = text


def _planned(command: tuple[str, ...], shim: Path, environment: Mapping[str, str]) -> LaunchPlan:
    """Return the plan of a launch, after creating its files and its record. Raises MeasurementError or OSError."""
    raw = Path(environment["QUIPU_DIR"])
    variables = {name: value for name, value in environment.items() if name.startswith("QUIPU_")}
    number, descriptor = _new_job(raw)
    variables["QUIPU_JOB"] = str(number)
    request = LaunchRequest(command, shim, environment, variables, own_cores())
    try:
        plan = plan_launch(request)
        if plan.is_mpi:
            reduce = "QUIPU_SAMPLE_FUNCTIONS" not in variables
            again = lambda changed: plan_launch(replace(request, variables=changed))  # noqa: E731
            plan = with_mpi(plan, again, variables, environment, reduce=reduce)
        for path, text in plan.files.items():
            path.write_text(text, encoding="utf-8")
    except BaseException:
        os.close(descriptor)
        (raw / f"job-{number}.json").unlink()
        raise
    facts = {  # the fields of LaunchedJob (jobs.py); importing this class would delay the launch
        "family": plan.family,
        "version": plan.version,
        "ranks": plan.ranks,
        "argv": plan.argv,
        "settings": dict(plan.settings),
    }
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(facts, file)
    return plan


def _new_job(raw: Path) -> tuple[int, int]:
    """Create the file of the next job; return the number of the job, from 1, and the descriptor of the file."""
    number = 1
    while True:
        try:
            return number, os.open(raw / f"job-{number}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            number += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
