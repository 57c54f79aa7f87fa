# SPDX-License-Identifier: Apache-2.0
"""Measure one repetition of one configuration: launch the program, and merge the profiles of its ranks."""

from __future__ import annotations

import datetime
import errno
import os
import shutil
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from quipu.modeling.errors import MeasurementError, UsageError
from quipu.modeling.rates import Rates, runtime_text
from quipu.report.text import duration

from ..archive.metadata import RunMetadata, configuration_name
from ..archive.run import RunArchive
from ..catalogue import NO_PROFILE, NO_RANK_STARTED, NUMBERS_MISSING, RUN_FAILED
from ..counters.sampling import HIGHEST_RATE
from ..counters.source import CounterSource, Wanted
from ..installation import native_file, quipu_version
from ..launch import kernel
from ..launch.jobs import jobs_of, with_jobs
from ..launch.launchers import LaunchPlan, LaunchRequest, plan_launch
from ..launch.nested import with_launchers_replaced
from ..launch.process import Ending, run_process
from ..launch.processors import busy_seconds, own_cores, used_by_others
from ..launch.raw_folder import PREFIX, read_raw_folder, wait_for_nodes, write_launch
from ..merge.run import merge_command, merge_run
from .claims import ONE_OF_RANKS, wrong_ranks, wrong_threads
from .identity import fingerprint_of
from .launch_options import CLOCKS, WAITS, LaunchOptions
from .rates import read_rates, without_rates

__all__ = ["LaunchOptions", "RunFailed", "RunInterrupted", "agent_command", "launch_plan", "run"]

NODE_AGENT = Path(kernel.__file__).with_name("start_node.py")
_OF_ONE_RUN = (
    *("QUIPU_JOB", "QUIPU_LAUNCHER", "QUIPU_PARENT", "QUIPU_PRELOAD"),
    *("QUIPU_PYTHON_WORKERS", "QUIPU_RANK", "QUIPU_RANKS"),
)
_COUNTING, _PROFILES = "count.sh", "profile-*.quipu"


class RunFailed(MeasurementError):
    """The program failed. archive: the measurements before the failure, marked partial; None if there are none."""

    def __init__(self, message: str, ending: Ending, archive: RunArchive | None = None) -> None:
        """Store how the program ended. exit_code becomes the exit code of the program, or 128 + N after signal N."""
        super().__init__(message)
        self.archive = archive
        self.ending = ending
        code = ending.exit_code if ending.exit_code >= 0 else 128 - ending.exit_code
        code = code if ending.stopped_by is None else 128 + ending.stopped_by
        self.exit_code = code if 0 < code < 256 else 1


class RunInterrupted(RunFailed):
    """The user stopped the run by SIGINT or SIGTERM."""


