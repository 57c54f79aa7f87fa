# SPDX-License-Identifier: Apache-2.0
"""Submit, query and cancel jobs of batch schedulers, through the library psij-python."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from quipu.modeling.errors import EnvironmentProblem, QuipuError

from .folder import FOLDER, JobFolder
from .plan import SchedulerPlan

if TYPE_CHECKING:
    from .slurm import Hindrance

State = Literal["waiting", "running", "ended", "unknown"]
_EVER = 1 << 30


class SubmissionFailed(QuipuError):
    """The submission of a job failed.

    later: the scheduler does not answer, so the caller should try again later. It may still have accepted the job.
    """

    def __init__(self, message: str, later: bool) -> None:
        """Store the message, and whether to try again."""
        super().__init__(message)
        self.later = later


class Queue(Protocol):
    """The operations of a scheduler. `state` may be late or wrong; claims and results in the job folders are not."""

    plan: SchedulerPlan

    def submit(self, job: JobFolder, ranks: int) -> str:
        """Submit a job for `ranks` ranks and return its number in the scheduler. Raises SubmissionFailed."""

    def adopt(self, job: JobFolder, native: str) -> None:
        """Watch a job that an earlier invocation submitted. native: its number in the scheduler."""

    def state(self, job: JobFolder) -> State:
        """Return the state of a submitted or adopted job according to the scheduler.

        unknown: the scheduler does not list the job. The job has ended, or the controller of the scheduler restarted
        from an older state and lost the job.
        """

    def hindrance(self, job: JobFolder) -> Hindrance | None:
        """Return the reason why a waiting job may never begin; None if no such reason is known."""

    def cancel(self, job: JobFolder) -> str:
        """Cancel a job; return the error message of the scheduler, "" after success."""

    def close(self) -> None:
        """Stop querying the scheduler. Jobs continue."""


class PsijQueue:
    """A `Queue` on psij-python, which contains the commands and job scripts of each scheduler."""

    def __init__(self, plan: SchedulerPlan, experiment: Path) -> None:
        """Prepare psij for the scheduler of `plan`. experiment: the folder of the experiment.

        Raises EnvironmentProblem if psij is missing, or if the path contains characters that the shell would interpret.
        """
        unsafe = sorted({mark for mark in str(experiment.absolute()) if mark in "$`\\\"'\n\r"})
        if unsafe:  # psij writes the path into scripts between double quotes
            raise EnvironmentProblem(
                f"{experiment}: its path has {' '.join(map(repr, unsafe))}, which the shell of a batch job would "
                "interpret; name a folder without such characters"
            )
        try:
            import psij
        except ImportError as error:
            raise EnvironmentProblem(
                f"scheduler {plan.name!r} needs psij-python: pip install 'quipu[schedulers]'"
            ) from error
        logging.getLogger("psij").setLevel(logging.CRITICAL)  # no tracebacks if the scheduler does not answer
        self._psij = psij
        self.plan = plan
        executor = _executor(psij, plan.name)
        config = executor.config
        # After some failed queries psij would report all jobs as failed. A scheduler that does not answer for a while
        # still has its jobs, so psij must continue to query.
        for name, value in (
            ("queue_polling_interval", plan.poll),
            ("initial_queue_polling_delay", min(plan.poll, 2.0)),
            ("queue_polling_error_threshold", _EVER),
        ):
            if hasattr(config, name):
                setattr(config, name, value)
        if hasattr(executor, "work_directory"):
            executor.work_directory = (experiment / FOLDER / "scripts").absolute()
        self._executor = executor
        self._known: dict[str, Any] = {}

    def submit(self, job: JobFolder, ranks: int) -> str:
        """Submit a job; return its number in the scheduler. Raises SubmissionFailed."""
        psij, plan = self._psij, self.plan
        nodes = plan.nodes(ranks)
        resources = psij.ResourceSpecV1(
            node_count=nodes,
            process_count=ranks if nodes is None else None,
            processes_per_node=None if nodes is None else min(ranks, plan.ranks_per_node or ranks),
            cpu_cores_per_process=plan.cores_per_rank,
            exclusive_node_use=plan.exclusive,
        )
        attributes = psij.JobAttributes(
            duration=timedelta(minutes=plan.minutes),
            queue_name=plan.queue,
            account=plan.account,
            reservation_id=plan.reservation,
            custom_attributes=_custom(plan) or None,
        )
        spec = psij.JobSpec(
            executable=sys.executable,
            arguments=["-P", "-m", "quipu.agent.campaign.jobs.program", str(job.path.absolute())],
            directory=job.path.absolute(),
            name=job.name,
            inherit_environment=True,
            resources=resources,
            attributes=attributes,
        )
        known = psij.Job(spec)
        try:
            self._executor.submit(known)
        except (psij.SubmitException, psij.InvalidJobException, OSError) as error:
            raise SubmissionFailed(f"{plan.name}: {' '.join(str(error).split())}", later=not self._answers()) from error
        self._known[job.path.name] = known
        return str(known.native_id)

    def _answers(self) -> bool:
        """Return whether the scheduler can list its jobs."""
        try:
            self._executor.list()
        except (OSError, subprocess.SubprocessError, self._psij.SubmitException):
            return False
        return True

    def adopt(self, job: JobFolder, native: str) -> None:
        """Watch a job that an earlier invocation submitted."""
        known = self._psij.Job()
        self._executor.attach(known, native)
        self._known[job.path.name] = known

    def state(self, job: JobFolder) -> State:
        """Return the latest state that psij knows. psij reports a job that is no longer listed as completed."""
        state = self._known[job.path.name].status.state
        if state.final:
            return "unknown" if state == self._psij.JobState.COMPLETED else "ended"
        return "running" if state == self._psij.JobState.ACTIVE else "waiting"

    def hindrance(self, job: JobFolder) -> Hindrance | None:
        """Return the reason why a waiting job may never begin; None for all schedulers other than Slurm."""
        if self.plan.name != "slurm":
            return None
        from .slurm import hindrance_of

        native = str(self._known[job.path.name].native_id)
        return hindrance_of(native, self._executor.reasons.get(native, ""))

    def cancel(self, job: JobFolder) -> str:
        """Cancel a job; return the error message of the scheduler, "" after success."""
        try:
            self._executor.cancel(self._known[job.path.name])
        except (self._psij.SubmitException, OSError) as error:
            return " ".join(str(error).split())
        return ""

    def close(self) -> None:
        """End the thread of psij, which would otherwise continue to query unfinished jobs."""
        if (thread := getattr(self._executor, "_queue_poll_thread", None)) is not None:
            thread.done = True


def _executor(psij: Any, name: str) -> Any:
    """Return the psij executor of the scheduler `name`."""
    if name != "slurm":
        return psij.JobExecutor.get_instance(name)
    from .slurm import Slurm

    return Slurm()


def _custom(plan: SchedulerPlan) -> Mapping[str, str]:
    """Return the further options of a plan by their names in psij, such as slurm.constraint.

    psij uses the prefix "pbs" also for Torque (pbs_classic).
    """
    kind = "pbs" if plan.name == "pbs_classic" else plan.name
    return {f"{kind}.{name}": value for name, value in plan.options.items()}


def scheduler_queue(plan: SchedulerPlan, experiment: Path) -> Queue:
    """Return the queue of a plan. Raises EnvironmentProblem (see `PsijQueue`)."""
    return PsijQueue(plan, experiment)
