# SPDX-License-Identifier: Apache-2.0
"""Run a declared experiment: all points and repetitions that earlier invocations have not completed."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
from quipu.modeling.errors import EnvironmentProblem, FormatError, MeasurementError, QuipuError
from quipu.modeling.notebook import table_html
from quipu.report.formats import read_filter

from ..archive.metadata import RunMetadata
from ..archive.run import RunArchive
from ..launch.raw_folder import PREFIX, read_launch, read_rank_file, still_runs
from ..merge.declared import write_declared
from ..merge.experiment import scan_runs, why_incomplete
from ..merge.merged import merged_as
from ..merge.run import merge_run
from .advice import advice
from .build import build
from .counts.runs import CountRuns
from .counts.simulated import build_simulated
from .file import Campaign
from .full_disk import full_disk
from .left_behind import end_left_behind
from .outdated import put_aside
from .oversubscription import oversubscription_warning
from .points import Point
from .rates import read_rates
from .repetition import LaunchOptions, RunFailed, RunInterrupted, run
from .same_error import SameError
from .task import Execution, Outcome, Progress, Silent, Task

LOCK_FILE = ".campaign.lock"
_TRIES, _PAUSE = 100, 0.01  # number and seconds; together far longer than a child takes to execute its command
_VARIES = re.compile(r"\d+(\.\d+)?%|\b\d+(?= ranks\b)")


@dataclass(frozen=True)
class CampaignResult:
    """The result of one execution of a campaign.

    finished: runs that were already on the disk. not_started: runs that are left after a stop. stopped: reason of the
    stop, if several runs failed with the same error or a disk is full.
    """

    directory: Path
    finished: int
    outcomes: tuple[Outcome, ...]
    not_started: int = 0
    interrupted: bool = False
    stopped: str = ""

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Return the failed runs."""
        return tuple(one for one in self.outcomes if one.error and not (one.goes_on or one.replaced))

    @property
    def complete(self) -> int:
        """Return the number of complete runs now."""
        return self.finished + sum(not outcome.error for outcome in self.outcomes)

    def __repr__(self) -> str:
        return f"<Campaign in {self.directory}: {', '.join(f'{text} {label}' for label, text in self._facts)}>"

    def _repr_html_(self) -> str:
        rows = [(one.task.name, one.error) for one in self.failed]
        return table_html(f"Campaign in {self.directory}", self._facts, ("failed run", "error"), rows)

    @property
    def _facts(self) -> list[tuple[str, str]]:
        numbers = {"complete": self.complete, "failed": len(self.failed), "not started": self.not_started}
        return [(label, str(number)) for label, number in numbers.items()]

    @property
    def exit_code(self) -> int:
        """Return 0 if the experiment is complete, 130 (SIGINT) or 143 (SIGTERM) after an interruption, otherwise 1."""
        if self.interrupted:
            return self.outcomes[-1].exit_code if self.outcomes else 130
        return 1 if self.failed or self.not_started else 0


Launch = Callable[[Sequence[str], Mapping[str, float], int | None, Path, LaunchOptions], RunArchive]
Choose = Callable[[Campaign, Progress], Iterator[list[Task]]]


@dataclass(frozen=True)
class Here:
    """An `Execution` that starts the runs one after the other with the launcher of the command."""

    launch: Launch = run

    def collect(self, directory: Path) -> None:
        """Do nothing: each run is recorded when it ends."""

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return an empty set: an invocation with running runs holds the lock of the experiment."""
        return frozenset()

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Execute the runs; yield the outcome of each."""
        for task in tasks:
            progress.started(task)
            yield measured(campaign, task, options, self.launch)


