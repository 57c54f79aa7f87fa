"""`quipu model`: a model of every metric of every call path."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import over_ranks_of, split_names
from .output import json_text, layout, say, show, show_json, write_own

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.pmnf.model import Model
    from quipu.report.views import ModelRow

_FIRST = ("time", "blocks", "bytes_sent")


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        "-m",
        metavar="NAME",
        help="Metrics, separated by commas. Default: time, blocks, bytes_sent.",
    ),
    path: str = typer.Option(
        None, "--path", metavar="GLOB", help="Only call paths (main->solve->...) or regions that match."
    ),
    inclusive: bool = typer.Option(False, "--inclusive/--exclusive", help="Sums over what a call path calls."),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    everything: bool = typer.Option(False, "--all", help="Also models that are 0, and call paths without a model."),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE.json", help="Write all models to a file."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is no file of models."),
    jobs: str = typer.Option(
        "1", "--jobs", "-j", metavar="N|mpi", help="Processes that model; mpi: those of python -m mpi4py.futures."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Model how every metric of every call path depends on the parameters.

    \b
    Example: quipu model heat --metric time --path '*sweep*' -o heat-models.json
    """
    from quipu.report.json_views import models_json
    from quipu.report.terminal import head, model_table

    from .analysis import load_analysis
    from .jobs import modeling_by

    how = over_ranks_of(over_ranks)
    with modeling_by(jobs):
        analysis = load_analysis(experiment, how)
    rows, hidden = _rows(analysis, split_names(metric), path, inclusive, everything)
    if output is not None:
        from quipu.modeling.document import FORMAT, to_document

        text = json_text(to_document(analysis), indent=1) + "\n"
        write_own(output, text, lambda old: f'"{FORMAT}"' in old[:400], "file of models", force)
        say(f"wrote {output}")
    if as_json:
        show_json(models_json(analysis.name, [row for row, _ in rows], [model for _, model in rows]))
        return
    room = layout()
    facts = [("measured", _ranges(analysis)), ("values", f"{analysis.over_ranks} over ranks")]
    facts.append(("scope", "inclusive: sums over what a call path calls" if inclusive else "exclusive"))
    show([head(analysis.name, facts, analysis.notes, room), model_table([row for row, _ in rows], room)])
    if not rows:
        say("no model fits --metric and --path" if path or metric else "there are no models")
    if hidden:
        say(f"{hidden} models that are 0 or could not be made are not shown (--all shows them)")


def _rows(
    analysis: Analysis, metrics: tuple[str, ...], glob: str | None, inclusive: bool, everything: bool
) -> tuple[list[tuple[ModelRow, Model | None]], int]:
    """Return rows in the order of the call tree with their models, and how many were left out as empty."""
    from quipu.modeling.pmnf.model import Model
    from quipu.report.formats.fnmatch import matches
    from quipu.report.views import ModelRow

    names = metrics or tuple(name for name in _FIRST if name in analysis.exclusive) or tuple(sorted(analysis.exclusive))
    tables = {name: analysis.models(name, inclusive) for name in names}
    rows: list[tuple[ModelRow, Model | None]] = []
    hidden = 0
    for node in _depth_first(analysis):
        if glob is not None and not (
            matches(glob, analysis.tree.label(node)) or matches(glob, analysis.tree.name(node))
        ):
            continue
        steps = tuple(analysis.tree.name(step) for step in analysis.tree.ancestry(node))
        for name, table in tables.items():
            entry = table[node]
            if not isinstance(entry.model, Model):
                if everything:
                    rows.append((ModelRow(steps, name, "", math.nan, entry.basis, entry.model.reason), None))
                hidden += not everything
                continue
            model = entry.model
            if not everything and model.is_constant and model.constant == 0:
                hidden += 1
                continue
            error = model.quality.smape if model.quality is not None else math.nan
            rows.append((ModelRow(steps, name, str(model), error, entry.basis, "; ".join(model.notes)), model))
    return rows, hidden


def _depth_first(analysis: Analysis) -> list[int]:
    order: list[int] = []
    stack = list(reversed(analysis.tree.roots))
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(analysis.tree.children[node]))
    return order


def _ranges(analysis: Analysis) -> str:
    from quipu.report.terminal.text import number

    pairs = zip(analysis.parameters, analysis.ranges, strict=True)
    return ", ".join(f"{name} = {number(low)} to {number(high)}" for name, (low, high) in pairs) or "no parameters"
