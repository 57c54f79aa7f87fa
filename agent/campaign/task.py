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
    """One run to make.

    point, parameters: the values of the parameters, in order and by name. repetition: number of the repetition of this
    point in this experiment, from 1. counts: whether it is a count-only run.
    """

    point: Point
    parameters: Mapping[str, float]
    repetition: int
    counts: bool = False

    @property
    def name(self) -> str:
        """Return a text for the user, such as "p=4,n=100000 (repetition 2)" or "p=4,n=100000 (counts)"."""
        return f"{configuration_name(self.parameters)} ({'counts' if self.counts else f'repetition {self.repetition}'})"

    def options(self, campaign: Campaign, given: LaunchOptions) -> LaunchOptions:
        """Return the launch options of the task: the options `given` for all tasks, with the environment of its point.

        A count-only run gets no clock and no rates.
        """
        environment = {**campaign.environment_at(self.point, self.repetition), **given.environment}
        how = replace(given, template=campaign.template, environment=environment)
        return replace(how, clock="none", rates=None) if self.counts else how


@dataclass(frozen=True)
class Outcome:
    """The result of a task.

    - seconds: elapsed time. archive: the folder of the run, None if there is none; a failed run may have one, too.
    - error: "" after success.
    - interrupted: the user stopped the run.
    - goes_on: only the campaign was stopped, and the run continues as a job.
    - replaced: the run failed, but does not count as a failure: a run of a larger size replaces it, or the budget of
      the count-only runs ended it.
    - exit_code: only used after an interruption: 130 (SIGINT) or 143 (SIGTERM).
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
        """Receive the runs to make, and the number of complete runs."""

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
        """Finish the work with successful runs of earlier invocations, before the missing runs are determined."""

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return host and process id of runs of earlier invocations that may still be running in an experiment."""

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Execute runs, and yield the outcome of each run and of running jobs that earlier invocations submitted."""
