# SPDX-License-Identifier: Apache-2.0
"""Check, before the start of a program, for conditions that make its measurement useless, and return warnings."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import whole_number
from quipu.modeling.printable import counted
from quipu.mpi_wrap.program import is_elf, is_instrumented, mpi_of_program, needed_libraries

from ..archive.metadata import OTHERS_MATTER
from ..archive.read import read_metadata
from ..catalogue import BUSY_MACHINE, MORE_RANKS, NOT_INSTRUMENTED, OTHER_PARAMETERS
from ..launch.kernel import processor_ticks
from ..launch.launchers.base import LaunchPlan
from ..source.libraries import shared_libraries
from .launch_options import LaunchOptions

_OPENMP = ("libomp.", "libgomp.", "libiomp5.")
_WINDOW = 0.1
"""Seconds for which the load is observed: ten ticks of the kernel clock (10 ms each)."""


def load_now(seconds: float = _WINDOW) -> float:
    """Return the mean number of busy processors of this machine. The function observes them for `seconds`."""
    before, all_before = processor_ticks()
    time.sleep(seconds)
    after, all_after = processor_ticks()
    return (os.cpu_count() or 1) * (after - before) / max(all_after - all_before, 1)


def threads_of(plan: LaunchPlan, environment: Mapping[str, str]) -> int:
    """Return the number of threads per rank, from OMP_NUM_THREADS.

    Returns 1 if this variable is not set, or if no program of the launch is linked to an OpenMP runtime.
    """
    threads = whole_number(environment.get("OMP_NUM_THREADS", "").split(",")[0], 9)
    has_openmp = any(name.startswith(_OPENMP) for program in plan.programs for name in needed_libraries(program))
    return max(threads or 1, 1) if has_openmp else 1


def warnings_before(plan: LaunchPlan, options: LaunchOptions, load: float | None = None) -> list[str]:
    """Return warnings about conditions that make the measurements of a launch useless.

    load: mean number of processors that other programs use now (`load_now`); None: unknown, or not to be checked.
    """
    found = []
    if nothing := _nothing_measured(plan, options):
        found.append(nothing)
    if options.clock == "none" or plan.local_ranks is None or plan.family == "smpi":
        return found
    processors = len(os.sched_getaffinity(0))
    threads = threads_of(plan, {**os.environ, **options.environment})
    needed = plan.local_ranks * threads
    text = counted(plan.local_ranks, "rank", "ranks") + (f" with {threads} threads each" if threads > 1 else "")
    if needed > processors:
        found.append(MORE_RANKS(ranks=text, processors=counted(processors, "processor", "processors")))
    elif load is not None and needed + load > processors + OTHERS_MATTER and load >= OTHERS_MATTER:
        found.append(BUSY_MACHINE(load=load, processors=counted(processors, "processor", "processors"), needed=needed))
    return found


def other_parameters(experiment: Path, parameters: Mapping[str, float]) -> str:
    """Return a warning if the first run of an experiment has parameters with other names; otherwise ""."""
    for file in sorted(experiment.glob("*/run.json")):
        try:
            first = read_metadata(file.parent).parameters
        except FormatError:
            continue  # commands that read the experiment report the error
        if set(first) == set(parameters):
            return ""
        names, others = (", ".join(sorted(found)) or "none" for found in (first, parameters))
        return OTHER_PARAMETERS(
            folder=experiment.name, first=file.parent.name, names=names, other="this run", others=others
        )
    return ""


def _nothing_measured(plan: LaunchPlan, options: LaunchOptions) -> str:
    """Return the warning that no program of a launch will write a profile; "" if a program may write one."""
    if options.python or options.functions or plan.is_mpi or plan.may_launch or not plan.programs:
        return ""
    if any(not is_elf(program) or _is_measured(program) for program in plan.programs):
        return ""
    return NOT_INSTRUMENTED(program=plan.programs[-1].name)


def _is_measured(program: Path) -> bool:
    try:
        libraries = shared_libraries(program)
    except FormatError:
        libraries = []
    return mpi_of_program(program) is not None or any(is_instrumented(file) for file in (program, *libraries))
