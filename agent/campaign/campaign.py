# SPDX-License-Identifier: Apache-2.0
"""Run a campaign: all points and repetitions that earlier invocations have not completed."""

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
# Number of attempts to lock the folder, and seconds between two of them. Together they are far longer than the time
# between fork and exec of a child process, which holds the lock of its parent in this time.
_TRIES, _PAUSE = 100, 0.01
_VARIES = re.compile(r"\d+(\.\d+)?%|\b\d+(?= ranks\b)")


@dataclass(frozen=True)
class CampaignResult:
    """The result of one invocation of a campaign.

    - finished: number of complete runs before the invocation. outcomes: of the runs that the invocation made.
    - not_started: number of runs that remain after a stop. interrupted: whether the user stopped the campaign.
    - stopped: reason of a stop because several runs failed with the same error or a disk is full; otherwise "".
    """

    directory: Path
    finished: int
    outcomes: tuple[Outcome, ...]
    not_started: int = 0
    interrupted: bool = False
    stopped: str = ""

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Return the failed runs, without failures that a run of another size replaced, and jobs that continue."""
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
        """Do nothing: `outcomes` has recorded each run when it ended."""

    def busy(self, directory: Path) -> frozenset[tuple[str, int]]:
        """Return an empty set: an invocation whose runs are running holds the lock, so this invocation cannot start."""
        return frozenset()

    def outcomes(
        self, campaign: Campaign, tasks: Sequence[Task], options: LaunchOptions, progress: Progress
    ) -> Iterator[Outcome]:
        """Execute the runs one after the other; yield the outcome of each."""
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

    Before the first run, raw folders of interrupted runs are merged, and a note names points with more ranks than
    processors. Each invocation tries failed and partial runs of earlier invocations again, once. The campaign stops if

    - a run fails and `stop_on_failure` is set,
    - several runs in a row fail at their start with the same error (`SameError`), unless `keep_going` is set,
    - a run fails because a disk is full.

    Arguments:

    - progress: receives the progress and notes; None: nobody.
    - options: launch options that have priority over the options of the campaign file.
    - execution: executes the runs; None: `Here`.
    - choose: function that yields batches of runs to make; None: the runs of all points.
    - keep_old: keep complete runs that were made with another program, command or measuring options. Otherwise such
      runs are moved to a subfolder and repeated.

    Raises MeasurementError if another campaign uses the folder, the build fails, or the folder contains runs with other
    parameters; FormatError if runs are missing and their file of rates or filter cannot be read; EnvironmentProblem if
    a part of Quipu is missing.
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
        # Without keep_old, even a complete campaign builds: the new program shows whether the old runs are outdated.
        if campaign.build and (tasks or not keep_old):
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
            # A job that ended before its run was merged left a raw folder.
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
        """Make the runs with times. Return the result if the campaign stops during these runs, otherwise None.

        finished: number of complete runs. counting: the count-only runs that would follow, to count runs not started.
        """
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
        """Make the count-only runs. Return the result if the campaign stops during these runs, otherwise None."""
        counting = CountRuns(self.campaign)  # a new object, which also reads the durations of the runs with times
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
        """Record and show the outcome of a run. Return the message to stop with if a disk is full, otherwise ""."""
        self.outcomes.append(outcome)
        self.progress.ended(outcome)
        return full_disk(outcome.error, (self.campaign.directory, self.campaign.path.parent)) if outcome.error else ""

    def _ends(self, outcome: Outcome) -> bool:
        failed = bool(outcome.error) and not outcome.replaced
        return outcome.interrupted or (self.stop_on_failure and failed)

    def _stopped(self, finished: int, left: int, outcome: Outcome, why: str) -> CampaignResult:
        return CampaignResult(self.campaign.directory, finished, tuple(self.outcomes), left, outcome.interrupted, why)


def _chosen(campaign: Campaign, progress: Progress, choose: Choose) -> Iterator[list[Task]]:
    """Yield the chosen batches. With a scheduler, yield first an empty batch, so that running jobs are waited for."""
    if campaign.scheduler is not None:
        yield []
    yield from choose(campaign, progress)


def _options(campaign: Campaign, options: LaunchOptions | None, progress: Progress) -> LaunchOptions:
    """Return the launch options of the campaign; options of the caller have priority over the file."""
    said: set[str] = set()

    def say_once(text: str) -> None:
        same = _VARIES.sub("%", text)  # notes that differ only in a percentage or a number of ranks are shown once
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
    """Make one run; return its outcome, which contains an error of the run. Raises only EnvironmentProblem."""
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
    """Return the numbers (from 1) of the missing repetitions of a point.

    Normally only the number of complete runs matters: with 2 of 3 repetitions complete, repetition 3 is missing. If the
    command or the environment contains the number of the repetition, a repetition is complete only if a complete run
    has the command and the environment of this repetition.
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
    """Merge the raw folders of interrupted runs into archives, which may be partial.

    busy: host and process id of the Quipu processes of jobs that may be running; their raw folders are not changed.
    Raises MeasurementError if ranks of an interrupted run are still running, because they would disturb the next
    measurements.
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
            continue  # the merge reports the error
        if still_runs(rank, raw):
            raise _StillRunning(
                f"{raw}: rank {rank.rank} of an interrupted run still runs (process {rank.pid}); wait for it or end it"
            )


def _other_campaign(path: Path, descriptor: int) -> str:
    """Return a message about the process that holds the lock, from the content of the lock file or from the kernel.

    The lock file is empty for a short time after its holder has locked it.
    """
    holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or _holder_by_kernel(descriptor)
    if holder:
        return f"another campaign is running here ({holder}); wait for it, or end it"
    return (
        f"a process that cannot be seen from here, perhaps on another machine, holds the lock {path.name}: "
        "wait for it, or end it"
    )


def _holder_by_kernel(descriptor: int) -> str:
    """Return a text with process id and host of the process that holds a lock, from /proc/locks; "" if not found."""
    file = os.fstat(descriptor)
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ""
    # Format: "1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF". Process id 0 is a process of another PID namespace.
    found = [fields[4] for line in lines if len(fields := line.split()) > 5 and fields[1:6:4] == ["FLOCK", place]]
    return next((f"process {pid} on {socket.gethostname()}" for pid in found if pid.isdigit() and pid != "0"), "")


def _lock(descriptor: int) -> None:
    """Lock an open file exclusively. Raises BlockingIOError if another process holds the lock.

    If a campaign is killed between fork and exec of a command, the child still holds the lock until exec. Therefore the
    function tries again for about a second if the process named in the file no longer exists on this host.
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
    """Create the folder for the runs of a campaign, if necessary, and return it.

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
    """Hold the lock of an experiment folder. Raises MeasurementError if another process holds the lock.

    The kernel releases the lock when this process ends, even if it is killed.
    """
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
