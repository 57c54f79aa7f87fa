"""Models of an experiment, rankings at a point, and what a filter keeps: rows and facts for every kind of output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quipu.modeling.analysis import Analysis
from quipu.modeling.behaviour import Behaviour, behaviour
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Experiment, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.refine.selection import RegionSelection

from .formats.fnmatch import matches
from .text import number, percent, point_text, quantity, ranges_text
from .views import ModelRow, RankedRow, steps

_FIRST = ("time", "blocks", "bytes_sent")


def metrics_of(analysis: Analysis, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics that were chosen; if none, those that most want to see."""
    first = tuple(name for name in _FIRST if name in analysis.exclusive)
    return tuple(chosen) or first or tuple(sorted(analysis.exclusive))


def model_rows(
    analysis: Analysis,
    metrics: Sequence[str],
    glob: str | None,
    inclusive: bool,
    everything: bool,
    observed: Mapping[str, Sequence[Behaviour]],
) -> tuple[list[tuple[int, ModelRow]], int]:
    """Return call paths with their models in the order of the tree, and how many models were left out as empty.

    glob: call paths or names of regions. everything: also models that are 0, and what has no model.
    """
    entries = {name: analysis.models(name, inclusive) for name in metrics}
    rows: list[tuple[int, ModelRow]] = []
    hidden = 0
    for node in _depth_first(analysis):
        label = analysis.tree.label(node)
        if glob is not None and not matches(glob, label) and not matches(glob, analysis.tree.name(node)):
            continue
        for name, of_metric in entries.items():
            model, basis = of_metric[node].model, of_metric[node].basis
            if not everything and (not isinstance(model, Model) or (model.is_constant and model.constant == 0)):
                hidden += 1
                continue
            path = steps(analysis.tree, node)
            if isinstance(model, Model):
                error = model.quality.smape if model.quality is not None else math.nan
                warning = observed[name][node].warning if name in observed and not inclusive else ""
                notes = "; ".join(filter(None, (*model.notes, warning)))
                rows.append((node, ModelRow(path, name, str(model), error, basis, notes, model)))
            else:
                rows.append((node, ModelRow(path, name, "", math.nan, basis, model.reason)))
    return rows, hidden


def _depth_first(analysis: Analysis) -> list[int]:
    order: list[int] = []
    stack = list(reversed(analysis.tree.roots))
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(analysis.tree.children[node]))
    return order


def model_facts(analysis: Analysis, inclusive: bool) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of models."""
    return [
        ("measured", ranges_text(analysis.parameters, analysis.ranges)),
        ("values", f"{analysis.over_ranks} over ranks"),
        ("scope", "inclusive: sums over what a call path calls" if inclusive else "exclusive"),
    ]


@dataclass(frozen=True)
class RankingView:
    """A ranking of call paths at a point. left_out: lines on what is not in it."""

    metric: Metric
    rows: tuple[RankedRow, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def ranking_view(
    analysis: Analysis, experiment: Experiment | None, point: dict[str, float], metric: str, inclusive: bool, top: int
) -> RankingView:
    """Return the `top` call paths by their predicted value at a point; `experiment`: for changes of behaviour."""
    evaluation = evaluate(analysis, point, metric)
    ranking = evaluation.ranking(inclusive)
    known = [entry for entry in ranking if not math.isnan(entry.value)]
    tree, outside_range = analysis.tree, evaluation.extrapolates
    rows = [
        RankedRow(
            steps(tree, one.path), one.value, one.share, one.model, one.lower, one.upper, outside_range, one.basis
        )
        for one in known[:top]
    ]
    scope = "inclusive" if inclusive else "exclusive"
    facts = [
        ("point", point_text(analysis.parameters, point.values())),
        ("metric", f"{metric}, {scope}, {analysis.over_ranks} over ranks"),
    ]
    if evaluation.metric.over_locations == "sum":  # maxima of call paths have no sum
        total = evaluation.total
        value, low, high = (quantity(x, evaluation.metric.unit) for x in (total.value, total.lower, total.upper))
        facts.append(("whole program", f"{value}, 90 % interval {low} .. {high}"))
    outside = [
        f"{name} was measured from {number(low)} to {number(high)}"
        for name, (low, high) in zip(analysis.parameters, analysis.ranges, strict=True)
        if not low <= point[name] <= high
    ]
    notes = [f"extrapolation: {'; '.join(outside)}"] if outside else []
    if experiment is not None and not inclusive:
        notes += _changes(analysis, experiment, metric, point, [entry.path for entry in known[:top]])
    further, without = len(known) - len(rows), len(ranking) - len(known)
    left_out = [f"{further} further call paths are not shown (--top)"] if further else []
    if without:
        left_out.append(f"{without} call paths have no model of {metric} (quipu model --all says why)")
    return RankingView(evaluation.metric, tuple(rows), tuple(facts), (*notes, *analysis.notes), tuple(left_out))


def _changes(
    analysis: Analysis, experiment: Experiment, metric: str, point: dict[str, float], paths: Sequence[int]
) -> list[str]:
    """Return what call paths whose behaviour changes are predicted to take by the model of their range."""
    notes = []
    observed = behaviour(experiment, analysis, [metric])[metric]
    for path in paths:
        if (change := observed[path].change) is not None:
            value = quantity(change.model_at(point).at(**point), analysis.metrics[metric].unit)
            notes.append(f"{analysis.tree.label(path)} {change}; the model of this range predicts {value}")
    return notes


def filter_comments(
    analysis: Analysis, selection: RegionSelection, point: dict[str, float], threshold: float
) -> list[str]:
    """Return what the head of a filter file says: two lines, and a third if the start of MPI is left out."""
    place = point_text(analysis.parameters, point.values())
    comments = [
        f"{analysis.name} at {place}: regions with at least {percent(threshold)} of the time",
        f"{len(selection.kept)} regions kept, {len(selection.dropped)} dropped, "
        f"predicted overhead {percent(selection.overhead_share)}",
    ]
    if selection.startup > 0:
        comments.append(
            f"shares are of {selection.total:.3g} s, the program without the start and the end of MPI, "
            f"which take {selection.startup:.3g} s"
        )
    return comments
