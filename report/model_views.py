# SPDX-License-Identifier: Apache-2.0
"""Views of the models of an experiment, of rankings at a point, and of filters, for every kind of output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quipu.modeling.analysis import Analysis
from quipu.modeling.band import outside_of_band
from quipu.modeling.behaviour import Behaviour, behaviour
from quipu.modeling.evaluation import Evaluation, Ranked, evaluate
from quipu.modeling.experiment import PEAK, Experiment, Metric
from quipu.modeling.extrapolation import FAR, is_far, times_beyond
from quipu.modeling.heap import largest_heap
from quipu.modeling.pmnf.model import Model
from quipu.modeling.printable import counted
from quipu.modeling.refine.selection import RegionSelection

from .catalogue import (
    BEYOND_MEASURED,
    FAR_BEYOND,
    OUTSIDE_INTERVAL,
    OVERSUBSCRIBED_MODELS,
    OVERSUBSCRIBED_POINTS,
    SLOWEST_RANK,
    UPPER_BOUNDS,
)
from .deciding_text import deciding_notes
from .formats.fnmatch import matches
from .short_label import short_label
from .text import (
    OPEN_INTERVAL,
    START_AND_END,
    factor,
    interval_text,
    number,
    percent,
    point_text,
    points_text,
    quality_fact,
    quantity,
    ranges_text,
    slowest_rank_text,
    values_text,
)
from .views import ModelRow, RankedRow, steps

if TYPE_CHECKING:
    from quipu.modeling.diagnosis import Diagnosis

_FIRST = ("time", "blocks", "bytes_sent")


def metrics_of(analysis: Analysis, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the chosen metrics, or default metrics if none is chosen."""
    first = tuple(name for name in _FIRST if name in analysis.exclusive)
    return tuple(chosen) or first or tuple(sorted(analysis.exclusive))


def model_rows(
    analysis: Analysis,
    metrics: Sequence[str],
    glob: str | None,
    inclusive: bool,
    everything: bool,
    observed: Mapping[str, Sequence[Behaviour]],
    chosen: Sequence[int] | None = None,
) -> tuple[list[tuple[int, ModelRow]], int]:
    """Return pairs of the index of a call path and the row of a model, and the number of omitted rows.

    The rows are in the order of the tree; the start and the end of MPI come last. glob: pattern of call paths or names
    of regions; None: all. everything: do not omit models that are 0 and call paths without a model. observed: behaviour
    of each call path by metric. chosen: indices of the call paths to show, in this order; None: all.
    """
    entries = {name: analysis.models(name, inclusive) for name in metrics}
    rows: list[tuple[int, ModelRow]] = []
    hidden = 0
    outside = analysis.tree.start_and_end
    order = sorted(_depth_first(analysis), key=lambda node: bool(outside[node])) if chosen is None else chosen
    for node in order:
        if not _fits(analysis, node, glob):
            continue
        for name, of_metric in entries.items():
            model, basis, shared = of_metric[node].model, of_metric[node].basis, of_metric[node].oversubscribed
            if not everything and (not isinstance(model, Model) or (model.is_constant and model.constant == 0)):
                hidden += 1
                continue
            path = steps(analysis.tree, node)
            if isinstance(model, Model):
                error = model.quality.smape if model.quality is not None else math.nan
                warning = observed[name][node].warning if name in observed and not inclusive else ""
                notes = tuple(filter(None, ("oversubscribed" if shared else "", *model.notes, warning)))
                row = ModelRow(path, name, str(model), error, basis, notes, model, shared, bool(outside[node]))
            else:
                row = ModelRow(path, name, "", math.nan, basis, (model.reason,), None, shared, bool(outside[node]))
            rows.append((node, row))
    return rows, hidden


def largest_paths(analysis: Analysis, metric: str, inclusive: bool, glob: str | None) -> list[int]:
    """Return the indices of call paths by their modeled value at the largest measured parameter values, largest first.

    Call paths with the value 0 are left out. glob: as in `model_rows`.
    """
    point = {name: high for name, (_, high) in zip(analysis.parameters, analysis.ranges_of(metric), strict=True)}
    ranking = evaluate(analysis, point, metric).ranking(inclusive)
    return [one.path for one in ranking if one.value > 0 and _fits(analysis, one.path, glob)]


