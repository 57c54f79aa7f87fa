# SPDX-License-Identifier: Apache-2.0
"""The runs of a campaign (tasks), their outcomes, and the interfaces of progress displays and executions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..archive.metadata import configuration_name
from .file import Campaign
from .points import Point
from .repetition import LaunchOptions


@dataclass(frozen=True)
class Task:
    """One run to make: a point, and the number of its repetition in this experiment (from 1).

    counts: whether it is a count-only run.
    """

    point: Point
    parameters: Mapping[str, float]
    repetition: int
    counts: bool = False

    @property
    def name(self) -> str:
        """Return a text for the user: "p=4,n=100000 (repetition 2)", or "(counts)"."""
        return f"{configuration_name(self.parameters)} ({'counts' if self.counts else f'repetition {self.repetition}'})"

    def options(self, campaign: Campaign, given: LaunchOptions) -> LaunchOptions:
        """Return the launch options of the task: `given` options of all tasks, and the options of its point."""
        environment = {**campaign.environment_at(self.point, self.repetition), **given.environment}
        how = replace(given, template=campaign.template, environment=environment)
        return replace(how, clock="none", rates=None) if self.counts else how


@dataclass(frozen=True)
class Outcome:
    """The result of a task: its archive, or the error.

    - interrupted: the user stopped the run.
    - goes_on: only the campaign was stopped, and the run continues as a job.
    - replaced: the run failed and is replaced by a run of a larger size.
    - exit_code: after an interruption 130 (SIGINT) or 143 (SIGTERM).
    """

    task: Task
    seconds: float
    archive: Path | None = None
    error: str = ""
    interrupted: bool = False
    goes_on: bool = False
    replaced: bool = False
    exit_code: int = 130


class Progress(Protocol):
    """Receives the events of a campaign; the command line displays them."""

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        """Receive the runs to make, and the number of runs that are already on the disk."""

    def started(self, task: Task) -> None:
        """Receive the start of a run, or the submission of its job."""

    def ended(self, outcome: Outcome) -> None:
        """Receive the end of a run, successful or not."""

    def note(self, text: str) -> None:
        """Receive a note for the user."""


class Silent:
    """A progress display that shows nothing."""

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        """Do nothing."""

    def started(self, task: Task) -> None:
        """Do nothing."""

    def ended(self, outcome: Outcome) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class Execution(Protocol):
    """A way to execute runs: on this machine one after the other, or as jobs."""

    def collect(self, directory: Path) -> None:
        """Collect the successful runs of earlier invocations, so that they count as finished."""

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return host and process id of runs of earlier invocations that are still running in an experiment."""

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Execute these runs, and yield the outcome of each, also of runs that earlier invocations started."""
