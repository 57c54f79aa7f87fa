# SPDX-License-Identifier: Apache-2.0
"""The psij executor of Slurm, extended by the reasons why jobs wait and by advice for the user."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from psij import JobState, JobStatus
from psij.executors.batch.batch_scheduler_executor import check_status_exit_code
from psij.executors.batch.slurm import SlurmJobExecutor


@dataclass(frozen=True)
class Hindrance:
    """A reason why a job does not begin, other than jobs before it in the queue.

    reason: the text of Slurm. advice: what the user can do. never: the job will never begin.
    """

    reason: str
    advice: str
    never: bool = False


class Slurm(SlurmJobExecutor):
    """The executor of psij with a corrected parser, and the reasons of waiting jobs.

    The original parser fails if a reason has several words; psij then has no state of any job.
    """

    _NAME_ = "slurm"

    def __init__(self) -> None:
        """Start without waiting jobs."""
        super().__init__()
        self.reasons: dict[str, str] = {}  # job number → reason, for waiting jobs

    def get_status_command(self, native_ids: Collection[str]) -> list[str]:
        """Return the command that lists all jobs of the user. Each line has number, state and reason (several words).

        native_ids is not used.
        """
        return ["squeue", "--me", "-h", "-t", "all", "-o", "%i %t %r"]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """Return the state of every listed job, by job number. Store the reasons of waiting jobs in `reasons`."""
        check_status_exit_code("squeue", exit_code, out)
        states: dict[str, JobStatus] = {}
        reasons = {}
        for line in out.splitlines():
            native, state, reason = [*line.split(None, 2), "", "", ""][:3]
            if native:
                states[native] = JobStatus(self._STATE_MAP.get(state, JobState.QUEUED))
            if state == "PD":
                reasons[native] = reason.strip("() ")
        self.reasons = reasons
        return states


# Reasons that pass without help. Sources: `man squeue` (JOB REASON CODES); src/common/slurm_protocol_defs.c in Slurm.
_PASSES = re.compile(
    "|None|Priority|Resources|Dependency|BeginTime|Licenses|Prolog|Cleaning|WaitingForScheduling|Reservation"
    "|JobArrayTaskLimit|FedJobLock|BurstBuffer.*"
)
# Patterns of all other reasons, and the advice. The first pattern that matches is used.
_ADVICE = (
    ("DependencyNeverSatisfied", "the job on which it depends (options in [scheduler]) failed: correct this"),
    (
        "ReqNodeNotAvail.*|Nodes required .*|NodeDown|FrontEndDown",
        "nodes that it needs are down, drained or reserved: sinfo -R prints the reason; "
        "request others, or wait for them",
    ),
    ("Partition.*", "change queue, minutes or ranks_per_node in [scheduler]: sinfo lists what partitions allow"),
    ("BadConstraints", "no node fulfils the options in [scheduler]"),
    ("Invalid(Account|QOS)", "correct account and options in [scheduler]"),
    ("JobHeldAdmin", "an administrator holds it: ask for the reason"),
    ("JobHeldUser|JobHoldMaxRequeue|.*[Hh]eld.*", "scontrol release {native} releases it"),
    (
        ".*Minutes.*",
        "its account or QOS has used its computing time: request more, or wait for the next accounting period",
    ),
    (
        ".*(PerJob|WallDuration|Min).*",
        "it requests more or less than a job may use: change minutes, queue or the points",
    ),
    (
        "(QOS|Assoc|Max).*",
        "it begins when other jobs use less of this limit; a limit for single jobs never lets it begin",
    ),
)


def hindrance_of(native: str, reason: str) -> Hindrance | None:
    """Return the hindrance of a waiting job; None if the job begins without help, such as after jobs before it.

    native: job number. reason: the text of squeue, "" if unknown.
    """
    if _PASSES.fullmatch(reason):
        return None
    found = (text.format(native=native) for pattern, text in _ADVICE if re.fullmatch(pattern, reason))
    advice = next(found, f"scontrol show job {native} prints the details")
    return Hindrance(reason, advice, never=reason == "DependencyNeverSatisfied")
