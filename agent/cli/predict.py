"""`quipu predict`: the ranking of call paths at a point."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import over_ranks_of, point_of
from .output import layout, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.experiment import Experiment


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
    at: list[str] = typer.Option([], "--at", metavar="NAME=NUMBER,...", help="The point, such as p=1024,n=1e6."),
    metric: str = typer.Option("time", "--metric", "-m", metavar="NAME", help="The metric to predict."),
    inclusive: bool = typer.Option(False, "--inclusive/--exclusive", help="With what a call path calls, or itself."),
    top: int = typer.Option(20, "--top", min=1, metavar="N", help="Show the first N call paths."),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Rank call paths by their predicted value at a point that need not have been measured.

    \b
    Example: quipu predict heat --at p=1024,n=1e6 --inclusive --top 10
    """
    from quipu.modeling.evaluation import evaluate
    from quipu.report.json_views import ranking_json
    from quipu.report.terminal import head, ranking_table
    from quipu.report.terminal.text import number, point_text, quantity
    from quipu.report.views import RankedRow

    from .analysis import load_both

    analysis, measured = load_both(experiment, over_ranks_of(over_ranks))
    point = point_of("--at", at, analysis.parameters)
    evaluation = evaluate(analysis, point, metric)
    ranking = evaluation.ranking(inclusive)
    known = [entry for entry in ranking if not math.isnan(entry.value)]
    rows = [
        RankedRow(
            path=tuple(analysis.tree.name(node) for node in analysis.tree.ancestry(entry.path)),
            value=entry.value,
            share=entry.share,
            formula=entry.model,
            low=entry.lower,
            high=entry.upper,
            extrapolation=evaluation.extrapolates,
            basis=entry.basis,
        )
        for entry in known[:top]
    ]
    if as_json:
        show_json(ranking_json(analysis.name, evaluation.metric, point, rows))
        return
    room = layout()
    unit, total = evaluation.metric.unit, evaluation.total
    outside = [
        f"{name} was measured from {number(low)} to {number(high)}"
        for name, (low, high) in zip(analysis.parameters, analysis.ranges, strict=True)
        if not low <= point[name] <= high
    ]
    scope = "inclusive" if inclusive else "exclusive"
    facts = [
        ("point", point_text(analysis.parameters, tuple(point.values()))),
        ("metric", f"{metric}, {scope}, {analysis.over_ranks} over ranks"),
    ]
    if evaluation.metric.over_locations == "sum":  # maxima of call paths have no sum
        value, low, high = (quantity(x, unit, room.glyphs) for x in (total.value, total.lower, total.upper))
        facts.append(("whole program", f"{value}, 90 % interval {low} .. {high}"))
    notes = [f"extrapolation: {'; '.join(outside)}"] if outside else []
    if measured is not None and not inclusive:
        notes += _changes(analysis, measured, metric, point, [entry.path for entry in known[:top]])
    show([head(analysis.name, facts, [*notes, *analysis.notes], room), ranking_table(rows, unit, room)])
    if len(known) > len(rows):
        say(f"{len(known) - len(rows)} further call paths are not shown (--top)")
    if len(known) < len(ranking):
        say(f"{len(ranking) - len(known)} call paths have no model of {metric} (quipu model --all says why)")


def _changes(
    analysis: Analysis, experiment: Experiment, metric: str, point: dict[str, float], paths: list[int]
) -> list[str]:
    """Return what call paths whose behaviour changes are predicted to take by the model of their range."""
    from quipu.modeling.behaviour import behaviour
    from quipu.report.terminal.text import quantity

    notes = []
    observed = behaviour(experiment, analysis, [metric])[metric]
    for path in paths:
        if (change := observed[path].change) is not None:
            value = quantity(change.model_at(point).at(**point), analysis.metrics[metric].unit)
            notes.append(f"{analysis.tree.label(path)} {change}; the model of this range predicts {value}")
    return notes