def run_campaign(
    campaign: Campaign,
    progress: Progress | None = None,
    options: LaunchOptions | None = None,
    *,
    stop_on_failure: bool = False,
    keep_going: bool = False,
    execution: Execution | None = None,
    choose: Choose | None = None,
    keep_old: bool = False,
) -> CampaignResult:
    """Make all runs of a campaign that are not complete on the disk, repetition by repetition, in ascending order.

    First, raw folders of interrupted runs are merged, and a note names points with more ranks than processors. Failed
    and partial runs are repeated once per invocation. The campaign stops if

    - a run fails and `stop_on_failure` is set,
    - several runs in a row fail at their start with the same error (`SameError`), unless `keep_going` is set,
    - a run fails because a disk is full.

    execution: how to execute runs; None: `Here`. choose: chooses batches of runs instead of all points. keep_old: keep
    complete runs of another program, command or other measuring options; otherwise they are moved away and repeated.

    Raises MeasurementError if another campaign uses the folder, the build fails, or the folder contains runs with other
    parameters; FormatError if there is a run to make and its file of rates or its filter cannot be read;
    EnvironmentProblem if a part of Quipu is missing.
    """
    progress, execution = progress or Silent(), execution or Here()
    directory = experiment_folder(campaign)
    with locked(directory):
        end_left_behind(directory, progress)
        execution.collect(directory)
        recover(directory, progress, execution.busy(directory))
        how = _options(campaign, options, progress)
        tasks, finished = remaining(campaign, progress)
        write_declared(directory, campaign.path, campaign.grid, campaign.target)
        if text := advice(campaign):
            progress.note(text)
        if tasks and how.rates is not None:
            read_rates(how.rates)
        if campaign.build and (tasks or not keep_old):  # to see whether old runs are current
            build(campaign)
        if not keep_old or CountRuns(campaign).plan():
            build_simulated(campaign)
        if not keep_old and put_aside(campaign, how, progress):
            tasks, finished = remaining(campaign, progress)
        if tasks and how.filter_file is not None:  # the build may have created the filter
            read_filter(how.filter_file)
        here = campaign.scheduler is None
        if here and (warning := oversubscription_warning(campaign, sorted({task.point for task in tasks}))):
            progress.note(warning)
        doing = _Doing(campaign, execution, how, progress, stop_on_failure, keep_going)
        counting = CountRuns(campaign)
        batches = iter([tasks]) if choose is None else _chosen(campaign, progress, choose)
        found = doing.batches(batches, finished + counting.finished, counting) or doing.counts(finished)
        if found is not None:
            return found
        if not here:
            # Jobs may have ended before their runs.
            recover(directory, progress, execution.busy(directory))
        if campaign.grid is None and (text := advice(campaign, directory)):
            progress.note(text)
        return CampaignResult(directory, finished + counting.finished, tuple(doing.outcomes))


@dataclass
class _Doing:
    """The runs of one invocation and their outcomes."""

    campaign: Campaign
    execution: Execution
    how: LaunchOptions
    progress: Progress
    stop_on_failure: bool
    keep_going: bool
    outcomes: list[Outcome] = field(default_factory=list)

    def batches(self, batches: Iterable[list[Task]], finished: int, counting: CountRuns) -> CampaignResult | None:
        """Make the runs with times; return the result if the invocation ends there."""
        alike = SameError()
        for batch in batches:
            self.progress.planned(batch, finished + len(self.outcomes))
            before = len(self.outcomes)
            for outcome in self.execution.outcomes(self.campaign, batch, self.how, self.progress):
                why = self._take(outcome)
                why = why or ("" if self.keep_going or outcome.interrupted else alike.look(outcome, batch))
                if why or self._ends(outcome):
                    left = 0 if outcome.goes_on else max(len(batch) - (len(self.outcomes) - before), 0)
                    return self._stopped(finished, left + len(counting.plan()), outcome, why)
        return None

    def counts(self, finished: int) -> CampaignResult | None:
        """Make the count-only runs; return the result if the invocation ends there."""
        counting = CountRuns(self.campaign)  # created here, when the costs of runs with times are known
        if text := counting.why_none:
            self.progress.note(text)
        known = finished + counting.finished
        if plan := counting.plan():
            self.progress.planned([one.task for one in plan], known + len(self.outcomes))
        for outcome in counting.outcomes(self.execution, self.how, self.progress):
            why = self._take(outcome)
            if why or self._ends(outcome):
                return self._stopped(known, len(counting.plan()), outcome, why)
        return None

    def _take(self, outcome: Outcome) -> str:
        """Record and show the outcome of a run; return a reason to stop the campaign, or an empty text."""
        self.outcomes.append(outcome)
        self.progress.ended(outcome)
        return full_disk(outcome.error, (self.campaign.directory, self.campaign.path.parent)) if outcome.error else ""

    def _ends(self, outcome: Outcome) -> bool:
        failed = bool(outcome.error) and not outcome.replaced
        return outcome.interrupted or (self.stop_on_failure and failed)

    def _stopped(self, finished: int, left: int, outcome: Outcome, why: str) -> CampaignResult:
        return CampaignResult(self.campaign.directory, finished, tuple(self.outcomes), left, outcome.interrupted, why)