def matching_paths(analysis: Analysis, glob: str) -> set[int]:
    """Return the indices of the call paths whose text, or whose last region, matches a pattern (fnmatch(3))."""
    return {path for path in range(len(analysis.tree)) if _fits(analysis, path, glob)}


def _fits(analysis: Analysis, path: int, glob: str | None) -> bool:
    """Return whether a call path, or the name of its last region, matches a pattern; None matches all."""
    return glob is None or matches(glob, analysis.tree.label(path)) or matches(glob, analysis.tree.name(path))


def _depth_first(analysis: Analysis) -> list[int]:
    """Return the indices of all call paths, each followed by the call paths below it."""
    order: list[int] = []
    stack = list(reversed(analysis.tree.roots))
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(analysis.tree.children[node]))
    return order


def model_facts(analysis: Analysis, inclusive: bool) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of a list of models."""
    return [
        *quality_fact(analysis.quality),
        ("measured", ranges_text(analysis.parameters, analysis.ranges)),
        *([("with times", ranges_text(analysis.parameters, analysis.timed_ranges))] if analysis.timed_ranges else []),
        ("values", values_text(analysis.over_ranks, analysis.metrics)),
        ("scope", "inclusive: sums over a call path and everything that it calls" if inclusive else "exclusive"),
    ]


@dataclass(frozen=True)
class RankingView:
    """A ranking of call paths at a point.

    - rows: the call paths with the largest values. program: the sum over all call paths; None for a metric that does
      not add up (a maximum).
    - start_and_end: the start and the end of MPI, which are not part of the program; their sum first, if they add up.
    - beyond: ratio of the point to the measured range, by parameter; empty inside of the range.
    - facts: (label, text) pairs for the head. left_out: lines about call paths that the ranking does not contain.
    - one_run: the interval that contains nine of ten single runs; None if unknown.
    - all_oversubscribed: whether all models of time depend on oversubscribed runs. Then a single note reports this, and
      rows need no marks.
    """

    metric: Metric
    rows: tuple[RankedRow, ...]
    program: RankedRow | None
    start_and_end: tuple[RankedRow, ...]
    beyond: Mapping[str, float]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    one_run: tuple[float, float] | None = None
    all_oversubscribed: bool = False


def ranking_view(
    analysis: Analysis, experiment: Experiment | None, point: dict[str, float], metric: str, inclusive: bool, top: int
) -> RankingView:
    """Return the ranking of call paths by their predicted value at a point. top: number of rows.

    experiment: the measurements, for notes about changes of behaviour and about times outside of the intervals; None if
    there are only models.
    """
    evaluation = evaluate(analysis, point, metric)
    ranking = evaluation.ranking(inclusive)
    known = [entry for entry in ranking if not math.isnan(entry.value)]
    rows = [_row(analysis, one) for one in known[:top]]
    outside = [_row(analysis, one) for one in evaluation.ranking(inclusive, True) if not math.isnan(one.value)]
    scope = "inclusive" if inclusive else "exclusive"
    facts = [
        *quality_fact(analysis.quality),
        ("point", point_text(analysis.parameters, point.values())),
        ("metric", f"{metric}, {scope}, {values_text(analysis.over_ranks, analysis.metrics)}"),
    ]
    program = None
    if evaluation.metric.over_locations == "sum":  # maxima of call paths do not add up
        total, shared = evaluation.total, evaluation.oversubscribed_share
        ends = (total.lower, total.upper, evaluation.beyond)
        program = RankedRow(("program",), total.value, 1.0, "", *ends, "sum", shared > 0)
        facts.append(("program", _with_interval(program, evaluation.metric.unit)))
        if shared > 0:
            facts[-1] = ("program", f"{facts[-1][1]}, {percent(shared, 0)} of it from runs that waited for processors")
        low, high = evaluation.one_run or (None, None)
        one_run = interval_text(low, high, evaluation.metric.unit)
        if one_run and one_run != OPEN_INTERVAL:
            facts.append(("one run", f"{one_run} in nine of ten"))
        if outside:
            whole, marked = evaluation.start_and_end, any(row.oversubscribed for row in outside)
            ends = (whole.lower, whole.upper, evaluation.beyond)
            outside.insert(0, RankedRow(("start and end",), whole.value, math.nan, "", *ends, "sum", marked))
    elif known:
        most = max((evaluation.total, evaluation.start_and_end), key=lambda one: one.value)
        most = (largest_heap(analysis, point) if metric == PEAK else None) or most
        largest = RankedRow(("largest",), most.value, 1.0, "", most.lower, most.upper, evaluation.beyond, "max", False)
        facts.append(("largest", _with_interval(largest, evaluation.metric.unit)))
    notes = extrapolation_notes(analysis, point, metric)
    notes += deciding_notes(analysis.counts, point, [metric])
    if not evaluation.metric.is_effort:
        notes += oversubscription_notes(analysis)
    if metric == "time":
        notes += slowest_rank_notes(analysis)
    if analysis.over_ranks == "max" and (program is not None or inclusive):
        notes.append(UPPER_BOUNDS())
    if experiment is not None and metric == "time":
        notes += outside_notes(analysis, experiment)
    if experiment is not None and not inclusive:
        notes += _changes(analysis, experiment, metric, point, [entry.path for entry in known[:top]])
    nothing = sum(one.value == one.lower == one.upper == 0 for one in known)
    further = max(len(known) - nothing - len(rows), 0)
    left_out = _left_out(analysis, evaluation, further, nothing, inclusive)
    return RankingView(
        evaluation.metric,
        tuple(rows),
        program,
        tuple(outside),
        evaluation.beyond,
        tuple(facts),
        (*notes, *analysis.notes),
        left_out,
        evaluation.one_run,
        not evaluation.metric.is_effort and _all_oversubscribed(analysis),
    )


def outside_notes(analysis: Analysis, experiment: Experiment) -> list[str]:
    """Return a note if more measured times are outside of the intervals of the models than chance explains."""
    found = outside_of_band(analysis, experiment)
    if found is None:
        return []
    where = point_text(analysis.parameters, found.point)
    return [
        OUTSIDE_INTERVAL(
            points=f"{found.points} of {counted(found.of, 'point', 'points')}",
            where=where,
            measured=quantity(found.measured, "s"),
            interval=interval_text(found.lower, found.upper, "s"),
        )
    ]


def _left_out(
    analysis: Analysis, evaluation: Evaluation, further: int, nothing: int, inclusive: bool
) -> tuple[str, ...]:
    """Return lines about call paths that the ranking does not contain.

    further: number of call paths below the shown ones. nothing: number of call paths with the value 0.
    """
    metric, result = evaluation.metric.name, []
    if further:
        result.append(f"{counted(further, 'further call path is', 'further call paths are')} not shown (--top)")
    if nothing:
        scope = "" if inclusive else "exclusive "
        result.append(f"{counted(nothing, 'call path has', 'call paths have')} no {scope}{metric}")
    without = sum(analysis.lacks_model(metric, path) for path in range(len(analysis.tree)))
    if without:
        result.append(
            f"{counted(without, 'call path has', 'call paths have')} no model of {metric} (reasons: quipu model --all)"
        )
    modeled = [isinstance(entry.model, Model) for entry in analysis.models(metric)]
    undefined = sum(math.isnan(one.value) for one, own in zip(evaluation.exclusive, modeled, strict=True) if own)
    if undefined:
        what = counted(undefined, "call path has a model that is", "call paths have models that are")
        result.append(f"{what} not defined at this point")
    return tuple(result)


def _row(analysis: Analysis, one: Ranked) -> RankedRow:
    path = steps(analysis.tree, one.path)
    ends = (one.lower, one.upper, one.beyond)
    return RankedRow(path, one.value, one.share, one.model, *ends, one.basis, one.oversubscribed)


def _with_interval(row: RankedRow, unit: str) -> str:
    return f"{quantity(row.value, unit)}, 90 % interval {interval_text(row.low, row.high, unit) or '-'}"


def diagnosis_facts(place: str, diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of a diagnosis. place: the point as text."""
    program = f"{quantity(diagnosis.predicted, 's')}, as in quipu predict"
    if diagnosis.not_in_models > 0:
        program += (
            f"; {quantity(diagnosis.not_in_models, 's')} more are lost by findings that no model of time contains"
        )
    alone = quantity(diagnosis.total, "s")
    if diagnosis.without_effort < 1.0:
        alone += ", without waiting and slowdown"
        if percent(diagnosis.without_effort, 0) != "0%":
            alone += f", {percent(diagnosis.without_effort, 0)} of it from time alone"
    elif diagnosis.total > 0:
        alone += ", all of it from time alone"
    if diagnosis.oversubscribed_share > 0:
        alone += f", {percent(diagnosis.oversubscribed_share, 0)} of it from runs that waited for processors"
    facts = [("point", place), ("program", program), ("from effort", alone)]
    if diagnosis.start_and_end > 0:
        facts.append((START_AND_END, f"{quantity(diagnosis.start_and_end, 's')}, not part of the program"))
    return facts


