# SPDX-License-Identifier: Apache-2.0
"""Select the regions for the iterations of a refinement, with the strategies of the [refine] table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.callgraph import CallGraph
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import RegionKind
from quipu.modeling.refine import (
    HookCost,
    PathCosts,
    RegionSelection,
    costs_at,
    extrapolated_point,
    path_costs,
    refine_by_models,
    select_statically,
    select_within,
)

from ..archive.read import read_archive
from ..merge.experiment import StoredRun, load_experiment, scan_runs
from ..merge.shard import THREAD_TIME
from ..merge.unify import unify_trees
from .file import Campaign
from .refine_file import RefinePlan


@dataclass(frozen=True)
class Chosen:
    """A selection of regions.

    names: linker names. overhead: predicted overhead, as a share of the time of the program; None: unknown. coverage:
    share of the exclusive time that is in the selected regions; None: unknown. selection: the reasons for each region;
    None if the strategy gives none.
    """

    names: frozenset[str]
    overhead: float | None = None
    coverage: float | None = None
    selection: RegionSelection | None = None


def reference(runs: Sequence[StoredRun]) -> PathCosts:
    """Return the costs of all call paths, summed over several runs and all ranks, without the overhead of measuring.

    Raises MeasurementError if a run contains no times.
    """
    of_runs = [_of_run(stored) for stored in runs]
    tree, places = unify_trees([costs.tree for costs in of_runs])
    time, visits = np.zeros(len(tree)), np.zeros(len(tree))
    for stored, costs, place in zip(runs, of_runs, places, strict=True):
        np.add.at(time, place, costs.time * max(1, stored.metadata.ranks))
        np.add.at(visits, place, costs.visits * max(1, stored.metadata.ranks))
    return PathCosts(tree, {}, time, visits)


def _of_run(stored: StoredRun) -> PathCosts:
    """Return the costs of all call paths of one run, as means over its ranks, without the overhead of measuring."""
    archive = read_archive(stored.path)
    if "time" not in archive.statistics or "visits" not in archive.statistics:
        raise MeasurementError(f"{stored.path}: contains no time and visits, which are necessary to select regions")
    own = THREAD_TIME if THREAD_TIME in archive.statistics else "time"
    time, visits = archive.statistics[own].mean, archive.statistics["visits"].mean
    hook = hook_cost([stored])
    others = None
    if "overhead" in archive.statistics:
        overhead = archive.statistics["overhead"].mean
        hooked = np.array([region.kind is not RegionKind.MPI for region in archive.tree.regions])[archive.tree.region]
        others = np.where(hooked, np.maximum(overhead - visits * hook.pair, 0.0), 0.0)
    effort = archive.statistics.get("instructions")
    instructions = None if effort is None else effort.mean
    return path_costs(archive.tree, stored.metadata.parameters, time, visits, hook, others, instructions)


def with_inlined(costs: PathCosts, timed: PathCosts, hook: HookCost, plan: RefinePlan) -> PathCosts:
    """Return the costs with separate regions for the inlined functions that are worth measuring.

    costs: from runs in which inlined functions are part of their callers. timed: from runs in which inlined functions
    are regions. Inlined functions that the budget does not allow become part of their callers again. If none remains,
    the result is `costs`. hook: cost of a visit.
    """
    compiled = {region.name for region in costs.tree.regions}
    while True:
        selection = select_within(timed, hook, plan.overhead, plan.threshold)
        dropped = {choice.region.name for choice in selection.dropped} - compiled
        if not dropped:
            break
        timed = timed.in_callers({n for n, region in enumerate(timed.tree.regions) if region.name in dropped})
    found = {choice.region.name for choice in selection.kept} - compiled
    return timed if found else costs


def hook_cost(runs: list[StoredRun]) -> HookCost:
    """Return the mean cost of an enter and exit (seconds), which each process of the runs measured at its start.

    Raises MeasurementError if no run contains this cost.
    """
    known = [run.metadata.overhead for run in runs if run.metadata.overhead.get("pair", 0.0) > 0]
    if not known:
        raise MeasurementError("no run contains the overhead of a visit: measure times")
    pair = float(np.mean([costs["pair"] for costs in known]))
    outside = float(np.mean([costs.get("outside", 0.0) for costs in known]))
    return HookCost(pair, max(0.0, pair - min(outside, pair)))


def cost_in_times(runs: list[StoredRun]) -> HookCost:
    """Return the time that an enter and exit added to the times of these runs.

    The time is 0 if all runs are simulated with time = effort × rate, which hooks do not change.
    """
    return HookCost(0.0) if all(run.metadata.simulated_by_effort for run in runs) else hook_cost(runs)


def first_selection(plan: RefinePlan, costs: PathCosts | None, hook: HookCost, graph: CallGraph | None) -> Chosen:
    """Return the first selection: from the reference runs (strategy "budget"), or from the call graph alone (PIRA)."""
    if plan.strategy == "budget":
        assert costs is not None
        return _chosen(select_within(costs, hook, plan.overhead, plan.threshold))
    assert graph is not None
    return Chosen(frozenset(function.name for function in select_statically(graph, plan.statements).kept))


def target_of(plan: RefinePlan, campaign: Campaign) -> dict[str, float]:
    """Return the point at which regions are ranked: of [refine], else of [target], else beyond the measured points."""
    return (
        plan.at
        or dict(campaign.target)
        or extrapolated_point(np.array(campaign.points, dtype=np.float64), campaign.parameters)
    )


def next_selection(
    plan: RefinePlan, campaign: Campaign, measured: Campaign, before: Chosen, hook: HookCost, graph: CallGraph | None
) -> Chosen:
    """Return the selection for the next iteration, from the measurements of the last iteration.

    measured: the campaign with the runs of the last iteration. before: its selection. hook: current estimate of the
    cost of a visit. graph: needed by the strategies of PIRA.
    """
    if plan.strategy == "static":
        return before
    analysis = analyze(load_experiment(measured.directory).of_time)
    target = target_of(plan, campaign)
    if plan.strategy == "budget":
        # HookCost(0.0): the overhead of an iteration is small, so it is not subtracted from the times.
        found = _chosen(select_within(costs_at(analysis, target, HookCost(0.0)), hook, plan.overhead, plan.threshold))
        return Chosen(found.names & before.names, found.overhead, found.coverage, found.selection)
    assert graph is not None
    expand = plan.statements if plan.strategy == "expand" else None
    functions = refine_by_models(graph, analysis, target, plan.seconds, expand)
    return Chosen(frozenset(function.name for function in functions))


def _chosen(selection: RegionSelection) -> Chosen:
    names = frozenset(choice.region.name for choice in selection.kept)
    return Chosen(names, selection.overhead_share, selection.coverage, selection)


def coverage_of(costs: PathCosts, names: frozenset[str]) -> float:
    """Return the share of the exclusive time in regions with these names and in regions that are always measured.

    Regions that are always measured are the regions that a filter cannot exclude, such as MPI operations.
    """
    explained = sum(time for number, (time, _) in costs.of_regions.items() if costs.tree.regions[number].name in names)
    return (explained + costs.always_measured) / costs.total if costs.total > 0 else 0.0


def complete_runs(folder: Path) -> list[StoredRun]:
    """Return the complete runs of an experiment."""
    return [run for run in scan_runs(folder)[0] if run.metadata.complete]


def executed(measured: Campaign) -> set[str]:
    """Return the linker names of the functions with hooks that the complete runs of a campaign entered."""
    names: set[str] = set()
    for run in complete_runs(measured.directory):
        tree = read_archive(run.path, values=False).tree
        names |= {
            tree.region_of(path).name for path in range(len(tree)) if tree.region_of(path).kind is RegionKind.FUNCTION
        }
    return names