def run(
    command: Sequence[str],
    parameters: Mapping[str, float],
    repetition: int | None,
    experiment_dir: Path | str,
    options: LaunchOptions | None = None,
) -> RunArchive:
    """Launch `command`, wait for its end, and store the run in `experiment_dir` under the next free repetition number.

    parameters: value of each parameter. repetition: the first number to try (None: 1). options: None: all defaults. The
    output of the program is not changed.

    Raises

    - UsageError for invalid options, or a parameter that contradicts the launch; FormatError for a file of rates,
    - MeasurementError before the start if a program is missing,
    - RunFailed with the partial archive if the program exits with an error or is killed, or a rank has no complete
      profile,
    - RunInterrupted after SIGINT or SIGTERM,
    - MeasurementError if no process left a profile, or the archive cannot be written. The message names the raw folder,
      which is kept.
    """
    options = options or LaunchOptions()
    _check(options)
    rates = read_rates(options.rates) if options.rates is not None else None
    experiment = Path(experiment_dir).absolute()
    raw = experiment / f"{PREFIX}{configuration_name(parameters)}-{uuid.uuid4().hex[:12]}"
    counters = "samples" if options.functions and options.counters is None else options.counters
    source: CounterSource | None = None
    wanted = Wanted()
    if counters is not None:
        from ..counters.choose import choose  # imported here to reduce the start time of runs without counters

        source, wanted = choose(counters)
    if options.machine is not None:
        if source is None:
            raise UsageError("--machine: belongs to --counters cachegrind")
        source = source.of_machine(options.machine)
    plan, again = _plan(tuple(command), raw, options, rates, source, wanted)
    _expect_claims(parameters, plan, options)
    if options.warns:
        from .before import load_now, other_parameters, warnings_before

        for warning in (*warnings_before(plan, options, load_now()), other_parameters(experiment, parameters)):
            if warning:
                options.say(f"warning: {warning}")
    metadata = RunMetadata(
        parameters=dict(parameters),
        repetition=repetition or 1,
        command=tuple(command),
        started=_now(),
        launcher={
            "family": plan.family,
            "version": plan.version,
            "ranks": plan.ranks,
            "argv": list(plan.argv),
            **plan.details,
            **({"rates": str(options.rates)} if rates is not None else {}),
        },
        environment_added={**options.environment, **plan.settings},
        quipu_version=quipu_version(),
        counters={} if source is None else {"source": source.name, "wanted": list(wanted.names)},
        fingerprint=fingerprint_of(command, plan, options, options.template),
    )
    _make_raw_folder(raw, experiment, metadata, plan)
    for note in plan.notes:
        options.say(f"added {note}")
    clock = {"host": socket.gethostname(), "began_ns": time.monotonic_ns()}
    metadata = replace(metadata, started=_now(), launcher={**metadata.launcher, **clock})
    with _kept_if_interrupted(raw, experiment, options):
        before = busy_seconds()
        ending = _launch(plan, raw, options)
        metadata = replace(metadata, launcher={**metadata.launcher, **load_of_others(before, ending, plan)})
        wait_for_nodes(raw)
        counting = ending
        if again and source is not None and not ending.text and any(raw.glob(_PROFILES)):
            counting = _count_again(again, source, options, ending)
            if counting.text:
                metadata = replace(metadata, counters={**metadata.counters, "failed": counting.text})
        archive = _finish(raw, experiment, metadata, ending, options, plan)
    if known := archive.metadata.counters.get("with_callers"):
        options.say(
            f"the compiler inlined {len(known)} functions, whose counters are part of their callers (with_callers in "
            "run.json); build with QUIPU_INLINED=off for times and counters of the same functions"
        )
    if rates is not None and (note := without_rates(archive, rates)):
        options.say(note)
    if again and source is not None and not wanted.among(source.metrics(), archive.metrics):
        kind = RunInterrupted if counting.stopped_by is not None else RunFailed
        why = "; ".join(archive.metadata.problems)
        raise kind(
            f"{archive.path} has no counters of {source.name}; all other data are complete: {why}", counting, archive
        )
    return archive


@contextmanager
def _kept_if_interrupted(raw: Path, experiment: Path, options: LaunchOptions) -> Iterator[None]:
    """If a signal interrupts the merge, print where the profiles or the archive are."""
    try:
        yield
    except KeyboardInterrupt:
        from ..merge.merged import settled_after_interruption

        if text := settled_after_interruption(raw, experiment):
            options.say(text)
        raise


def launch_plan(command: Sequence[str], options: LaunchOptions) -> LaunchPlan:
    """Return the plan of a launch of `command`, without wrappers for MPI: programs, ranks, environment variables."""
    return _plan(tuple(command), Path(), replace(options, mpi=False, rates=None), None, None, Wanted())[0]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _check(options: LaunchOptions) -> None:
    environment = {**os.environ, **options.environment}
    for what, chosen, variable, known in (
        ("clock", options.clock, "QUIPU_CLOCK", CLOCKS),
        ("--mpi-wait", options.mpi_wait, "QUIPU_MPI_WAIT", WAITS),
    ):
        if chosen is not None and chosen not in known:
            raise UsageError(f"{what} {chosen!r}: choose one of {', '.join(known)}")
        if chosen is None and (text := environment.get(variable)) and text not in known:
            raise UsageError(f"{variable}={text[:40]}: choose one of {', '.join(known)}")
    if options.rank_columns_wanted < 0:
        raise UsageError(f"--rank-columns {options.rank_columns}: give 0 or a larger number")
    if not 1 <= options.sampling_rate <= HIGHEST_RATE:
        raise UsageError(f"--sampling-rate {options.sampling_rate}: give 1 to {HIGHEST_RATE} samples per second")
    if options.timeout is not None and not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout}: give a number of seconds above 0")