def extrapolation_notes(analysis: Analysis, point: Mapping[str, float], metric: str = "time") -> list[str]:
    """Return a note about how far a point is beyond the measured range of a metric; empty if it is inside."""
    return beyond_notes(analysis.parameters, point, analysis.ranges_of(metric))


def beyond_notes(
    parameters: Sequence[str], point: Mapping[str, float], ranges: Sequence[tuple[float, float]]
) -> list[str]:
    """Return a note about how far a point is beyond the measured ranges of the parameters; empty if it is inside.

    ranges: smallest and largest measured value of each parameter.
    """
    beyond = times_beyond(point, ranges)
    if not beyond:
        return []
    parts = [
        f"{name}={number(point[name])} is {factor(beyond[name])} beyond the measured {number(low)} to {number(high)}"
        for name, (low, high) in zip(parameters, ranges, strict=True)
        if name in beyond
    ]
    if not is_far(beyond):
        return [BEYOND_MEASURED(parts=", ".join(parts))]
    return [FAR_BEYOND(parts=", ".join(parts), far=FAR)]


def slowest_rank_notes(analysis: Analysis) -> list[str]:
    """Return a note about the configuration with the largest ratio of the slowest rank to the mean over ranks.

    The result is empty if the ratio is small.
    """
    if analysis.slowest_rank is None:
        return []
    text = slowest_rank_text(analysis.parameters, analysis.slowest_rank, analysis.over_ranks)
    return [SLOWEST_RANK(text=text)]


