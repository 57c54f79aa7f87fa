# SPDX-License-Identifier: Apache-2.0
"""Slurm by way of psij, with the reasons for which jobs wait, and what they mean for who waits for them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from psij import JobState, JobStatus
from psij.executors.batch.batch_scheduler_executor import check_status_exit_code
from psij.executors.batch.slurm import SlurmJobExecutor


@dataclass(frozen=True)
class Hindrance:
    """Why a job does not begin although it has its turn. never: it will not; advice: what to do, for the user."""

    reason: str
    advice: str
    never: bool = False


class Slurm(SlurmJobExecutor):
    """The executor of psij without its error: it cannot parse a reason of several words, and then loses all jobs."""

    _NAME_ = "slurm"

    def __init__(self) -> None:
        """No job waits yet."""
        super().__init__()
        self.reasons: dict[str, str] = {}  # of jobs that wait, by number

    def get_status_command(self, native_ids: Collection[str]) -> list[str]:
        """Return the command that lists the user's jobs: number, state, reason in as many words as it has."""
        return ["squeue", "--me", "-h", "-t", "all", "-o", "%i %t %r"]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        """Return the state of every job that is listed."""
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


# As `man squeue`, JOB REASON CODES, has them, and Slurm's src/common/slurm_protocol_defs.c. The first that fits counts.
_PASSES = re.compile(
    "|None|Priority|Resources|Dependency|BeginTime|Licenses|Prolog|Cleaning|WaitingForScheduling|Reservation"
    "|JobArrayTaskLimit|FedJobLock|BurstBuffer.*"
)
_ADVICE = (
    ("DependencyNeverSatisfied", "what it depends on (options in [scheduler]) failed: correct that"),
    (
        "ReqNodeNotAvail.*|Nodes required .*|NodeDown|FrontEndDown",
        "nodes that it needs are down, drained or reserved: sinfo -R says why; ask for others, or wait for them",
    ),
    ("Partition.*", "change queue, minutes or ranks_per_node in [scheduler]: sinfo lists what partitions allow"),
    ("BadConstraints", "no node has what the options in [scheduler] ask for"),
    ("Invalid(Account|QOS)", "correct account and options in [scheduler]"),
    ("JobHeldAdmin", "an administrator holds it: ask for the cause"),
    ("JobHeldUser|JobHoldMaxRequeue|.*[Hh]eld.*", "scontrol release {native} lets it go"),
    (".*Minutes.*", "what its account or QOS may compute is used up: ask for more, or wait until it counts anew"),
    (".*(PerJob|WallDuration|Min).*", "it asks for more or less than one job may: change minutes, queue or the points"),
    ("(QOS|Assoc|Max).*", "it begins when other jobs leave room below this limit, and never if it is of each job"),
)


def hindrance_of(native: str, reason: str) -> Hindrance | None:
    """Return what keeps a waiting job from its turn; None if its turn will come: others are before it."""
    if _PASSES.fullmatch(reason):
        return None
    found = (text.format(native=native) for pattern, text in _ADVICE if re.fullmatch(pattern, reason))
    advice = next(found, f"scontrol show job {native} says more")
    return Hindrance(reason, advice, never=reason == "DependencyNeverSatisfied")
