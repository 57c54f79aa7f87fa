# SPDX-License-Identifier: Apache-2.0
"""The [scheduler] table of a campaign file: each run is a job of a batch scheduler."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from quipu.modeling.documents import Positive, typed
from quipu.modeling.errors import FormatError

SCHEDULERS = ("slurm", "pbs", "pbs_classic", "lsf", "flux", "cobalt")
"""The batch schedulers for which psij can submit jobs; pbs_classic is Torque."""
_MARGIN = 5.0
"""Minutes that a job gets in addition to the time limit of its run, to start, to end and to merge the profiles."""
_MOST_MINUTES = 1e6
_RANKS = re.compile(r"\{([A-Za-z_]\w*)\}|[1-9]\d{0,8}")


@dataclass(frozen=True)
class SchedulerPlan:
    """The options with which runs become jobs.

    - name: one of `SCHEDULERS`. minutes: time limit of a job.
    - ranks: the number of ranks of a job, as "{parameter}" or digits; "": the number in the command of the launcher.
    - ranks_per_node: None: the scheduler chooses.
    - queue, account, reservation: None: the default of the scheduler.
    - exclusive: whether nodes are not shared with other jobs.
    - at_once: largest number of jobs in the queue. poll: seconds between two queries of the queue.
    - options: values of further options of the scheduler, by name.
    """

    name: str
    minutes: float
    ranks: str = ""
    ranks_per_node: int | None = None
    cores_per_rank: int = 1
    queue: str | None = None
    account: str | None = None
    reservation: str | None = None
    exclusive: bool = False
    at_once: int = 8
    poll: float = 15.0
    options: Mapping[str, str] = field(default_factory=dict)

    def ranks_at(self, parameters: Mapping[str, float]) -> int | None:
        """Return the number of ranks of a job at a point; None if `ranks` is "".

        Raises ValueError if the parameter is not a whole number from 1.
        """
        if not self.ranks:
            return None
        found = _RANKS.fullmatch(self.ranks)
        value = parameters[found[1]] if found is not None and found[1] else float(self.ranks)
        if value < 1 or value != int(value):
            raise ValueError(f"{value:g} is not a number of ranks: a whole number from 1")
        return int(value)

    def nodes(self, ranks: int) -> int | None:
        """Return the number of nodes for a number of ranks; None if the scheduler chooses."""
        return None if self.ranks_per_node is None else math.ceil(ranks / self.ranks_per_node)


@dataclass
class _Table:
    name: str
    minutes: Annotated[float, msgspec.Meta(gt=0, le=_MOST_MINUTES)] | None = None
    ranks: str | Positive = ""
    ranks_per_node: Positive | None = None
    cores_per_rank: Positive = 1
    queue: str | None = None
    account: str | None = None
    reservation: str | None = None
    exclusive: bool = False
    at_once: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = SchedulerPlan.at_once
    poll: Annotated[float, msgspec.Meta(ge=0.1, le=3600)] = SchedulerPlan.poll
    options: dict[str, str | int] = field(default_factory=dict)


_KEYS = tuple(entry.name for entry in msgspec.structs.fields(msgspec.defstruct("Keys", [*_Table.__annotations__])))


def read_scheduler(table: object, parameters: Sequence[str], timeout: float | None, source: object) -> SchedulerPlan:
    """Return the content of the table. Raises FormatError with `source` (the file) and the wrong key.

    parameters: names of the parameters. timeout: time limit of a run in seconds, None if there is none.

    [scheduler]
    name = "slurm"                       # or pbs, pbs_classic, lsf, flux, cobalt
    minutes = 30                         # time limit of a job; not needed if the campaign has a timeout
    ranks = "{p}"                        # optional, like all following keys; default: from the options of the launcher
    ranks_per_node = 48
    cores_per_rank = 1
    queue = "standard"                   # partition
    account = "project"
    reservation = "name"
    exclusive = true                     # nodes are not shared with other jobs
    at_once = 8                          # largest number of jobs in the queue
    poll = 15                            # seconds between two queries of the queue
    options = {constraint = "haswell"}   # further options of the scheduler
    """
    if not isinstance(table, dict):
        raise FormatError(source, "scheduler: should be a table: [scheduler]")
    if unknown := sorted(table.keys() - set(_KEYS)):
        raise FormatError(source, f"scheduler.{unknown[0]} is unknown; [scheduler] has {', '.join(sorted(_KEYS))}")
    found = typed(table, _Table, source, "scheduler")
    if found.name not in SCHEDULERS:
        raise FormatError(source, f"scheduler.name: {found.name!r} is unknown; choose one of {', '.join(SCHEDULERS)}")
    ranks = str(found.ranks)
    match = _RANKS.fullmatch(ranks)
    if ranks and (match is None or (match[1] and match[1] not in parameters)):
        raise FormatError(source, 'scheduler.ranks: should be a parameter like "{p}", or a whole number above 0')
    texts = (found.queue, found.account, found.reservation, *found.options, *map(str, found.options.values()))
    if strange := [text for text in texts if text is not None and not _is_plain(text)]:
        raise FormatError(source, f"scheduler: {strange[0]!r} contains characters that no scheduler accepts")
    minutes = found.minutes
    if minutes is None:
        if timeout is None:
            raise FormatError(
                source, "scheduler.minutes is missing: give the time limit of a job, such as minutes = 30"
            )
        minutes = timeout / 60 + _MARGIN
        if minutes > _MOST_MINUTES:
            raise FormatError(
                source,
                "scheduler.minutes is missing: give it, because the timeout of a run is longer than a job can be",
            )
    return SchedulerPlan(
        found.name,
        minutes,
        ranks,
        found.ranks_per_node,
        found.cores_per_rank,
        found.queue,
        found.account,
        found.reservation,
        found.exclusive,
        found.at_once,
        found.poll,
        {name: str(value) for name, value in found.options.items()},
    )


def _is_plain(text: str) -> bool:
    """Return whether a text can stand between quotes in a job script: printable, and without special characters."""
    return bool(text) and text.isprintable() and not set(text) & set("\"'`$\\")
