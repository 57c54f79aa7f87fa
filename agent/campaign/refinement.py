"""The cycle of build, run and analysis that narrows instrumentation down to what matters, within a budget.

The folder of the campaign holds all of it, so that a cycle that was stopped goes on:

    baseline.json         what the program takes without instrumentation
    reference/            one cheap run with hooks wherever they may be worth it, and
    reference-inlined/    another, in which functions that compilers inlined have them, too
    iteration-1/          the runs of an iteration, an experiment like any other,
    iteration-1.filter    what it instruments, as Score-P's filter files, and
    iteration-1.json      its measurements for Extra-P
    refinement.json       the iterations so far
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
from quipu.report.formats import format_filter, parse_filter
from quipu.report.formats.extrap import format_json

from ..archive.metadata import configuration_name
from ..archive.run_json import read_json, write_json
from ..merge.experiment import StoredRun, load_experiment, scan_runs
from ..source.callgraph import call_graph
from .baseline import Baseline, measure_baseline
from .build import build
from .campaign import CampaignResult, locked, run_campaign
from .file import Campaign, Point
from .refine_file import RefinePlan
from .repetition import LaunchOptions
from .selections import (
    Chosen,
    coverage_of,
    executed,
    first_selection,
    hook_cost,
    next_selection,
    reference,
    target_of,
    with_inlined,
)
from .task import Progress, Silent

STATE = "refinement.json"
REFERENCE = "reference"
REFERENCE_INLINED = "reference-inlined"
_ONLY_HOOKS = {"QUIPU_ONLY_SELECTED": "1"}
_COMPILED = {**_ONLY_HOOKS, "QUIPU_INLINED": "off"}
"""Functions that are inlined are part of their callers, as in the program without us."""


@dataclass(frozen=True)
class Iteration:
    """One iteration. marked: regions in the filter; executed: of them, those that ran.

    overhead: measured, a share of the processor time without instrumentation, over all points. predicted: before the
    runs. coverage: of the exclusive time of the reference runs at the target, by instrumented regions. seconds:
    building, running and deciding.
    """

    number: int
    marked: Count
    executed: Count
    overhead: Number
    predicted: Number | None
    coverage: Number | None
    seconds: Number


@dataclass(frozen=True)
class Refinement:
    """The outcome: all iterations, the filter file of the last, and whether it is within budget and stable.

    vanilla: seconds of all runs without instrumentation, at their shortest, once per repetition; seconds: of the cycle.
    """

    iterations: tuple[Iteration, ...]
    filter_file: Path
    names: frozenset[str]
    within: bool
    stable: bool
    vanilla: float
    seconds: float


@dataclass
class _State:
    reference_seconds: Number
    iterations: list[Iteration]
    budget: Number | None = None


Done = Callable[[Iteration], None]


def refine(campaign: Campaign, progress: Progress | None = None, done: Done | None = None) -> Refinement:
    """Refine what a campaign instruments until the overhead is within budget and the selection stays, or to the limit.

    done: learns of each iteration. Raises MeasurementError if the campaign has no [refine] or no build command, or a
    build or a run fails; FormatError for a program without a call graph if the strategy needs one.
    """
    plan = campaign.refine
    if plan is None:
        raise MeasurementError(f"{campaign.path} has no table [refine]: add one, it may be empty")
    if campaign.scheduler is not None:
        raise MeasurementError(f"{campaign.path}: scheduler: a refinement runs here; leave the table out")
    if not campaign.build:
        raise MeasurementError(f"{campaign.path}: build is missing: the command that builds the program from anew")
    try:
        campaign.directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MeasurementError(f"{campaign.directory}: cannot hold it: {error.strerror or error}") from error
    with locked(campaign.directory):
        return _Cycle(campaign, plan, progress or Silent()).run(done or (lambda iteration: None))


class _Cycle:
    def __init__(self, campaign: Campaign, plan: RefinePlan, progress: Progress) -> None:
        self.campaign, self.plan, self.progress = campaign, plan, progress
        self.path = campaign.directory / STATE
        known = self.path.exists()
        self.state = typed(read_json(self.path), _State, self.path) if known else _State(0.0, [])
        self.graph: CallGraph | None = None
        self.built = ""  # which build the program is of now

    def run(self, done: Done) -> Refinement:
        """Go through what is left of the cycle."""
        baseline = measure_baseline(self.campaign, self.campaign.repetitions, self.progress, True)
        costs = self.reference(baseline)
        hook = hook_cost(scan_runs(self.part(REFERENCE))[0])
        if self.plan.program and self.graph is None:
            self.graph = call_graph(self.campaign.path.parent / self.plan.program)
        chosen = first_selection(self.plan, costs, hook, self.graph)
        stable = False
        for number in range(1, self.plan.iterations + 1):
            began = time.monotonic()
            if number > len(self.state.iterations):
                measured = self.measure(number, chosen)
                share = self.overhead(measured, baseline)
                coverage = coverage_of(costs, chosen.names)
                seconds = time.monotonic() - began
                numbers = len(chosen.names), executed(measured)
                entry = Iteration(number, *numbers, share, chosen.overhead, coverage, seconds)
                self.state.iterations.append(entry)
                self.save()
            else:
                measured = self.iteration(number)
                names = _names_in(self.filter_file(number))
                chosen = replace(chosen, names=names) if names != chosen.names else chosen
                entry = self.state.iterations[number - 1]
            done(entry)
            hook = _adjusted(hook, entry)
            following = next_selection(self.plan, self.campaign, measured, chosen, hook, self.graph)
            stable = following.names == chosen.names
            if (stable or _minor(costs, following, chosen)) and entry.overhead <= self.plan.overhead:
                stable = True
                break
            if number < self.plan.iterations:
                chosen = following
        last = self.state.iterations[-1]
        vanilla = self.campaign.repetitions * sum(times.seconds for times in baseline.times.values())
        spent = baseline.spent + self.state.reference_seconds + sum(one.seconds for one in self.state.iterations)
        within = last.overhead <= self.plan.overhead
        return Refinement(
            tuple(self.state.iterations), self.filter_file(last.number), chosen.names, within, stable, vanilla, spent
        )

    def part(self, name: str) -> Path:
        """Return the folder of a part of the cycle."""
        return self.campaign.directory / name

    def filter_file(self, number: int) -> Path:
        """Return the filter file of an iteration."""
        return self.part(f"iteration-{number}.filter")

    def iteration(self, number: int, filter_file: Path | None = None) -> Campaign:
        """Return the campaign as an iteration runs it: in a folder of its own, built already."""
        part = self.part(f"iteration-{number}")
        return replace(self.campaign, directory=part, build=(), filter_file=filter_file, search=None, refine=None)

    def reference(self, baseline: Baseline) -> PathCosts:
        """Return what regions take at the point that is cheapest, with hooks wherever they may be worth it."""
        names = {configuration_name(self.campaign.values(point)): point for point in self.campaign.points}
        cheapest = names[min(baseline.times, key=lambda name: baseline.times[name].seconds)]
        costs = reference(self.reference_run(REFERENCE, _COMPILED, cheapest))
        if self.plan.strategy != "budget":
            return costs
        run = self.reference_run(REFERENCE_INLINED, _ONLY_HOOKS, cheapest)
        return with_inlined(costs, reference(run), hook_cost([run]), self.plan)

    def reference_run(self, name: str, variables: dict[str, str], point: Point) -> StoredRun:
        """Return the run in this folder, after building and running the program if there is none."""
        folder = self.part(name)
        runs = [run for run in scan_runs(folder)[0] if run.metadata.complete] if folder.is_dir() else []
        if not runs:
            began = time.monotonic()
            self.build(name, variables)
            if self.plan.program:
                self.graph = call_graph(self.campaign.path.parent / self.plan.program)
            once = replace(self.iteration(0), directory=folder, points=(point,), repetitions=1, grid=None)
            _expect_complete(run_campaign(once, self.progress))
            runs = [run for run in scan_runs(folder)[0] if run.metadata.complete]
            self.state.reference_seconds += time.monotonic() - began
            self.save()
        return runs[0]

    def measure(self, number: int, chosen: Chosen) -> Campaign:
        """Build with a selection and run all points; return the iteration."""
        filter_file = self.filter_file(number)
        comments = [f"iteration {number} of {self.campaign.name}: {len(chosen.names)} regions"]
        filter_file.write_text(format_filter(sorted(chosen.names), comments), encoding="utf-8")
        compiled = self.plan.filtering == "compile"
        if compiled:
            self.build(f"iteration {number}", {"QUIPU_FILTER": str(filter_file.absolute()), **_ONLY_HOOKS})
        else:
            self.build("usual", {})
        measured = self.iteration(number, None if compiled else filter_file.absolute())
        _expect_complete(run_campaign(measured, self.progress, LaunchOptions()))
        written = format_json(load_experiment(measured.directory), False)
        self.part(f"iteration-{number}.json").write_text(written.text, encoding="utf-8")
        return measured

    def build(self, kind: str, variables: dict[str, str]) -> None:
        """Build the program, unless it is of this kind already."""
        if self.built != kind:
            self.progress.note(f"building: {kind}")
            build(self.campaign, variables)
            self.built = kind

    def overhead(self, measured: Campaign, baseline: Baseline) -> float:
        """Return the measured overhead: of the shortest runs at all points together, in processor time."""
        shortest: dict[str, float] = {}
        for run in scan_runs(measured.directory)[0]:
            if run.metadata.complete and run.metadata.processor_seconds is not None:
                name = configuration_name(run.metadata.parameters)
                shortest[name] = min(shortest.get(name, float("inf")), run.metadata.processor_seconds)
        both = [name for name in shortest if name in baseline.times]
        plain = sum(baseline.times[name].processor for name in both)
        if not plain > 0.0:
            raise MeasurementError(f"{measured.directory}: no run says how much processor time it took")
        return sum(shortest[name] for name in both) / plain - 1.0

    def save(self) -> None:
        """Keep what was done."""
        write_json(self.path, {**asdict(self.state), "budget": self.plan.overhead})


def read_refinement(folder: Path) -> tuple[tuple[Iteration, ...], float | None]:
    """Return the iterations of a refinement so far, and its budget if it was kept. Raises FormatError without any."""
    path = folder / STATE
    if not path.is_file():
        raise FormatError(folder, f"has no {STATE}: give the folder that quipu refine wrote")
    state = typed(read_json(path), _State, path)
    if not state.iterations:
        raise FormatError(path, "holds no iteration yet: let quipu refine go on")
    return tuple(state.iterations), state.budget


def filter_names(folder: Path, number: int) -> frozenset[str] | None:
    """Return the names of the regions that an iteration instruments, None if its filter file is gone."""
    path = folder / f"iteration-{number}.filter"
    return _names_in(path) if path.is_file() else None


def _adjusted(hook: HookCost, entry: Iteration) -> HookCost:
    """Return what a visit costs by what an iteration measured, if that was more than predicted.

    What visits cannot explain, because hardly any were predicted, is noise or the start of processes.
    """
    if not entry.predicted or not entry.predicted < entry.overhead < _EXPLAINED * entry.predicted:
        return hook
    factor = entry.overhead / entry.predicted
    return HookCost(hook.pair * factor, hook.inside * factor)


def _minor(costs: PathCosts, following: Chosen, chosen: Chosen) -> bool:
    """Whether a selection only leaves out regions that explain nothing: no reason for a further iteration."""
    return following.names <= chosen.names and coverage_of(costs, chosen.names - following.names) < _MINOR


_EXPLAINED = 10
"""How many times what was predicted visits can have cost, with what they take from caches and predictors."""
_MINOR = 0.01
"""Part of the program that is not worth another build and series of runs."""


def _names_in(path: Path) -> frozenset[str]:
    rules = parse_filter(path.read_text(encoding="utf-8"), path).region_rules
    return frozenset(rule.pattern for rule in rules if not rule.exclude)


def _expect_complete(result: CampaignResult) -> None:
    if result.exit_code:
        errors = "; ".join(outcome.error for outcome in result.failed[:3]) or "it was interrupted"
        raise MeasurementError(f"{result.directory}: {errors}; the same command goes on from there")


def describe_target(campaign: Campaign) -> dict[str, float]:
    """Return the point that a refinement selects for."""
    assert campaign.refine is not None
    return target_of(campaign.refine, campaign)