def _chosen(campaign: Campaign, progress: Progress, choose: Choose) -> Iterator[list[Task]]:
    """Yield an empty batch, which waits for running jobs, and then the chosen batches."""
    if campaign.scheduler is not None:
        yield []
    yield from choose(campaign, progress)


def _options(campaign: Campaign, options: LaunchOptions | None, progress: Progress) -> LaunchOptions:
    """Return the launch options of the campaign; options of the caller have priority over the file."""
    said: set[str] = set()

    def say_once(text: str) -> None:
        same = _VARIES.sub("%", text)  # notes that differ only in a share or a number of ranks are shown once
        if same not in said:
            said.add(same)
            progress.note(text)

    options = options or LaunchOptions()
    return replace(
        options,
        clock=options.clock or campaign.clock,
        python=options.python or campaign.python,
        memory=options.memory or campaign.memory,
        files=options.files or campaign.files,
        offload=options.offload or campaign.offload,
        filter_file=options.filter_file or campaign.filter_file,
        rates=options.rates or campaign.rates,
        timeout=options.timeout or campaign.timeout,
        folder=options.folder or campaign.path.parent,
        say=say_once,
    )


def measured(campaign: Campaign, task: Task, options: LaunchOptions, launch: Launch) -> Outcome:
    """Make one run; return its outcome. Raises EnvironmentProblem."""
    began = time.monotonic()
    path, text, interrupted, code = None, "", False, 130
    try:
        how = task.options(campaign, options)
        command = campaign.command_at(task.point, task.repetition)
        path = launch(command, task.parameters, None, campaign.directory, how).path
    except EnvironmentProblem:
        raise
    except QuipuError as error:
        text = str(error)
        interrupted, code = isinstance(error, RunInterrupted), error.exit_code
        if isinstance(error, RunFailed) and error.archive is not None:
            path = error.archive.path
    return Outcome(task, time.monotonic() - began, path, text, interrupted, exit_code=code)


def remaining(campaign: Campaign, progress: Progress) -> tuple[list[Task], int]:
    """Return the runs that are not complete on the disk, repetition by repetition, and the number of complete runs.

    Raises MeasurementError if the folder contains runs with other parameters.
    """
    runs, errors = scan_runs(campaign.directory)
    for error in errors:
        progress.note(f"{error} (the run counts as not done)")
    complete = defaultdict[Point, list[RunMetadata]](list)
    counts_only = LaunchOptions(clock=campaign.clock).counts_only
    for stored in runs:
        parameters = stored.metadata.parameters
        if set(parameters) != set(campaign.parameters):
            raise MeasurementError(
                f"{campaign.directory}: {stored.path.name} has other parameters than {campaign.path}; "
                "give the campaign another directory"
            )
        if stored.metadata.complete and stored.metadata.counts_only == counts_only:
            complete[tuple(parameters[name] for name in campaign.parameters)].append(stored.metadata)
    done = sum(min(len(complete[point]), campaign.repetitions) for point in campaign.points)
    left = {point: _repetitions_left(campaign, point, complete[point]) for point in campaign.points}
    tasks = [
        Task(point, campaign.values(point), repetition)
        for repetition in range(1, campaign.repetitions + 1)
        for point in campaign.points
        if repetition in left[point]
    ]
    return tasks, done


def _repetitions_left(campaign: Campaign, point: Point, complete: Sequence[RunMetadata]) -> Sequence[int]:
    """Return the numbers of the missing repetitions of a point.

    If repetitions differ, these are the numbers of repetitions without a complete run.
    """
    numbers = range(1, campaign.repetitions + 1)
    if not campaign.repetitions_differ:
        return numbers[len(complete) :]

    def was(run: RunMetadata, number: int) -> bool:
        variables = campaign.environment_at(point, number)
        return (
            run.command == campaign.command_at(point, number)
            and variables.items() <= dict(run.environment_added).items()
        )

    left = [number for number in numbers if not any(was(run, number) for run in complete)]
    return left[: max(campaign.repetitions - len(complete), 0)]


