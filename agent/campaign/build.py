# SPDX-License-Identifier: Apache-2.0
"""The build command of a campaign."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from quipu.modeling.errors import MeasurementError

from ..launch.process import Ending, run_process
from ..source.modules import modules
from .file import PLACEHOLDER, Campaign
from .left_behind import recorded_processes

_NOTHING: Mapping[str, str] = MappingProxyType({})


def build(campaign: Campaign, variables: Mapping[str, str] = _NOTHING) -> float:
    """Run the build line of a campaign with sh and these variables; return the seconds. Raises MeasurementError."""
    if not campaign.build:
        return 0.0
    of_all_points = {name: value for name, value in campaign.environment.items() if not PLACEHOLDER.search(value)}
    environment = {**os.environ, **of_all_points, **variables}
    try:
        with recorded_processes(campaign.directory) as marks:
            ending = run_process(("sh", "-c", campaign.build), {**environment, **marks}, folder=campaign.path.parent)
    except OSError as error:
        raise MeasurementError(f"{campaign.path}: build: sh: {error.strerror or error}") from error
    if ending.text:
        line = " ".join(campaign.build.split())
        raise ended(f"{campaign.path}: build: {line}: {ending.text}; nothing was measured", ending)
    return ending.seconds


def ended(message: str, ending: Ending) -> MeasurementError:
    """Return the error of a failed command: RunInterrupted if the exit code shows that the user interrupted it."""
    failure = MeasurementError(message)
    if ending.stopped_by is not None:
        failure.exit_code = 128 + ending.stopped_by
    return failure


def expect_plain(campaign: Campaign, programs: Iterable[Path]) -> None:
    """Raise MeasurementError if a program contains instrumentation after a build without it (QUIPU_OFF=1)."""
    for program in programs:
        if modules(program):
            raise MeasurementError(
                f"{campaign.path}: build: {program} has Quipu's instrumentation after a build with QUIPU_OFF=1: "
                f"the build did not create it. {BUILD_ALL}; nothing was measured"
            )


BUILD_ALL = (
    "The line must always compile and link the whole program of the command with the compiler wrappers, "
    'such as: build = "make clean && make CC=quipu-mpicc"'
)
"""The requirement of a refinement for the build command, for messages."""