def _plan(
    command: tuple[str, ...],
    raw: Path,
    options: LaunchOptions,
    rates: Rates | None,
    source: CounterSource | None,
    wanted: Wanted,
) -> tuple[LaunchPlan, tuple[LaunchPlan, ...]]:
    """Return the plan of the launch, and the plans of additional runs that a counter source needs.

    raw: the raw folder of the run. Raises UsageError if an option is not possible with simulated ranks.
    """
    environment = {**os.environ, **options.environment}
    variables = _variables(raw, options, environment)
    sampled = source.variables(wanted) if source is not None else {}
    if sampled:
        variables |= {"QUIPU_SAMPLE": str(options.sampling_rate), **sampled}
    if options.functions:
        variables["QUIPU_SAMPLE_FUNCTIONS"] = "1"
    if options.memory:
        variables["QUIPU_MEMORY"] = "1"
    if options.files:
        variables["QUIPU_FILES"] = "1"
    if options.offload:
        variables["QUIPU_OFFLOAD"] = "1"
    shim = native_file("quipu-exec")
    cores = own_cores()
    folder = options.folder or Path()
    text = None if rates is None else runtime_text(rates)
    request = LaunchRequest(command, shim, environment, variables, cores, folder, rates=text)
    plan = plan_launch(request)
    again: tuple[LaunchPlan, ...] = ()
    scripts = source.shims(raw, options.python) if source is not None else ()
    if source is not None and (scripts or sampled) and not plan.rank_processes:
        raise UsageError(f"--counters {source.name}: simulated ranks share a process; measure this with a real launch")
    asked = {"--memory": options.memory, "--files": options.files, "--offload": options.offload}
    if not plan.rank_processes and (what := next((name for name, on in asked.items() if on), None)):
        raise UsageError(f"{what}: simulated ranks share a process; measure this with a real launch")
    if scripts:
        counting = plan_launch(replace(request, shim=raw / _COUNTING, variables={}))
        again = tuple(replace(counting, files={raw / _COUNTING: script}) for script in scripts)
    if options.mpi and plan.is_mpi:
        from ..launch.mpi_choice import with_mpi

        plan = with_mpi(
            plan,
            lambda all_of_them: plan_launch(replace(request, variables=all_of_them)),
            variables,
            environment,
            library=options.mpi_preload,
            reduce=not options.functions,
        )
    elif options.mpi and plan.may_launch:
        plan = with_launchers_replaced(plan, shim, raw, environment)
    return plan, again


