# SPDX-License-Identifier: Apache-2.0
"""The runs that a campaign would make now, and their estimated times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ..merge.experiment import scan_runs
from .campaign import remaining
from .counts.runs import CountRuns
from .file import Campaign
from .task import Silent


@dataclass(frozen=True)
class PlannedRuns:
    """Missing runs of one configuration.

    runs: number of runs. counts: whether they are count-only runs. seconds: estimated sum of the elapsed times of these
    runs; None if unknown. at_least: whether `seconds` is a lower bound.
    """

    parameters: Mapping[str, float]
    runs: int
    counts: bool
    seconds: float | None
    at_least: bool = False


@dataclass(frozen=True)
class Plan:
    """The missing runs in the order of execution, the number of complete runs, and notes for the user."""

    planned: tuple[PlannedRuns, ...]
    finished: int
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Return the estimated elapsed seconds of all runs; runs with unknown time are left out."""
        return sum(one.seconds or 0.0 for one in self.planned)

    @property
    def unknown(self) -> int:
        """Return the number of runs whose time is unknown, or known only as a lower bound."""
        return sum(one.runs for one in self.planned if one.seconds is None or one.at_least)


def plan_of(campaign: Campaign) -> Plan:
    """Return the plan of a campaign, without starting or writing anything."""
    there = campaign.directory.is_dir()
    known = defaultdict[tuple[float, ...], list[float]](list)
    finished, left = 0, dict.fromkeys(campaign.points, campaign.repetitions)
    if there:
        for run in scan_runs(campaign.directory)[0]:
            metadata = run.metadata
            if metadata.complete and metadata.seconds is not None and not metadata.counts_only:
                point = tuple(float(metadata.parameters.get(name, 0.0)) for name in campaign.parameters)
                known[point].append(metadata.seconds)
        tasks, finished = remaining(campaign, Silent())
        left = {point: sum(task.point == point for task in tasks) for point in campaign.points}
    counting = CountRuns(campaign)
    planned = []
    for point, runs in left.items():
        seconds = known.get(tuple(map(float, point)))
        if runs and campaign.search is None:
            cost = runs * sum(seconds) / len(seconds) if seconds else None
            planned.append(PlannedRuns(campaign.values(point), runs, False, cost))
    for one in counting.plan():
        planned.append(PlannedRuns(one.task.parameters, 1, True, one.seconds, one.at_least))
    notes = [counting.why_none] if counting.why_none else []
    if campaign.search is not None:
        notes.append("the table [search] chooses the runs with times one batch after the other")
    if counting.beyond:
        notes.append(counting.beyond)
    return Plan(tuple(planned), finished + counting.finished, tuple(notes))