def recover(directory: Path, progress: Progress, busy: frozenset[tuple[str, int]] = frozenset()) -> None:
    """Merge the raw folders of interrupted runs, to complete or partial runs.

    busy: host and process id of runs that are running elsewhere; their folders are not changed. Raises MeasurementError
    if processes of an interrupted run are still running, because they would disturb the next measurements.
    """
    for raw in sorted(directory.glob(f"{PREFIX}*")):
        try:
            launch = read_launch(raw)
            if launch.alive or (launch.agent_host, launch.agent_pid) in busy:
                continue
            _expect_no_rank(raw)
            if (whole := merged_as(raw, directory)) is not None:
                progress.note(f"{raw} was already merged into {whole.name}: you can remove it")
                continue
            archive = merge_run(raw, directory, launch.metadata)
        except FormatError as error:
            progress.note(f"{raw} was left by an interrupted run and cannot be merged: {error}")
            continue
        except MeasurementError as error:
            if isinstance(error, _StillRunning):
                raise
            progress.note(f"{raw} was left by an interrupted run; {error}")
            continue
        kind = "complete" if archive.metadata.complete else f"partial: {why_incomplete(archive.metadata)}"
        progress.note(f"merged the profiles of an interrupted run: {archive.path.name}, {kind}")


class _StillRunning(MeasurementError):
    """Ranks of an earlier run are still running."""


def _expect_no_rank(raw: Path) -> None:
    for path in sorted(raw.glob("rank-*.json")):
        try:
            rank = read_rank_file(path)
        except FormatError:
            continue  # the merge reports it
        if still_runs(rank, raw):
            raise _StillRunning(
                f"{raw}: rank {rank.rank} of an interrupted run still runs (process {rank.pid}); wait for it or end it"
            )


def _other_campaign(path: Path, descriptor: int) -> str:
    """Return a text about the process that holds the lock, from the lock file or from the kernel.

    The file is empty for a short time during a write.
    """
    holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or _holder_by_kernel(descriptor)
    if holder:
        return f"another campaign is running here ({holder}); wait for it, or end it"
    return (
        f"a process that cannot be seen from here, perhaps on another machine, holds the lock {path.name}: "
        "wait for it, or end it"
    )


def _holder_by_kernel(descriptor: int) -> str:
    """Return the process id of the holder of a lock from /proc/locks; "" if there is none."""
    file = os.fstat(descriptor)
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ""
    # Format: "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF". Process id 0: a process of another namespace.
    found = [fields[4] for line in lines if len(fields := line.split()) > 5 and fields[1:6:4] == ["FLOCK", place]]
    return next((f"process {pid} on {socket.gethostname()}" for pid in found if pid.isdigit() and pid != "0"), "")


def _lock(descriptor: int) -> None:
    """Take a lock, or raise BlockingIOError after several attempts.

    If a campaign is killed while it starts a command, its child holds the lock until it executes the command.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            words = os.pread(descriptor, 200, 0).decode("utf-8", "replace").split()
            here = words[2:] == ["on", socket.gethostname()] and words[1].isdigit()
            if not here or psutil.pid_exists(int(words[1])) or not tries_left:
                raise
        time.sleep(_PAUSE)


def experiment_folder(campaign: Campaign) -> Path:
    """Create the folder of a campaign's runs.

    Raises MeasurementError if that is impossible, for example because a file has this name.
    """
    directory = campaign.directory
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        advice = f'give another folder in {campaign.path}: directory = "{directory.name}.runs"'
        raise MeasurementError(f"{directory}: cannot hold the experiment, because it is a file: {advice}") from error
    except OSError as error:
        raise MeasurementError(f"{directory}: cannot hold the experiment: {error.strerror or error}") from error
    return directory


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of an experiment folder. The kernel releases it when the process ends, even if it is killed."""
    path = directory / LOCK_FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        try:
            _lock(descriptor)
        except OSError as error:
            raise MeasurementError(f"{directory}: {_other_campaign(path, descriptor)}") from error
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError as error:
            raise MeasurementError(f"{path}: cannot be written: {error.strerror or error}") from error
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
