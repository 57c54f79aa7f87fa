"""Campaigns that choose their runs: measure, model, and measure what the prediction at a target needs most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.design import STRATEGIES
from quipu.modeling.design.baseline import baseline
from quipu.modeling.design.program import Search, expected_costs, search
from quipu.modeling.design.space import Constraint
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import FloatArray
from quipu.modeling.pmnf.model import Model
from quipu.report.text import core_hours, percent

from ..merge.experiment import load_experiment, scan_runs
from .file import Campaign, Point
from .search import SearchPlan
from .task import Progress, Task


def chosen_batches(campaign: Campaign, progress: Progress) -> Iterator[list[Task]]:
    """Yield the runs that the campaign's search chooses, until the budget is spent or no model becomes better.

    What is on the disk counts, so that a campaign that was stopped goes on. Each batch must have been run before the
    next is asked for. Decisions are noted. Raises MeasurementError if no point of the campaign fulfils the constraints,
    ModelingError for a target or a budget that do not fit.
    """
    plan = campaign.search
    if plan is None:
        raise MeasurementError(f"{campaign.path} has no table [search]")
    candidates = _candidates(campaign, plan)
    best, worse, last = np.inf, 0, -1
    while True:
        complete = sum(run.metadata.complete for run in scan_runs(campaign.directory)[0])
        if complete == last:
            progress.note("no run of the last batch is complete: the search ends; the same command goes on with it")
            return
        last = complete
        if not complete:
            costs = expected_costs(candidates)
            first = baseline(candidates, costs)[: plan.batch]
            progress.note(f"search: {len(candidates)} points; begins with the smallest, as nothing is measured yet")
            yield [_task(campaign, tuple(candidates[number].tolist()), 1) for number in first]
            continue
        experiment = load_experiment(campaign.directory)
        analysis = analyze(experiment)
        strategy = STRATEGIES[plan.strategy]()
        ranks = plan.ranks or None
        found = search(
            experiment,
            analysis,
            candidates,
            plan.target,
            strategy,
            plan.budget,
            plan.batch,
            ranks,
            campaign.repetitions,
        )
        error = mean_error(analysis)
        worse = worse + 1 if error >= best else 0
        best = min(best, error)
        if not found.suggestions:
            progress.note(_conclusion(found, "nothing more fits the budget"))
            return
        if plan.patience and worse >= plan.patience and np.isfinite(found.suggestions[0].gain):
            progress.note(_conclusion(found, f"{worse} batches made no model better (SMAPE {error:.2g} %)"))
            return
        for one in found.suggestions:
            point = campaign_point(found, one.candidate)
            progress.note(f"search: {point}, repetition {one.repetition}, {core_hours(one.cost)}: {one.reason}")
        yield [_task(campaign, tuple(candidates[one.candidate].tolist()), one.repetition) for one in found.suggestions]


def mean_error(analysis: Analysis) -> float:
    """Return the mean SMAPE of the models of time in %, the measure of the termination criterion (section III)."""
    errors = [
        entry.model.quality.smape
        for entry in analysis.models("time")
        if isinstance(entry.model, Model) and entry.model.quality is not None
    ]
    return float(np.mean(errors)) if errors else np.inf


def campaign_point(found: Search, candidate: int) -> str:
    """Return a candidate as text, such as p=4, n=100."""
    values = found.state.candidates[candidate].tolist()
    return ", ".join(f"{name}={value:g}" for name, value in zip(found.state.parameters, values, strict=True))


def _candidates(campaign: Campaign, plan: SearchPlan) -> FloatArray:
    predicates = [Constraint(text, campaign.parameters) for text in plan.constraints]
    points = [point for point in campaign.points if all(predicate(campaign.values(point)) for predicate in predicates)]
    if not points:
        raise MeasurementError(f"{campaign.path}: no point fulfils the constraints of [search]")
    return np.array(points, dtype=np.float64)


def _task(campaign: Campaign, point: Point, repetition: int) -> Task:
    same = next(own for own in campaign.points if tuple(map(float, own)) == tuple(map(float, point)))
    return Task(same, campaign.values(same), repetition)


def _conclusion(found: Search, why: str) -> str:
    saved = max(found.whole - found.spent, 0.0)
    return (
        f"search: {why}; {core_hours(found.spent)} spent, {core_hours(saved)} ({percent(saved / found.whole)}) less "
        "than all points with all repetitions"
    )