def _variables(raw: Path, options: LaunchOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of the runtime that every rank gets, with any launcher."""
    variables = {name: value for name, value in environment.items() if name.startswith("QUIPU_")}
    for name in _OF_ONE_RUN:  # if this process is measured by another run, they belong to the other run
        variables.pop(name, None)
    variables.update(options.environment)
    if options.template:  # a run of a campaign has only the parameters of the campaign file
        variables.setdefault("QUIPU_PARAMETERS", "off")
    variables["QUIPU_DIR"] = str(raw)
    variables["QUIPU_RANK_COLUMNS"] = str(options.rank_columns_wanted)
    if options.clock:
        variables["QUIPU_CLOCK"] = options.clock
    if options.filter_file:
        variables["QUIPU_FILTER"] = str(options.filter_file.absolute())
    if options.python and variables.get("QUIPU_PYTHON") != "all":
        variables["QUIPU_PYTHON"] = "1"
    if options.mpi_wait is not None:
        variables["QUIPU_MPI_WAIT"] = options.mpi_wait
    if options.mpi_reduce is not None:
        variables["QUIPU_MPI_REDUCE"] = "1" if options.mpi_reduce else "0"
    if options.node_agent:
        variables["QUIPU_NODE_AGENT"] = agent_command(raw)
    return variables


def _count_again(plans: Sequence[LaunchPlan], source: CounterSource, options: LaunchOptions, before: Ending) -> Ending:
    """Run the program again for a counter source, once for each plan.

    Returns how the first of these runs that fails ended, otherwise `before` (how the measured run ended). The shim of
    these plans discards the standard output, because the measured run has already printed it.
    """
    from ..counters.cachegrind import SLOWER

    often = "once more" if len(plans) == 1 else f"{len(plans)} times more"
    low, high = (duration(len(plans) * times * before.seconds) for times in SLOWER)
    takes = low if low == high else f"{low} to {high}"
    options.say(f"running {often} to count with {source.name}, which takes {takes} in all")
    for plan in plans:
        for path, text in plan.files.items():
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
        environment |= {**options.environment, **plan.environment}
        ending = run_process(plan.argv, environment, options.timeout, options.folder)
        if ending.text:
            return ending
    return before


def agent_command(raw: Path) -> str:
    """Return the command of the node agent in the format that the shim reads.

    Words are separated by spaces; a backslash quotes the next character. Option -I isolates the agent from the working
    folder and the environment of the program. Option -S makes it start faster; the agent needs no installed packages.
    """
    words = (sys.executable, "-I", "-S", str(NODE_AGENT), str(raw))
    return " ".join(word.replace("\\", "\\\\").replace(" ", "\\ ") for word in words)


def _launch(plan: LaunchPlan, raw: Path, options: LaunchOptions) -> Ending:
    environment = {**os.environ, **options.environment, **plan.environment}
    try:
        return run_process(plan.argv, environment, options.timeout, options.folder)
    except OSError as error:
        shutil.rmtree(raw, ignore_errors=True)
        raise MeasurementError(f"{plan.argv[0]}: cannot be started: {error.strerror or error}") from error


def _expect_claims(parameters: Mapping[str, float], plan: LaunchPlan, options: LaunchOptions) -> None:
    """Raise UsageError if a parameter with a name for the number of ranks or threads contradicts the launch."""
    environment = {**os.environ, **options.environment}
    one_of_ranks = plan.ranks == 1 and environment.get(ONE_OF_RANKS) == "1"
    wrong = "" if plan.may_launch or one_of_ranks else wrong_ranks(parameters, plan.ranks)
    if wrong := wrong or wrong_threads(parameters, environment):
        raise UsageError(f"{wrong} (nothing was started)")


def _make_raw_folder(raw: Path, experiment: Path, metadata: RunMetadata, plan: LaunchPlan) -> None:
    """Create the raw folder with launch.json and the files of the plan. Raises MeasurementError if not possible."""
    try:
        raw.mkdir(parents=True)
        write_launch(raw, metadata)
        for path, text in plan.files.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if text.startswith("#!") else 0o644)
    except OSError as error:
        shutil.rmtree(raw, ignore_errors=True)
        reason = "it is a file" if experiment.is_file() else error.strerror or str(error)
        raise MeasurementError(
            f"{experiment}: runs cannot be stored there: {reason}; give another folder with -o"
        ) from error


def load_of_others(before: float, ending: Ending, plan: LaunchPlan) -> dict[str, float]:
    """Return {"others": mean number of processors that other programs used during a launch}; {} if unknown.

    before: busy seconds of all processors of this machine before the launch (`busy_seconds`).
    """
    if plan.local_ranks is None and plan.rank_processes:
        return {}  # ranks started by a batch system are not child processes of the launch
    others = used_by_others(busy_seconds() - before, ending.processor_seconds, ending.seconds)
    return {} if others is None else {"others": round(others, 2)}


def _finish(
    raw: Path, experiment: Path, metadata: RunMetadata, ending: Ending, options: LaunchOptions, plan: LaunchPlan
) -> RunArchive:
    program = Path(metadata.command[0]).name
    trouble = f"{program} {ending.text}" if ending.text else ""
    if not trouble and plan.may_launch:
        trouble = wrong_ranks(metadata.parameters, with_jobs(metadata, jobs_of(raw)).launcher["ranks"])
    if plan.if_it_crashes and ending.crashed:
        trouble += f"; {plan.if_it_crashes}"
    metadata = replace(
        metadata,
        seconds=ending.seconds,
        processor_seconds=ending.processor_seconds,
        exit_code=ending.exit_code,
        partial=bool(trouble),
        problems=(*metadata.problems, trouble) if trouble else metadata.problems,
    )
    try:
        write_launch(raw, metadata)
    except OSError as error:
        advice = "free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "correct this"
        if not raw.exists():
            raise MeasurementError(
                f"{experiment}: the raw folder with the measurements was removed while the program ran; measure again"
            ) from error
        if not any(path.stat().st_size for path in raw.glob(_PROFILES)):  # the disk had no space for profiles either
            shutil.rmtree(raw, ignore_errors=True)
            raise MeasurementError(
                f"{experiment}: {error.strerror or error}: nothing was measured; {advice}"
            ) from error
        raise MeasurementError(
            f"{raw}: {error.strerror or error}. The raw profiles stay there; {advice} and merge them with: "
            f"{merge_command(raw, experiment)}"
        ) from error
    if not any(raw.glob(_PROFILES)):
        of_python = _is_python(metadata.command) and not options.python
        raise _nothing_measured(raw, ending, trouble, plan.if_unmeasured or _why_unmeasured(of_python))
    archive = merge_run(raw, experiment, metadata, column_ranks=options.rank_columns_wanted)
    if archive.metadata.complete:
        return archive
    if not trouble:
        problems = "; ".join(archive.metadata.problems)
        message = NUMBERS_MISSING(program=program, problems=problems, archive=archive.path)
        raise RunFailed(message, ending, archive)
    kind = RunInterrupted if ending.stopped_by is not None else RunFailed
    raise kind(RUN_FAILED(trouble=trouble, archive=archive.path), ending, archive)


def _is_python(command: Sequence[str]) -> bool:
    """Return whether a launch command contains a Python interpreter or a Python script."""
    return any(Path(word).name.startswith("python") or word.endswith(".py") for word in command)


def _why_unmeasured(of_python: bool) -> str:
    """Return the advice after a run without a profile. of_python: the program is Python, and --python was not given."""
    if of_python:
        return "Add --python to measure the functions of a Python program"
    return "Build it with the compiler wrappers (quipu-cc, quipu-mpicc …), or link its MPI library dynamically"


def _nothing_measured(raw: Path, ending: Ending, trouble: str, likely: str) -> MeasurementError:
    """Return the error for a run without any profile. likely: the likely cause, or advice.

    The function removes the raw folder if it is certain that it contains nothing: after an interruption, or if no rank
    started.
    """
    started = len(read_raw_folder(raw).rank_files)
    if ending.stopped_by is not None:
        shutil.rmtree(raw, ignore_errors=True)
        return RunInterrupted(f"{trouble}, before anything was measured", ending)
    if started == 0:
        shutil.rmtree(raw, ignore_errors=True)
        why = trouble or "the launcher ended"
        return RunFailed(NO_RANK_STARTED(why=why), ending)
    missing = "its process wrote no profile" if started == 1 else f"none of its {started} processes wrote a profile"
    ended = trouble or "the program ended without an error"
    message = NO_PROFILE(ended=ended, missing=missing, cause=likely, folder=raw)
    return RunFailed(message, ending) if trouble else MeasurementError(message)
