# SPDX-License-Identifier: Apache-2.0
"""One run that a campaign has to do, what became of it, and who wants to know."""

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
    """One run to do: a point, and which repetition of it in this experiment it will be (from 1).

    counts: it is a count-only run.
    """

    point: Point
    parameters: Mapping[str, float]
    repetition: int
    counts: bool = False

    @property
    def name(self) -> str:
        """The task as a person reads it: "p=4,n=100000 (repetition 2)", or "(counts)"."""
        return f"{configuration_name(self.parameters)} ({'counts' if self.counts else f'repetition {self.repetition}'})"

    def options(self, campaign: Campaign, given: LaunchOptions) -> LaunchOptions:
        """Return how to measure it: as the campaign says for its point, after what is given for all of them."""
        environment = {**campaign.environment_at(self.point, self.repetition), **given.environment}
        how = replace(given, template=campaign.template, environment=environment)
        return replace(how, clock="none", rates=None) if self.counts else how


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its archive, or the error.

    interrupted: the user stopped it. goes_on: only the campaign was stopped, and the run goes on as a job. replaced: it
    failed, and a run of a larger size takes its place. exit_code: of an interruption, 130 by SIGINT and 143 by SIGTERM.
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
    """Learns what happens; the command line draws it."""

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        """These runs are to do, and so many are on the disk already."""

    def started(self, task: Task) -> None:
        """A run begins, or its job is submitted."""

    def ended(self, outcome: Outcome) -> None:
        """A run ended, well or not."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Silent:
    """Progress that nobody watches."""

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        """Do nothing."""

    def started(self, task: Task) -> None:
        """Do nothing."""

    def ended(self, outcome: Outcome) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""


class Execution(Protocol):
    """How runs are done: here one after the other, or as jobs."""

    def collect(self, directory: Path) -> None:
        """Take note of runs of earlier invocations that ended well: they count as those on the disk."""

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return host and process of runs of earlier invocations that are still at work below an experiment."""

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Do these runs, and those that earlier invocations left at work; yield what becomes of each."""
