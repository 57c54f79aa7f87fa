# SPDX-License-Identifier: Apache-2.0
"""Choose the PMPI library (measuring wrappers of the MPI functions) of a launch.

The launcher, the programs and the library must belong to the same MPI.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from quipu.mpi_wrap.installation import MPICH, OPEN_MPI, SMPI, MpiInstallation, describe_mpicc
from quipu.mpi_wrap.library import mpi_library
from quipu.mpi_wrap.program import mpi_of_program

from .launchers import LaunchPlan
from .launchers.base import NothingStarted
from .launchers.detect import is_launcher

Plan = Callable[[Mapping[str, str]], LaunchPlan]
_OF_LAUNCHER = {"openmpi": OPEN_MPI, "mpich": MPICH, "smpi": SMPI}  # srun of a batch system belongs to no MPI
_DEBIAN = {OPEN_MPI: ".openmpi", MPICH: ".mpich"}


def with_mpi(
    plan: LaunchPlan,
    plan_with: Plan,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    library: Path | None = None,
    reduce: bool,
) -> LaunchPlan:
    """Return a plan in which the PMPI library is preloaded into the programs.

    - plan_with: returns the plan of the same launch with other variables.
    - variables: the variables of the launch. QUIPU_MPI_WAIT and QUIPU_MPI_REDUCE are only added if they are not set.
    - library: the PMPI library; None: the library for the MPI of the launch, built if necessary.
    - reduce: whether the ranks may combine their profiles over MPI in MPI_Finalize (reduction).

    Raises MeasurementError if programs, launcher and library belong to different MPIs.
    """
    library = library or library_for(plan.launcher, plan, environment)
    # With several programs, one may run without the wrappers. The reduction would then wait for its ranks forever.
    same = "1" if len(set(plan.programs)) == 1 else "0"
    return plan_with(
        {
            **variables,
            "QUIPU_PRELOAD": str(library.absolute()),
            "QUIPU_MPI_WAIT": variables.get("QUIPU_MPI_WAIT") or "local",
            "QUIPU_MPI_REDUCE": (variables.get("QUIPU_MPI_REDUCE") or same) if reduce and plan.rank_processes else "0",
        }
    )


def library_for(launcher: str, plan: LaunchPlan, environment: Mapping[str, str]) -> Path:
    """Return the PMPI library for a launch, built if necessary.

    The library is built with one mpicc. This is $QUIPU_MPICC if it is set. Otherwise it is the mpicc in the folder of
    the launcher (mpicc.mpich for mpirun.mpich, smpicc for smpirun). For srun and without a launcher it is mpicc in
    PATH; on Debian also mpicc.openmpi or mpicc.mpich if the programs need it.

    Raises MeasurementError before the start if programs, launcher and library belong to different MPIs.
    """
    family = _OF_LAUNCHER.get(plan.family)
    built_for = {program: found for program in plan.programs if (found := mpi_of_program(program)) is not None}
    for program, found in built_for.items():
        if family is not None and found != family:
            raise NothingStarted(
                f"{program} was built for {found}, and {launcher} belongs to {family}: each process would run alone. "
                f"{_other_launcher(found)}, or build the program for {family}"
            )
        family = found
    installation = _installation(launcher, family, environment)
    for program, found in built_for.items():
        if installation.interface not in (found, None):
            raise NothingStarted(
                f"{program} was built for {found}, and {installation.mpicc} belongs to {installation}: name the mpicc "
                f"of {found} in QUIPU_MPICC"
            )
    return mpi_library(installation)


def _other_launcher(family: str) -> str:
    """Return the advice to use a launcher of this MPI, by name if it is installed."""
    name = f"mpirun{_DEBIAN[family]}" if family in _DEBIAN else "smpirun"
    return f"Start it with {name}" if shutil.which(name) else f"Start it with the launcher of {family}"


def _installation(launcher: str, family: str | None, environment: Mapping[str, str]) -> MpiInstallation:
    """Return the MPI of the mpicc that `library_for` describes. family: the MPI of the programs; None if unknown."""
    found = shutil.which(launcher, path=environment.get("PATH"))
    if "QUIPU_MPICC" in environment or found is None:
        return describe_mpicc(environment.get("QUIPU_MPICC"))
    name, dot, suffix = Path(launcher).name.partition(".")
    if name != "srun" and is_launcher(launcher):
        for compiler in ("smpicc",) if name == "smpirun" else (f"mpicc{dot}{suffix}", "mpicc"):
            beside = Path(found).with_name(compiler)
            if os.access(beside, os.X_OK):
                return describe_mpicc(str(beside))
    default = describe_mpicc()
    other = f"mpicc{_DEBIAN.get(family or '', '')}"
    fits = family is None or default.interface in (family, None) or shutil.which(other) is None
    return default if fits else describe_mpicc(other)
