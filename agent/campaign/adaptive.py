# SPDX-License-Identifier: Apache-2.0
"""Campaigns that choose their runs: fit models to the finished runs, then measure what improves a prediction most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.design import STRATEGIES
from quipu.modeling.design.baseline import baseline
from quipu.modeling.design.posterior import uncertainty_of
from quipu.modeling.design.program import Search, expected_costs, search
from quipu.modeling.design.space import Constraint
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import FloatArray
from quipu.report.text import core_hours, percent

from ..merge.experiment import load_experiment, scan_runs
from .file import Campaign
from .oversubscription import oversubscribed_points
from .patience import Patience
from .points import Point
from .search import SearchPlan
from .task import Progress, Task


def chosen_batches(campaign: Campaign, progress: Progress) -> Iterator[list[Task]]:
    """Yield batches of runs that the search chooses, until the budget is used or the prediction no longer improves.

    The caller must make the runs of a batch before it requests the next batch. Each choice uses all runs in the folder
    of the campaign, so that a stopped campaign continues. `progress` receives a note for each decision. Raises
    MeasurementError if no point of the campaign fulfils the constraints, and ModelingError for an invalid target or
    budget.
    """
    plan = campaign.search
    if plan is None:
        raise MeasurementError(f"{campaign.path} has no table [search]")
    candidates = _candidates(campaign, plan)
    shared = {tuple(map(float, point)) for point in oversubscribed_points(campaign, campaign.points)}
    oversubscribed = np.array([tuple(point) in shared for point in candidates.tolist()], dtype=bool)
    patience, last = Patience(plan.patience), -1
    while True:
        runs = scan_runs(campaign.directory)[0]
        complete = sum(run.metadata.complete and not run.metadata.counts_only for run in runs)
        if complete == last:
            progress.note("no run of the last batch is complete, so the search ends; repeat the command to continue it")
            return
        last = complete
        if not complete:
            costs = expected_costs(candidates)
            first = baseline(candidates, costs)[: plan.batch]
            progress.note(f"search: {len(candidates)} points; nothing is measured yet, so the smallest come first")
            yield [_task(campaign, tuple(candidates[number].tolist()), 1) for number in first]
            continue
        experiment = load_experiment(campaign.directory).of_time
        found = search(
            experiment,
            analyze(experiment),
            candidates,
            plan.target,
            STRATEGIES[plan.strategy](),
            plan.budget,
            plan.batch,
            plan.ranks or None,
            campaign.repetitions,
            oversubscribed,
        )
        if not found.suggestions:
            progress.note(_conclusion(found, "nothing more fits the budget"))
            return
        # A gain is finite once the first runs, which vary one parameter at a time, are complete.
        if plan.patience and np.isfinite(found.suggestions[0].gain):
            uncertainty = uncertainty_of(found.state)
            if patience.look(uncertainty, found.suggestions):
                batches = "1 batch" if patience.count == 1 else f"{patience.count} batches"
                why = f"{batches} did not improve the prediction (standard deviation {percent(uncertainty)})"
                progress.note(_conclusion(found, why))
                return
        for one in found.suggestions:
            point = campaign_point(found, one.candidate)
            progress.note(f"search: {point}, repetition {one.repetition}, {core_hours(one.cost)}: {one.reason}")
        yield [_task(campaign, tuple(candidates[one.candidate].tolist()), one.repetition) for one in found.suggestions]


def campaign_point(found: Search, candidate: int) -> str:
    """Return a candidate (index of a point of the search) as text, such as p=4, n=100."""
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
