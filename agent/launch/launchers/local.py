# SPDX-License-Identifier: Apache-2.0
"""Launchers that start processes: mpirun of Open MPI, mpiexec of MPICH (Hydra), srun of Slurm; or no launcher."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from quipu.modeling.errors import MeasurementError
from quipu.modeling.limits import whole_number
from quipu.mpi_wrap.installation import SMPI
from quipu.mpi_wrap.program import is_instrumented, mpi_of_program

from .base import Launcher, LaunchPlan, LaunchRequest, find_program, is_program
from .options import HYDRA, OPEN_MPI, SLURM, Context, contexts


class _Additions:
    """Environment variables that Quipu adds for the MPI, and a note about each one.

    A variable that the user has already set is not changed.
    """

    def __init__(self, request: LaunchRequest) -> None:
        self.environment = request.environment
        self.settings: dict[str, str] = {}
        self.notes: list[str] = []

    def set(self, name: str, value: str, why: str) -> None:
        if name not in self.environment:
            self.settings[name] = value
            self.notes.append(f"{name}={value} ({why})")


class Direct(Launcher):
    """No launcher: the command is the program, which may be an MPI program with one rank."""

    family = "none"

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan in which quipu-exec starts the program."""
        program = find_program(request.command[0], request.environment, (request.folder,))
        return LaunchPlan(
            argv=(str(request.shim), *request.command),
            environment=dict(request.variables),
            ranks=1,
            programs=(program,),
            family=self.family,
            version=self.version,
            is_mpi=mpi_of_program(program) not in (None, SMPI),
            local_ranks=1,
            may_launch=mpi_of_program(program) is None and not is_instrumented(program),
        )


class OpenMPI(Launcher):
    """mpirun of Open MPI. Local ranks inherit the environment; ranks on other nodes only get variables named by -x."""

    family, title = "openmpi", "Open MPI"
    commands = ("mpirun", "mpiexec", "orterun", "prterun")
    packages = "libopenmpi-dev openmpi-bin"
    answer = re.compile(r"Open ?MPI\)? v?(\d[\w.]*)|OpenRTE\)? (\d[\w.]*)|PRRTE\)? (\d[\w.]*)")

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan with -x if there may be several nodes, and with settings that allow the launch.

        The settings permit root to start ranks, and more ranks than cores on one node (oversubscription).
        """
        programs = contexts(request.command, OPEN_MPI, _exists(request), files=("app",))
        ranks = _ranks(programs, ("n", "np", "c"))
        added = _Additions(request)
        if request.superuser and not any(context.has("allow-run-as-root") for context in programs):
            project = "PRTE" if _is_prterun(request) else "OMPI"
            for name in (f"{project}_ALLOW_RUN_AS_ROOT", f"{project}_ALLOW_RUN_AS_ROOT_CONFIRM"):
                added.set(name, "1", "you are root: without it Open MPI would refuse to start")
        remote = self._several_nodes(programs, request)
        if ranks is not None and ranks > request.cores and not remote:
            self._oversubscribe(programs, self._has_prrte(request), f"{ranks} ranks on {request.cores} cores", added)
        forwarded: list[str] = []
        if remote:
            for name in (*request.variables, *added.settings):
                forwarded += ["-x", name]
        return _assembled(self, request, programs, ranks, remote=remote, added=added, forwarded=forwarded)

    def _several_nodes(self, programs: list[Context], request: LaunchRequest) -> bool:
        """Return whether ranks may run on other nodes."""
        named = ("H", "host", "hostfile", "machinefile", "default-hostfile")
        return any(context.has(*named) for context in programs) or _in_a_job(request)

    def _has_prrte(self, request: LaunchRequest) -> bool:
        """Return whether PRRTE, the runtime environment of Open MPI 5 and later, starts the ranks."""
        return _is_prterun(request) or self.version.split(".")[0] not in ("1", "2", "3", "4")

    def _oversubscribe(self, programs: list[Context], prrte: bool, why: str, added: _Additions) -> None:
        if not any(context.has("oversubscribe") for context in programs):
            if not prrte:
                added.set("OMPI_MCA_rmaps_base_oversubscribe", "1", why)
            elif not any(context.has("map-by") for context in programs):
                added.set("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", why)
        if not _names_setting(programs, "mpi_yield_when_idle"):
            added.set("OMPI_MCA_mpi_yield_when_idle", "1", f"{why}: waiting ranks give way")


class Hydra(Launcher):
    """mpiexec of MPICH, MVAPICH and Intel MPI. By default, all ranks get the whole environment."""

    family, title = "mpich", "MPICH, Intel MPI"
    commands = ("mpirun", "mpiexec")
    packages = "libmpich-dev mpich"
    answer = re.compile(r"HYDRA[\s\S]*?Version:\s*(\d[\w.]*)|Intel\(R\) MPI Library[^\n]*Version ([\d.]+)")

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan with -env for each variable of Quipu if the options restrict the environment of the ranks."""
        programs = contexts(request.command, HYDRA, _exists(request), files=("configfile",))
        ranks = _ranks(programs, ("n", "np"))
        forwarded: list[str] = []
        if any(context.has("genvnone", "genvlist", "envnone", "envlist") for context in programs):
            for name, value in request.variables.items():
                forwarded += ["-env", name, value]
        remote = any(context.has("f", "host", "hosts", "hostfile", "machinefile") for context in programs)
        remote = remote or _in_a_job(request)
        return _assembled(self, request, programs, ranks, remote=remote, forwarded=forwarded)


