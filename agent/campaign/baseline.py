# SPDX-License-Identifier: Apache-2.0
"""The baseline of a campaign: the times of the program without instrumentation at each point."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.modeling.documents import Number, Positive, typed
from quipu.modeling.errors import MeasurementError

from ..archive.metadata import configuration_name
from ..archive.run_json import read_json, write_json
from ..launch.launchers import LaunchPlan
from ..launch.process import Ending
from .build import build, ended, expect_plain
from .file import Campaign
from .left_behind import recorded_processes
from .points import Point
from .repetition import LaunchOptions, launch_plan
from .task import Progress

Plain = Callable[[Sequence[str], Mapping[str, str], float | None, Path], Ending]
"""A function that runs a program without instrumentation. Arguments: command, environment variables, time limit in
seconds (None: none), working folder."""


@dataclass(frozen=True)
class Times:
    """The shortest times of the runs at a point.

    seconds: elapsed time. processor: processor time of all processes in seconds. gap: difference between the second
    shortest and the shortest processor time in seconds; None with one repetition.
    """

    seconds: float
    processor: float
    gap: float | None = None


@dataclass(frozen=True)
class Baseline:
    """Times of the program without instrumentation.

    times: by the name of the configuration (`configuration_name`). spent: seconds of the build and of all runs.
    """

    times: Mapping[str, Times]
    spent: float


@dataclass
class _Entry:
    seconds: list[Number]
    processor: list[Number]


@dataclass
class _Document:
    points: dict[str, _Entry]
    spent: Number
    repetitions: Positive


def measure_baseline(
    campaign: Campaign,
    repetitions: int,
    progress: Progress,
    builds: bool,
    file: str,
    plain: Plain,
) -> Baseline:
    """Make the missing runs of the baseline; return the whole baseline.

    - repetitions: number of runs at each point.
    - file: name of the JSON file in the folder of the campaign with the finished runs; updated after each run.
    - builds: if runs are missing, first build the program without instrumentation.
    - plain: the function that makes a run.

    Raises MeasurementError if the build or a run fails, or if the program contains instrumentation after this build.
    """
    path = campaign.directory / file
    found = typed(read_json(path), _Document, path) if path.exists() else _Document({}, 0.0, repetitions)
    for point in campaign.points:
        name = configuration_name(campaign.values(point))
        entry = found.points.setdefault(name, _Entry([], []))
        while len(entry.seconds) < repetitions:
            if builds:
                found.spent += build(campaign, {"QUIPU_OFF": "1"})
                expect_plain(campaign, _plan(campaign, point).programs)
                builds = False
            ending = _run(campaign, point, name, plain)
            entry.seconds.append(ending.seconds)
            entry.processor.append(ending.processor)
            found.spent += ending.seconds
            write_json(path, {"points": {key: vars(one) for key, one in found.points.items()}, **_rest(found)})
            progress.note(f"baseline {name}: {ending.seconds:.3g} s")
    times = {name: _shortest(entry) for name, entry in found.points.items() if entry.seconds}
    return Baseline(times, found.spent)


def _shortest(entry: _Entry) -> Times:
    processor = sorted(entry.processor)
    return Times(min(entry.seconds), processor[0], processor[1] - processor[0] if len(processor) > 1 else None)


def _rest(document: _Document) -> dict[str, float]:
    return {"spent": document.spent, "repetitions": document.repetitions}


def _plan(campaign: Campaign, point: Point) -> LaunchPlan:
    options = LaunchOptions(environment=campaign.environment_at(point), folder=campaign.path.parent)
    return launch_plan(campaign.command_at(point), options)


def _run(campaign: Campaign, point: Point, name: str, plain: Plain) -> Times:
    command = campaign.command_at(point)
    environment = {**os.environ, **campaign.environment_at(point), **_plan(campaign, point).settings}
    try:
        with recorded_processes(campaign.directory) as marks:
            ending = plain(command, {**environment, **marks}, campaign.timeout, campaign.path.parent)
    except OSError as error:
        raise MeasurementError(f"{command[0]}: cannot be started: {error.strerror or error}") from error
    if ending.text:
        raise ended(f"baseline {name}: {Path(command[0]).name} {ending.text}", ending)
    return Times(ending.seconds, ending.processor_seconds)
