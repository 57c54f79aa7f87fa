# SPDX-License-Identifier: Apache-2.0
"""Execute the runs of a campaign as jobs. Each job measures at most once, even if campaign or scheduler restart."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.modeling.errors import FormatError, MeasurementError, QuipuError
from quipu.modeling.printable import counted

from ...installation import native_file
from ...launch.launchers import LaunchRequest, plan_launch
from ..file import Campaign
from ..points import Point
from ..repetition import LaunchOptions
from ..task import Outcome, Progress, Task
from .folder import Asked, JobFolder, Result, unsettled
from .program import BEAT
from .queue import Queue, SubmissionFailed

_LOOK = 1.0  # seconds between two checks of the job folders
_SILENT = 6 * BEAT
"""Age of the latest heartbeat (seconds) from which on the run of an ended job counts as lost. The age is longer than
the time until a network file system shows a new file on all nodes."""
_PATIENCE = 600.0
"""Seconds for which a scheduler may fail to answer submissions before the campaign stops. Its controller may be
restarting."""
_TRIES = 3  # largest number of repeated submissions of a run whose jobs the scheduler loses


@dataclass
class _Watched:
    """A submitted job.

    - seen: the latest heartbeat (`JobFolder.last_beat`), and the time.monotonic at which this process last saw that
      the job is alive: a new heartbeat, or the state waiting or running.
    - native: number of the job in the scheduler. submitted: time.monotonic of the submission or adoption.
    """

    job: JobFolder
    task: Task
    seen: tuple[int, float]
    native: str = ""
    submitted: float = 0.0


class Scheduled:
    """An `Execution` that submits runs as jobs to a queue. For the arguments see `_SILENT`, `_PATIENCE` and `_LOOK`."""

    def __init__(self, queue: Queue, silent: float = _SILENT, patience: float = _PATIENCE, look: float = _LOOK) -> None:
        """Submit jobs to `queue`."""
        self.queue = queue
        self._silent, self._patience, self._look = silent, patience, look
        self._tries: Counter[str] = Counter()
        self._told: set[str] = set()  # reasons for waiting that were already printed

    def collect(self, directory: Path) -> None:
        """Remove the job folders of successful runs of earlier invocations. Their archives remain in the experiment."""
        for job in unsettled(directory):
            result = _result(job)
            if result is not None and not result.error:
                job.settle(failed=False)

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return host and process id of each job that is claimed and has no result, so that it may be running."""
        claims = (job.claim() for job in unsettled(directory) if _result(job) is None)
        return frozenset((claim.host, claim.pid) for claim in claims if claim is not None and not claim.given_up)

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Submit the runs; yield the outcome of each, also of jobs that an earlier invocation submitted.

        If the user interrupts the campaign (KeyboardInterrupt), the jobs continue, and the next invocation finds them.
        Raises SubmissionFailed if the scheduler refuses a job, or does not answer for longer than the patience.
        """
        flight = self._adopted(campaign, progress)
        left = _without(tasks, [one.task for one in flight])
        refused: float | None = None
        said = False
        try:
            while flight or left:
                while left and len(flight) < self.queue.plan.at_once and (refused is None or self._retries(refused)):
                    try:
                        flight.append(self._submitted(campaign, left[0], options))
                    except SubmissionFailed as error:
                        refused = refused or time.monotonic()
                        if not error.later or time.monotonic() - refused > self._patience:
                            raise
                        if not said:
                            progress.note(f"{error}; retrying for up to {self._patience / 60:.0f} minutes")
                        said = True
                        break
                    progress.started(left.pop(0))
                    refused, said = None, False
                for one in list(flight):
                    outcome = self._outcome(campaign, one, progress)
                    if outcome is not None:
                        flight.remove(one)
                    if isinstance(outcome, Outcome):
                        yield outcome
                    elif outcome is not None:
                        progress.note(
                            f"{outcome.name}: the scheduler lost its job before the run began; submitting it again"
                        )
                        self._tries[outcome.name] += 1
                        left.append(outcome)
                if flight or left:
                    time.sleep(self._look)
        except KeyboardInterrupt:
            task = flight[0].task if flight else left[0]
            going = f"{counted(len(flight), 'submitted job continues', 'submitted jobs continue')}" if flight else ""
            waiting = f"{counted(len(left), 'run was', 'runs were')} not submitted" if left else ""
            text = f"interrupted: {' and '.join(filter(None, (going, waiting)))}; repeat the command to continue"
            text += f", or cancel the jobs with: quipu campaign --cancel {campaign.path}" if flight else ""
            yield Outcome(task, 0.0, error=text, interrupted=True, goes_on=True)

    def cancel_all(self, directory: Path) -> str:
        """Cancel the jobs of all earlier invocations; return a report for the user.

        Raises MeasurementError with the messages of the scheduler if it does not cancel some jobs.
        """
        cancelled, refusals = 0, []
        for job in unsettled(directory):
            if _result(job) is not None:
                continue
            native = job.native()
            began = not job.take(given_up=True)  # a job that has not begun will exit without measuring
            if native:
                self.queue.adopt(job, native)
                if text := self.queue.cancel(job):
                    refusals.append(f"job {native}: {text}")
            if not began:
                job.settle(failed=False)
            cancelled += 1
        if refusals:
            raise MeasurementError("; ".join(refusals))
        return (
            f"{counted(cancelled, 'job was', 'jobs were')} cancelled" if cancelled else "no job is waiting or running"
        )

    def _retries(self, refused: float) -> bool:
        """Return whether to submit again; True in every fifth interval of `look` seconds.

        refused: the time.monotonic at which the scheduler first did not answer.
        """
        return int((time.monotonic() - refused) / self._look) % 5 == 0

    def _adopted(self, campaign: Campaign, progress: Progress) -> list[_Watched]:
        flight = []
        for job in unsettled(campaign.directory):
            try:
                asked = job.asked()
            except FormatError as error:
                progress.note(f"{error}; the job is left out")
                continue
            native = job.native()
            if not native and job.take(given_up=True):  # a job that was submitted will exit without measuring
                job.settle(failed=False)
                continue
            task = Task(tuple(asked.point), asked.parameters, asked.repetition)
            if native:
                self.queue.adopt(job, native)
            flight.append(_Watched(job, task, (job.last_beat(), time.monotonic()), native, time.monotonic()))
        if flight:
            jobs = counted(len(flight), "job of an earlier invocation is", "jobs of an earlier invocation are")
            progress.note(f"{jobs} waited for")
        return flight

    def _submitted(self, campaign: Campaign, task: Task, options: LaunchOptions) -> _Watched:
        """Create the folder of a job and submit the job.

        Raises SubmissionFailed. The scheduler may have accepted such a job, but the job will exit without measuring.
        Raises MeasurementError if the folder cannot be created, or the number of ranks is unknown.
        """
        command = campaign.command_at(task.point, task.repetition)
        options = task.options(campaign, options)
        ranks = _ranks(campaign, task, options)
        asked = Asked(
            point=task.point,
            parameters=dict(task.parameters),
            repetition=task.repetition,
            command=command,
            experiment=str(campaign.directory.absolute()),
            folder=str((options.folder or Path()).absolute()),
            environment=dict(options.environment),
            clock=options.clock,
            filter_file=None if options.filter_file is None else str(options.filter_file.absolute()),
            rates=None if options.rates is None else str(options.rates.absolute()),
            timeout=options.timeout,
            template=dict(options.template),
        )
        try:
            job = JobFolder.make(campaign.directory, asked)
        except OSError as error:
            raise MeasurementError(f"{campaign.directory}: cannot hold a job: {error.strerror or error}") from error
        try:
            native = self.queue.submit(job, ranks)
        except SubmissionFailed:
            if job.take(given_up=True):
                job.settle(failed=False)
            raise
        job.submitted(native)
        return _Watched(job, task, (0, time.monotonic()), native, time.monotonic())

    def _outcome(self, campaign: Campaign, one: _Watched, progress: Progress) -> Outcome | Task | None:
        """Return the outcome of a job, its task if it must be submitted again, or None if it is waiting or running.

        A job that ended without a result failed. If no process has claimed the job and the scheduler does not list it,
        its run is submitted again, up to `_TRIES` times.
        """
        result = _result(one.job)
        if result is not None:
            return _settled(campaign, one, result)
        beat = one.job.last_beat()
        if beat != one.seen[0]:
            one.seen = (beat, time.monotonic())
        state = self.queue.state(one.job) if one.native else "unknown"
        if state in ("waiting", "running"):
            one.seen = (beat, time.monotonic())
            return self._hindered(campaign, one, progress) if state == "waiting" else None
        if time.monotonic() - one.seen[1] < self._silent:
            return None
        number = f"job {one.native}" if one.native else "the job"
        if not one.job.take(given_up=True):
            text = f"{number} ended without a result: its time limit, a cancellation, or a node that failed"
        elif state == "unknown" and self._tries[one.task.name] < _TRIES:
            one.job.settle(failed=False)
            return one.task
        else:
            text = f"{number} ended before its run began: cancelled, or refused by the scheduler"
        return _settled(campaign, one, Result(time.monotonic() - one.submitted, None, text))

    def _hindered(self, campaign: Campaign, one: _Watched, progress: Progress) -> Outcome | None:
        """Print, once per reason, why waiting jobs may never begin.

        Returns the outcome (an error) of a job that the scheduler will never start, and None for other jobs.
        """
        found = self.queue.hindrance(one.job)
        if found is None:
            return None
        scheduler = self.queue.plan.name.capitalize()
        if found.never and one.job.take(given_up=True):
            kept = self.queue.cancel(one.job)
            ending = f"it stays in the queue: {kept}" if kept else "it was cancelled"
            text = f"job {one.native} can never begin ({scheduler}: {found.reason}); {ending}; {found.advice}"
            return _settled(campaign, one, Result(time.monotonic() - one.submitted, None, text))
        kind = found.reason.split(",")[0]
        if kind not in self._told:
            self._told.add(kind)
            progress.note(
                f"job {one.native}, {one.task.name}, does not begin ({scheduler}: {found.reason}); {found.advice}; "
                f"the campaign waits, quipu campaign --cancel {shlex.quote(str(campaign.path))} cancels its jobs"
            )
        return None


def _settled(campaign: Campaign, one: _Watched, result: Result) -> Outcome:
    failed = bool(result.error)
    folder = one.job.settle(failed)
    archive = None if result.archive is None else campaign.directory / result.archive
    error = f"{result.error} (its output: {folder / one.job.output.name})" if failed else ""
    return Outcome(one.task, result.seconds, archive, error)


def _result(job: JobFolder) -> Result | None:
    try:
        return job.result()
    except FormatError as error:
        return Result(0.0, None, str(error))


def _without(tasks: Sequence[Task], flight: Sequence[Task]) -> list[Task]:
    """Return the tasks for which no job in `flight` is submitted.

    Each submitted job removes one task with its point: the task with its repetition if there is one, else the first.
    """
    left = defaultdict[Point, list[Task]](list)
    for task in tasks:
        left[tuple(map(float, task.point))].append(task)
    for flying in flight:
        if same := left[tuple(map(float, flying.point))]:
            same.remove(next((task for task in same if task.repetition == flying.repetition), same[0]))
    kept = {id(task) for own in left.values() for task in own}
    return [task for task in tasks if id(task) in kept]


def _ranks(campaign: Campaign, task: Task, options: LaunchOptions) -> int:
    """Return the number of ranks of a job, from [scheduler] or the command. Raises MeasurementError if unknown."""
    plan = campaign.scheduler
    try:
        ranks = None if plan is None else plan.ranks_at(task.parameters)
        if ranks is None:
            environment = {**os.environ, **options.environment}
            command = campaign.command_at(task.point, task.repetition)
            variables = {"QUIPU_DIR": str(campaign.directory)}
            folder = options.folder or Path()
            request = LaunchRequest(command, native_file("quipu-exec"), environment, variables, 1, folder)
            ranks = plan_launch(request).ranks
    except (ValueError, QuipuError) as error:
        raise MeasurementError(f"{campaign.path}: scheduler.ranks: {error}") from error
    if ranks is None:
        raise MeasurementError(
            f'{campaign.path}: scheduler.ranks is missing: give the number of ranks of a job, such as ranks = "{{p}}"'
        )
    return ranks
