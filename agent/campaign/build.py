# SPDX-License-Identifier: Apache-2.0
"""Run the build line of a campaign, and check the programs that it builds."""

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
    """Run the build line of a campaign with sh; return the elapsed seconds, 0 without a build line.

    variables: environment variables in addition to those of the campaign. Variables of the campaign that depend on a
    parameter are left out. Raises MeasurementError if the build fails.
    """
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
    """Return the error of a failed command. If a signal to Quipu stopped it, the exit code is 128 + this signal."""
    failure = MeasurementError(message)
    if ending.stopped_by is not None:
        failure.exit_code = 128 + ending.stopped_by
    return failure


def expect_plain(campaign: Campaign, programs: Iterable[Path]) -> None:
    """Raise MeasurementError if a program contains instrumentation, although the build had QUIPU_OFF=1."""
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
"""The part of messages that says which build line `quipu refine` needs."""
