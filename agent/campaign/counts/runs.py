# SPDX-License-Identifier: Apache-2.0
"""The count-only runs of a campaign with a target: up to the number of ranks of the target, at the smallest sizes.

Effort and communication do not depend on the machine, so the ranks can share processors, or SimGrid can simulate them.
Runs with many ranks at a small size determine properties that few ranks cannot show, such as the dimensions of a
process grid. A size is the tuple of the values of all parameters except the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace

import psutil
from quipu.modeling.printable import counted
from quipu.modeling.rank_numbers import rank_counts
from quipu.report.text import duration

from ...archive.metadata import RunMetadata
from ...archive.read import read_metadata
from ...merge.experiment import StoredRun, scan_runs
from ..file import Campaign
from ..outdated import FOLDER, move_runs
from ..repetition import LaunchOptions
from ..task import Execution, Outcome, Progress, Task
from .costs import LEAST_SECONDS, Cost, Costs
from .points import point_of, ranks_parameter, sizes
from .simulated import SIMULATOR, simulated_campaign, simulates

_TRIES = 2
"""Number of larger sizes to try if the program cannot run with a number of ranks at the smallest size."""
_GIB = 2.0**30


@dataclass(frozen=True)
class PlannedCount:
    """A count-only run that is not made yet.

    number: number of ranks. size: index of the size. seconds: estimated elapsed time. at_least: no earlier run allows
    an estimate, so `seconds` is a lower bound.
    """

    task: Task
    number: int
    size: int
    seconds: float
    at_least: bool = False


class CountRuns:
    """The finished and the missing count-only runs of a campaign."""

    def __init__(self, campaign: Campaign, processors: int | None = None) -> None:
        """Read the finished runs from the disk.

        processors: number of processors that the ranks may use; None: all processors of this machine.
        """
        self._campaign = campaign
        self._processors = processors or psutil.cpu_count() or 1
        self._costs = Costs(self._processors)
        self._ranks = ranks_parameter(campaign) if campaign.target else None
        self._numbers: list[int] = []
        self._done: dict[int, dict[int, float]] = {}  # number of ranks → index of the size → seconds
        self._tries: dict[int, list[Outcome]] = {}  # number of ranks → failed runs
        self._spent = 0.0  # seconds of all count-only runs
        # False: runs with processes, True: runs in the simulator. Contains the kind that failed at a point at which the
        # other kind succeeded.
        self._broken: set[bool] = set()
        if self._ranks is None:
            return
        place = campaign.parameters.index(self._ranks)
        self._numbers = rank_counts([point[place] for point in campaign.points], campaign.target[self._ranks])
        self._sizes, self._declared = sizes(campaign, self._ranks)
        if campaign.directory.is_dir():
            for run in scan_runs(campaign.directory)[0]:
                self._take(run.metadata)
                self._spent += run.metadata.seconds or 0.0 if run.metadata.counts_only else 0.0

    @property
    def finished(self) -> int:
        """Return the number of complete count-only runs."""
        return sum(len(sizes) for sizes in self._done.values())

    @property
    def why_none(self) -> str:
        """Return why a campaign with a target can have no count-only runs; "" if it can, or if it has no target."""
        if self._campaign.target and self._ranks is None:
            return "no parameter is the number of ranks: [target] adds no count-only runs"
        if self._numbers and self._campaign.scheduler is not None:
            return (
                "[target] adds no count-only runs where runs are jobs: make them on one machine, with "
                "quipu run --counts or a campaign file without [scheduler]"
            )
        return ""

    def plan(self) -> list[PlannedCount]:
        """Return the missing runs that the budget allows, in order. Assumes that no run fails."""
        return self._forecast()[0]

    @property
    def beyond(self) -> str:
        """Return why the plan does not reach the number of ranks of the target; "" if it does."""
        return self._forecast()[1]

    def _forecast(self) -> tuple[list[PlannedCount], str]:
        state, found = deepcopy(self), list[PlannedCount]()
        while isinstance(one := state._next(), PlannedCount):
            found.append(one)
            state._spent += one.seconds
            state._done.setdefault(one.number, {})[one.size] = one.seconds
        return found, one

    def outcomes(self, execution: Execution, options: LaunchOptions, progress: Progress) -> Iterator[Outcome]:
        """Make the missing runs one after the other; yield the outcome of each.

        If a run fails, the next larger size is tried, up to `_TRIES` times. The outcome of a run that such a run
        replaces has `replaced` set. The archives of failed runs are moved out of the experiment.
        """
        while isinstance(one := self._next(), PlannedCount):
            outcome = self._run(one, execution, options, progress)
            if outcome.interrupted:
                yield outcome
                return
            if not outcome.error:
                yield outcome
                self._put_aside(one.number)
                continue
            tries = self._tries.setdefault(one.number, [])
            tries.append(outcome)
            limit = self._campaign.counts.budget
            if limit is not None and self._spent >= limit:  # the rest of the budget was the time limit of this run
                yield replace(outcome, replaced=True)
                self._put_aside(one.number)
                continue
            following = self._next()
            if isinstance(following, PlannedCount) and following.number == one.number:
                yield replace(outcome, replaced=True)
                progress.note(f"counts: {one.task.name} did not run; the next larger size is tried")
                continue
            yield outcome
            self._put_aside(one.number)
            if one.number not in self._done:
                of = counted(len(tries), "size", "sizes")
                progress.note(f"counts: {self._ranks} = {one.number} is skipped: the program ran with none of {of}")
        if one:
            progress.note(f"counts: {one}")

    def _next(self) -> PlannedCount | str:
        """Return the next run, or the reason why no more runs are made; "" if all runs are done.

        First, each number of ranks gets one run, at the smallest size with which the program runs. Then each number
        gets a second run at the next declared size, as long as the budget allows it. Without a budget, the second runs
        may take as long in total as the first runs.
        """
        if self.why_none:
            return ""
        limit = self._campaign.counts.budget
        for number in self._numbers:
            tried = len(self._tries.get(number, ()))
            size = max((min(done) for of, done in self._done.items() if of < number), default=0) + tried
            if number in self._done or tried > _TRIES or size >= len(self._sizes):
                continue
            one = self._planned(number, size)
            if limit is not None and self._spent + one.seconds > limit:
                return (
                    f"the budget of {duration(limit)} does not reach {self._ranks} = {number}: "
                    f"{duration(self._spent)} are spent, and this run takes {_about(one)}"
                )
            if not self._ways(number):
                needed, free = (x / _GIB for x in (self._costs.memory(number), psutil.virtual_memory().available))
                return (
                    f"{self._ranks} = {number} needs about {needed:.1f} GiB of memory, and {free:.1f} GiB are free: "
                    "declare a program for SMPI in [counts]"
                )
            return one
        firsts = sum(done[min(done)] for done in self._done.values())
        seconds = sum(sum(done.values()) for done in self._done.values()) - firsts
        for number in self._numbers:
            done = self._done.get(number, {})
            size = min(done, default=0) + 1
            if not done or size in done or size >= self._declared or number in self._tries:
                continue
            one = self._planned(number, size)
            if self._spent + one.seconds > limit if limit is not None else seconds + one.seconds > firsts:
                break
            if self._ways(number):
                return one
        return ""

    def _planned(self, number: int, size: int) -> PlannedCount:
        assert self._ranks is not None
        others = self._sizes[size]
        point = point_of(self._campaign, self._ranks, number, others)
        known = [self._costs.seconds(number, others, kind) for kind in self._ways(number) or [False]]
        seconds = min((one for one in known if one is not None), default=None)
        least = LEAST_SECONDS * number / (1 if self._campaign.launcher else self._processors)
        task = Task(point, self._campaign.values(point), 1, counts=True)
        return PlannedCount(task, number, size, least if seconds is None else seconds, seconds is None)

    def _ways(self, number: int) -> list[bool]:
        """Return how a number of ranks can run. False: as processes, if the memory suffices; True: simulated."""
        if self._campaign.launcher == SIMULATOR:
            return [True]
        fits = self._costs.memory(number) <= psutil.virtual_memory().available
        ways = [False] if fits else []
        return [kind for kind in [*ways, *([True] if simulates(self._campaign) else [])] if kind not in self._broken]

    def _cheapest(self, one: PlannedCount) -> bool:
        """Return whether to simulate a run. Each way is used once to learn its cost, and then the cheaper way."""
        ways = self._ways(one.number)
        if len(ways) == 1:
            return ways[0]
        for kind in ways:
            if not self._costs.counted(kind):
                return kind
        # A simulation needs seconds to start at any number of ranks. Its first run does not show how the time grows, so
        # exponent 0 is assumed until there are two.
        others = self._sizes[one.size]
        cost = {kind: self._costs.seconds(one.number, others, kind, 0.0 if kind else 1.0) or 0.0 for kind in ways}
        return min(ways, key=cost.__getitem__)

    def _run(self, one: PlannedCount, execution: Execution, options: LaunchOptions, progress: Progress) -> Outcome:
        """Make a run, as processes or simulated. If it fails, try the other way if possible, and return its outcome."""
        ways = self._ways(one.number)
        simulated = self._cheapest(one)
        outcome = self._launched(one, simulated, execution, options, progress)
        if outcome.error and not outcome.interrupted and len(ways) > 1:
            progress.note(f"counts: {one.task.name} {_WAYS[simulated]} failed: {outcome.error}")
            other = self._launched(one, not simulated, execution, options, progress)
            if not other.error:
                self._broken.add(simulated)
                progress.note(f"counts: further runs are {_WAYS[not simulated]}")
            outcome = other
        return outcome

    def _launched(
        self, one: PlannedCount, simulated: bool, execution: Execution, options: LaunchOptions, progress: Progress
    ) -> Outcome:
        campaign = simulated_campaign(self._campaign) if simulated and not self._campaign.launcher else self._campaign
        limit = self._campaign.counts.budget
        left = None if limit is None else max(limit - self._spent, 1.0)
        times = [time for time in (options.timeout, left) if time is not None]
        how = replace(options, timeout=min(times, default=None))
        (outcome,) = execution.outcomes(campaign, [one.task], how, progress)
        self._spent += outcome.seconds
        if not outcome.error and outcome.archive is not None:
            self._take(read_metadata(outcome.archive))
        return outcome

    def _take(self, run: RunMetadata) -> None:
        """Record the cost of a complete run. Record a count-only run as done."""
        if not run.complete or set(run.parameters) != set(self._campaign.parameters):
            return
        assert self._ranks is not None
        number = round(run.parameters[self._ranks])
        others = tuple(float(run.parameters[name]) for name in self._campaign.parameters if name != self._ranks)
        memory = sum(rank.get("max_rss_bytes") or 0 for node in run.nodes for rank in node.get("ranks") or ())
        simulated = run.launcher.get("family") == SIMULATOR
        known = [tuple(map(float, size)) for size in self._sizes]
        place = known.index(others) if others in known else None
        own = others if place is None else self._sizes[place]
        seconds = run.seconds or 0.0
        self._costs.add(Cost(number, own, seconds, run.counts_only, simulated, memory))
        if run.counts_only and number in self._numbers and place is not None:
            self._done.setdefault(number, {})[place] = seconds

    def _put_aside(self, number: int) -> None:
        """Move the archives of the failed runs with `number` ranks out of the experiment."""
        folder = self._campaign.directory
        paths = [one.archive for one in self._tries.get(number, ()) if one.archive is not None and one.archive.is_dir()]
        if paths:
            move_runs([StoredRun(path, read_metadata(path)) for path in paths], folder / FOLDER)


_WAYS = {False: "with processes", True: "in the simulator"}


def _about(one: PlannedCount) -> str:
    return f"{'at least' if one.at_least else 'about'} {duration(one.seconds)}"