class Slurm(Launcher):
    """srun of Slurm. All ranks get the whole environment unless --export restricts it."""

    family, title = "slurm", "Slurm"
    commands = ("srun",)
    packages = "slurm-client"
    answer = re.compile(r"^slurm(?:-wlm)? (\d[\w.]*)", re.MULTILINE)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan in which quipu-exec starts each program.

        Raises MeasurementError for an --export without ALL, because it would exclude the variables of Quipu.
        """
        programs = contexts(request.command, SLURM, _exists(request), files=("multi-prog",), joined_short=True)
        for context in programs:
            exported = context.last("export")
            if exported is not None and "ALL" not in exported.split(","):
                raise MeasurementError(
                    f"srun --export={exported}: the ranks would not get the variables that start the measurement; "
                    f"use --export=ALL{'' if exported == 'NONE' else ',' + exported}"
                )
        return _assembled(self, request, programs, _ranks(programs, ("n", "ntasks")), remote=True)


def _is_prterun(request: LaunchRequest) -> bool:
    """Return whether the launcher is prterun, which has the version numbers and variables of PRRTE."""
    return Path(request.command[0]).name.startswith("prterun")


def _in_a_job(request: LaunchRequest) -> bool:
    """Return whether a batch job with several nodes, or of PBS, starts this launch."""
    nodes = whole_number(request.environment.get("SLURM_JOB_NUM_NODES", ""))
    return (nodes or 1) > 1 or "PBS_NODEFILE" in request.environment


def _exists(request: LaunchRequest) -> Callable[[str], bool]:
    return lambda word: is_program(word, request.environment, request.folder)


def _ranks(programs: list[Context], names: tuple[str, ...]) -> int | None:
    """Return the number of ranks of all programs together; None if the options do not give it for each program.

    names: the options that give the number.
    """
    total = 0
    for context in programs:
        value = whole_number(context.last(*names) or "")
        if value is None:
            return None
        total += value
    return total


def _names_setting(programs: list[Context], name: str) -> bool:
    """Return whether the command sets this MCA parameter (a setting of Open MPI)."""
    given = [entry for context in programs for kind in ("mca", "gmca") for entry in context.options.get(kind, [])]
    return any(entry[:1] == (name,) for entry in given)


def _assembled(
    launcher: Launcher,
    request: LaunchRequest,
    programs: list[Context],
    ranks: int | None,
    *,
    remote: bool,
    added: _Additions | None = None,
    forwarded: list[str] | None = None,
) -> LaunchPlan:
    """Return a plan whose command has the `forwarded` options and quipu-exec before every program.

    remote: whether ranks may run on other nodes. added: settings for the MPI. forwarded: options that pass variables to
    the ranks.
    """
    command = request.command
    added = added or _Additions(request)
    argv = [command[0]]
    found = []
    for context in programs:
        folder = context.last("wdir", "wd", "D", "chdir")
        folders = (request.folder / folder, request.folder) if folder else (request.folder,)
        found.append(find_program(command[context.program], request.environment, folders))
        if len(argv) > 1:
            argv.append(":")
        options = [word for word in command[context.begin : context.program] if word != "--"]
        argv += [*(forwarded or []), *options, str(request.shim), *command[context.program : context.end]]
    return LaunchPlan(
        argv=tuple(argv),
        environment={**request.variables, **added.settings},
        settings=added.settings,
        notes=tuple(added.notes),
        ranks=ranks,
        programs=tuple(found),
        family=launcher.family,
        version=launcher.version,
        is_mpi=True,
        local_ranks=None if remote else ranks,
    )