def oversubscription_notes(analysis: Analysis) -> list[str]:
    """Return a note about the measured configurations with more ranks than processors; empty if there are none."""
    if not analysis.oversubscribed:
        return []
    which = points_text(analysis.parameters, analysis.oversubscribed)
    return [(OVERSUBSCRIBED_MODELS if _all_oversubscribed(analysis) else OVERSUBSCRIBED_POINTS)(points=which)]


def _all_oversubscribed(analysis: Analysis) -> bool:
    """Return whether all models of time depend on runs with more ranks than processors."""
    times = [entry for entry in analysis.exclusive.get("time", ()) if isinstance(entry.model, Model)]
    return bool(times) and all(entry.oversubscribed for entry in times)


def _changes(
    analysis: Analysis, experiment: Experiment, metric: str, point: dict[str, float], paths: Sequence[int]
) -> list[str]:
    """Return a note for each of `paths` whose behaviour changes, with the prediction for the range of `point`."""
    notes = []
    observed = behaviour(experiment, analysis, [metric])[metric]
    for path in paths:
        if (change := observed[path].change) is not None:
            value = quantity(change.model_at(point).at(**point), analysis.metrics[metric].unit)
            notes.append(f"{short_label(analysis.tree, path)} {change}; the model of this range predicts {value}")
    return notes


def filter_comments(
    analysis: Analysis, selection: RegionSelection, point: dict[str, float], threshold: float
) -> list[str]:
    """Return the comments for the head of a filter file. threshold: least share of the time of a selected region."""
    place = point_text(analysis.parameters, point.values())
    comments = [
        f"{analysis.name} at {place}: regions with at least {percent(threshold)} of the time",
        f"{len(selection.kept)} regions kept, {len(selection.dropped)} dropped, "
        f"predicted overhead {percent(selection.overhead_share)}",
    ]
    if selection.start_and_end > 0:
        comments.append(
            f"shares are of {quantity(selection.total, 's')}, the program without the {START_AND_END}, "
            f"which take {quantity(selection.start_and_end, 's')}"
        )
    return comments + extrapolation_notes(analysis, point) + oversubscription_notes(analysis)
