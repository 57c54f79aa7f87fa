# SPDX-License-Identifier: Apache-2.0
"""Reduce the instrumentation to the relevant regions, so that the overhead stays within a budget.

An iteration builds the program with a selection of regions, runs it, and selects regions again from the measurements.
All data are in the folder of the campaign, so that a stopped refinement can continue:

    baseline.json         times of the program without instrumentation
    baseline-after-1.json the same times, measured again after iteration 1, because its overhead was large
    reference/            one run of each point; functions have hooks, inlined functions are part of their callers
    reference-inlined/    one run of each point in which inlined functions have hooks, too
    recording/            short runs with a hook in one region, which measure the overhead to start and to end a run
    iteration-1/          the runs of iteration 1, which are an experiment
    iteration-1.filter    the regions selected for iteration 1, as a Score-P filter file
    iteration-1.json      the measurements of iteration 1 for Extra-P
    refinement.json       the finished iterations
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from quipu.modeling.callgraph import CallGraph
from quipu.modeling.documents import Count, Number, typed
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.refine import HookCost, PathCosts
from quipu.report.formats import format_filter, function_of_construct, parse_filter
from quipu.report.formats.extrap import format_json

from ..archive.metadata import configuration_name
from ..archive.run_json import read_json, write_json, write_text
from ..launch.process import run_process
from ..merge.experiment import StoredRun, load_experiment
from ..source.callgraph import call_graph
from .baseline import Baseline, Plain, measure_baseline
from .build import BUILD_ALL, build
from .campaign import CampaignResult, Here, Launch, experiment_folder, locked, run_campaign
from .file import Campaign
from .left_behind import end_left_behind
from .overhead import RECORDINGS, Overhead, error_of, matters, overhead, root_of, start_and_end, within_budget
from .points import Point
from .refine_file import RefinePlan
from .repetition import run
from .selections import (
    Chosen,
    complete_runs,
    coverage_of,
    executed,
    first_selection,
    hook_cost,
    next_selection,
    reference,
    with_inlined,
)
from .task import Progress, Silent

STATE = "refinement.json"
BASELINE = "baseline.json"
REFERENCE = "reference"
REFERENCE_INLINED = "reference-inlined"
RECORDING = "recording"
_ONLY_HOOKS = {"QUIPU_ONLY_SELECTED": "1"}
_COMPILED = {**_ONLY_HOOKS, "QUIPU_INLINED": "off"}
"""Environment variables of a build in which inlined functions are part of their callers, as without instrumentation."""


@dataclass(frozen=True)
class Iteration:
    """One finished iteration. Overheads are shares of the processor time without instrumentation, over all points.

    - number: from 1. marked: number of regions in the filter. executed: number of functions that the runs entered.
    - overhead: measured overhead of the regions. start_and_end: measured overhead to start and to end the recording.
    - predicted: the overhead that was expected before the runs; None if the strategy does not predict it.
    - coverage: share of the exclusive time of the reference runs that is in instrumented regions; None if unknown.
    - seconds: elapsed time to build, run and analyze.
    - noise: error of the overhead from the differences between repetitions; None with one repetition. `error` also
      considers a negative overhead.
    """

    number: int
    marked: Count
    executed: Count
    overhead: Number
    predicted: Number | None
    coverage: Number | None
    seconds: Number
    start_and_end: Number = 0.0
    noise: Number | None = None

    def within(self, budget: float) -> bool | None:
        """Return whether the overhead is within the budget; None if the noise is too large to decide."""
        return within_budget(self.overhead, self.noise, budget)

    @property
    def error(self) -> float:
        """Return the error of the overhead (see `error_of`)."""
        return error_of(self.overhead, self.noise)


@dataclass(frozen=True)
class Refinement:
    """The result of a refinement.

    - filter_file, names: the filter file of the last iteration, and the linker names of the regions in it.
    - within: whether the last iteration is within the budget; None if the runs are too noisy to decide.
    - stable: whether a further iteration would change the selection only by negligible regions.
    - recording: processor seconds per process to start and to end a recorded run; None if they were not measured
      (runs so long that they are negligible, or an overhead within the budget).
    - vanilla: elapsed seconds of all runs without instrumentation: the shortest run of each point times the number of
      repetitions.
    - seconds: elapsed seconds of the whole refinement.
    """

    iterations: tuple[Iteration, ...]
    filter_file: Path
    names: frozenset[str]
    within: bool | None
    stable: bool
    recording: float | None
    vanilla: float
    seconds: float


@dataclass
class _State:
    reference_seconds: Number
    iterations: list[Iteration]
    budget: Number | None = None


Done = Callable[[Iteration], None]


@dataclass(frozen=True)
class Measuring:
    """The functions with which a refinement measures; tests replace them.

    recorded: makes a measured run and stores it. plain: runs a command without measurement. clock: returns a time in
    seconds, whose differences are elapsed times.
    """

    recorded: Launch = run
    plain: Plain = run_process
    clock: Callable[[], float] = time.monotonic


def refine(
    campaign: Campaign,
    progress: Progress | None = None,
    done: Done | None = None,
    measuring: Measuring | None = None,
) -> Refinement:
    """Repeat iterations until the overhead is within the budget and the selection is stable.

    The number of iterations is limited by [refine]. done: a function that is called after each iteration, also for
    iterations of an earlier invocation. Raises MeasurementError if the campaign has no [refine] or no build line, uses
    a scheduler or the number of the repetition, or if a build or a run fails; FormatError if the strategy needs a call
    graph and the program contains none.
    """
    plan = campaign.refine
    if plan is None:
        raise MeasurementError(f"{campaign.path} has no table [refine]: add one, it may be empty")
    if campaign.scheduler is not None:
        raise MeasurementError(f"{campaign.path}: scheduler: a refinement runs on this machine; remove the table")
    if campaign.repetitions_differ:
        message = "{repetition}: the overhead compares runs with the same data; write a number instead"
        raise MeasurementError(f"{campaign.path}: {message}")
    if not campaign.build:
        raise MeasurementError(f"{campaign.path}: build is missing: the command that builds the whole program")
    progress = progress or Silent()
    with locked(experiment_folder(campaign)):
        end_left_behind(campaign.directory, progress)
        cycle = _Cycle(campaign, plan, progress, measuring or Measuring())
        return cycle.run(done or (lambda iteration: None))


class _Cycle:
    def __init__(self, campaign: Campaign, plan: RefinePlan, progress: Progress, measuring: Measuring) -> None:
        self.campaign, self.plan, self.progress, self.measuring = campaign, plan, progress, measuring
        self.path = campaign.directory / STATE
        known = self.path.exists()
        self.state = typed(read_json(self.path), _State, self.path) if known else _State(0.0, [])
        self.graph: CallGraph | None = None
        self.built = ""  # the kind of the current build

    def run(self, done: Done) -> Refinement:
        """Make the iterations that earlier invocations have not finished; return the result."""
        baseline = self.baseline(BASELINE)
        cheapest = self.cheapest(baseline)
        costs = self.reference()
        if self.plan.filtering == "run":
            self.recording(cheapest, baseline, costs)  # measured now: later it would replace the only build
        hook = hook_cost(complete_runs(self.part(REFERENCE)))
        if self.plan.program and self.graph is None:
            self.graph = call_graph(self.campaign.path.parent / self.plan.program)
        chosen = first_selection(self.plan, costs, hook, self.graph)
        stable = False
        for number in range(1, self.plan.iterations + 1):
            began = self.measuring.clock()
            if number > len(self.state.iterations):
                measured = self.measure(number, chosen)
                spent = self.spent(number, measured, baseline, costs)
                entry = Iteration(
                    number,
                    len(chosen.names),
                    len(executed(measured)),
                    spent.regions,
                    chosen.overhead,
                    coverage_of(costs, chosen.names),
                    self.measuring.clock() - began,
                    spent.start_and_end,
                    spent.noise,
                )
                self.state.iterations.append(entry)
                self.save()
            else:
                measured = self.iteration(number)
                names = _names_in(self.filter_file(number))
                chosen = replace(chosen, names=names) if names != chosen.names else chosen
                entry = self.state.iterations[number - 1]
            done(entry)
            within = entry.within(self.plan.overhead)
            if within is not None:
                hook = _adjusted(hook, entry)
            following = next_selection(self.plan, self.campaign, measured, chosen, hook, self.graph)
            stable = following.names == chosen.names
            if (stable or _minor(costs, following, chosen)) and within is not False:
                stable = True
                break
            if number < self.plan.iterations:
                chosen = following
        last = self.state.iterations[-1]
        if self.built in ("baseline", RECORDING):
            self.instrument(last.number)
        vanilla = self.campaign.repetitions * sum(times.seconds for times in baseline.times.values())
        seconds = baseline.spent + self.state.reference_seconds + sum(one.seconds for one in self.state.iterations)
        return Refinement(
            tuple(self.state.iterations),
            self.filter_file(last.number),
            chosen.names,
            last.within(self.plan.overhead),
            stable,
            self.recording(cheapest, baseline, costs, measures=False),
            vanilla,
            seconds,
        )

    def spent(self, number: int, measured: Campaign, baseline: Baseline, costs: PathCosts) -> Overhead:
        """Return the overhead of iteration `number`, whose runs `measured` contains.

        If the overhead is above the budget, the start and end of the recording are measured separately and subtracted.
        If the overhead is then still above the budget, or is negative by more than the budget, the speed of the machine
        may have changed. The baseline is then measured again.
        """
        runs, cheapest, budget = complete_runs(measured.directory), self.cheapest(baseline), self.plan.overhead
        per_process = self.recording(cheapest, baseline, costs, measures=False)
        found = overhead(runs, baseline, per_process or 0.0)
        if found.regions > budget and per_process is None:
            per_process = self.recording(cheapest, baseline, costs)
            found = overhead(runs, baseline, per_process or 0.0)
        if abs(found.regions) <= budget or self.plan.filtering == "run":  # "run" builds only once
            return found
        self.built = "baseline"
        after = self.baseline(f"baseline-after-{number}.json")
        return overhead(runs, baseline, per_process or 0.0, after)

    def baseline(self, file: str) -> Baseline:
        """Make the missing runs of the baseline in `file`, and return the baseline."""
        repetitions, plain = self.campaign.repetitions, self.measuring.plain
        return measure_baseline(self.campaign, repetitions, self.progress, True, file, plain)

    def part(self, name: str) -> Path:
        """Return the path of a folder or file of the refinement."""
        return self.campaign.directory / name

    def filter_file(self, number: int) -> Path:
        """Return the filter file of an iteration."""
        return self.part(f"iteration-{number}.filter")

    def iteration(self, number: int, filter_file: Path | None = None) -> Campaign:
        """Return the campaign for the runs of an iteration: with the folder of the iteration and without a build."""
        part = self.part(f"iteration-{number}")
        return replace(
            self.campaign, directory=part, build="", filter_file=filter_file, search=None, refine=None, target={}
        )

    def cheapest(self, baseline: Baseline) -> Point:
        """Return the point whose runs without instrumentation are the shortest."""
        names = {configuration_name(self.campaign.values(point)): point for point in self.campaign.points}
        return names[min(baseline.times, key=lambda name: baseline.times[name].seconds)]

    def reference(self) -> PathCosts:
        """Return the costs of regions, summed over all points, from the reference runs; make missing runs."""
        points = tuple(self.campaign.points)
        costs = reference(self.runs_of(REFERENCE, _COMPILED, points))
        if self.plan.strategy != "budget":
            return costs
        runs = self.runs_of(REFERENCE_INLINED, _ONLY_HOOKS, points)
        return with_inlined(costs, reference(runs), hook_cost(runs), self.plan)

    def recording(self, cheapest: Point, baseline: Baseline, costs: PathCosts, measures: bool = True) -> float | None:
        """Return the processor seconds per process to start and to end the recording; None if they are negligible.

        measures: whether to make missing runs. If not, and runs are missing, the result is None.
        """
        plain = baseline.times[configuration_name(self.campaign.values(cheapest))]
        ranks = complete_runs(self.part(REFERENCE))[0].metadata.ranks
        root = root_of(costs)
        if root is None or not matters(plain, ranks, self.plan.overhead):
            return None
        runs = self.runs_in(RECORDING)
        if len(runs) < RECORDINGS and not measures:
            return None
        only = self.part(f"{RECORDING}.filter")
        if not only.exists():
            write_text(only, format_filter([root], ["start and end of the recording"]))
        variables = {"QUIPU_FILTER": str(only.absolute()), **_COMPILED}
        return start_and_end(self.runs_of(RECORDING, variables, (cheapest,), RECORDINGS), plain)

    def runs_in(self, name: str) -> list[StoredRun]:
        """Return the complete runs in the folder `name`; empty if the folder does not exist."""
        folder = self.part(name)
        return complete_runs(folder) if folder.is_dir() else []

    def runs_of(
        self, name: str, variables: dict[str, str], points: tuple[Point, ...], times: int = 1
    ) -> list[StoredRun]:
        """Return the runs in the folder `name`. If some are missing, build with `variables` and make them.

        times: number of runs at each point.
        """
        folder, runs = self.part(name), self.runs_in(name)
        if len(runs) < times * len(points):
            began = self.measuring.clock()
            self.build(name, variables)
            if self.plan.program:
                self.graph = call_graph(self.campaign.path.parent / self.plan.program)
            some = replace(self.iteration(0), directory=folder, points=points, repetitions=times, grid=None)
            self.measured(some)
            runs = complete_runs(folder)
            self.state.reference_seconds += self.measuring.clock() - began
            self.save()
        return runs

    def measure(self, number: int, chosen: Chosen) -> Campaign:
        """Build with a selection, run all points, and return the campaign of these runs.

        With filtering at run time the program is built once without a selection, and the runs use the filter. Writes
        the files of the iteration. Raises MeasurementError if the build or a run fails.
        """
        filter_file = self.filter_file(number)
        comments = [f"iteration {number} of {self.campaign.name}: {len(chosen.names)} regions"]
        known = executed(replace(self.campaign, directory=self.part(REFERENCE)))
        write_text(filter_file, format_filter(sorted(chosen.names), comments, dropped=known))
        compiled = self.plan.filtering == "compile"
        if compiled:
            self.instrument(number)
        else:
            self.build("usual", {})
        measured = self.iteration(number, None if compiled else filter_file.absolute())
        self.measured(measured)
        if compiled:
            self.expect_selected(chosen, measured)
        written = format_json(load_experiment(measured.directory), False)
        write_text(self.part(f"iteration-{number}.json"), written.text)
        return measured

    def measured(self, some: Campaign) -> None:
        """Make the missing runs of a part of the refinement. Raises MeasurementError if a run fails."""
        _expect_complete(run_campaign(some, self.progress, execution=Here(self.measuring.recorded)))

    def expect_selected(self, chosen: Chosen, measured: Campaign) -> None:
        """Raise MeasurementError if the runs entered more functions outside of the selection than it contains.

        The build line then did not build the program that ran.
        """
        unknown = executed(measured) - chosen.names
        others = {name for name in unknown if function_of_construct(name) not in chosen.names}
        if len(others) > len(chosen.names):
            raise MeasurementError(
                f"{self.campaign.path}: build: runs in {measured.directory} measured {len(others)} functions that are "
                f"not among the {len(chosen.names)} of the filter, such as {min(others)}: the build did not create the "
                f"program that ran. {BUILD_ALL}; then begin in another folder (directory = …), these runs stay"
            )

    def instrument(self, number: int) -> None:
        """Build the program with the selection of an iteration."""
        variables = {"QUIPU_FILTER": str(self.filter_file(number).absolute()), **_ONLY_HOOKS}
        self.build(f"iteration {number}", variables)

    def build(self, kind: str, variables: dict[str, str]) -> None:
        """Build the program with these environment variables, unless this process built the same kind last."""
        if self.built != kind:
            self.progress.note(f"building: {kind}")
            build(self.campaign, variables)
            self.built = kind

    def save(self) -> None:
        """Write the finished iterations to refinement.json."""
        write_json(self.path, {**asdict(self.state), "budget": self.plan.overhead})


def read_refinement(folder: Path) -> tuple[tuple[Iteration, ...], float | None]:
    """Return the iterations of a refinement, and its budget as a share (None: not stored).

    Raises FormatError if the folder contains no refinement or no finished iteration.
    """
    path = folder / STATE
    if not path.is_file():
        raise FormatError(folder, f"has no {STATE}: give the folder that quipu refine wrote")
    state = typed(read_json(path), _State, path)
    if not state.iterations:
        raise FormatError(path, "contains no iteration yet: continue quipu refine")
    return tuple(state.iterations), state.budget


def filter_names(folder: Path, number: int) -> frozenset[str] | None:
    """Return the linker names of the regions that an iteration instruments; None if its filter file does not exist."""
    path = folder / f"iteration-{number}.filter"
    return _names_in(path) if path.is_file() else None


def _adjusted(hook: HookCost, entry: Iteration) -> HookCost:
    """Return the cost of a visit, multiplied by the ratio of measured to predicted overhead if this is above 1.

    A ratio of `_EXPLAINED` or more does not change the cost: so much overhead is noise or the start of processes.
    """
    if not entry.predicted or not entry.predicted < entry.overhead < _EXPLAINED * entry.predicted:
        return hook
    factor = entry.overhead / entry.predicted
    return HookCost(hook.pair * factor, hook.inside * factor)


def _minor(costs: PathCosts, following: Chosen, chosen: Chosen) -> bool:
    """Return whether the selection `following` only removes negligible regions from the selection `chosen`.

    No further iteration is necessary then.
    """
    return following.names <= chosen.names and coverage_of(costs, chosen.names - following.names) < _MINOR


_EXPLAINED = 10
"""Largest ratio of measured to predicted overhead that visits can explain: hooks also disturb caches and branch
prediction."""
_MINOR = 0.01
"""A change of the selection needs no further iteration if the removed regions have less than this share of the time."""


def _names_in(path: Path) -> frozenset[str]:
    rules = parse_filter(path.read_text(encoding="utf-8"), path).region_rules
    return frozenset(rule.pattern for rule in rules if not rule.exclude)


def _expect_complete(result: CampaignResult) -> None:
    if result.exit_code:
        errors = "; ".join(outcome.error for outcome in result.failed[:3]) or "not all runs were started"
        why = "interrupted" if result.interrupted else errors
        failure = MeasurementError(f"{result.directory}: {why}; repeat the command to continue")
        failure.exit_code = result.exit_code
        raise failure
