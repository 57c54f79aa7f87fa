"""`quipu model`: a model of every metric of every call path."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .options import JOBS, over_ranks_of, split_names
from .output import json_text, layout, say, show, show_json, write_own

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.behaviour import Behaviour
    from quipu.modeling.pmnf.model import Model
    from quipu.modeling.pmnf.modeler import Options
    from quipu.report.views import ModelRow

_FIRST = ("time", "blocks", "bytes_sent")


def command(
    *,
    experiment_path: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
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
    jobs: str = typer.Option("1", "--jobs", "-j", metavar="N|mpi", help=JOBS),
    noise: bool = typer.Option(False, "--noise", help="Also how far repetitions are from each other."),
    selector: str = typer.Option(
        "evidence",
        "--selector",
        metavar="RULE",
        help="How hypotheses of cost metrics are chosen: evidence; for comparison smape (cross-validated) or extra-p.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Model how every metric of every call path depends on the parameters.

    \b
    Example: quipu model heat --metric time --path '*sweep*' -o heat-models.json
    """
    from quipu.modeling import parallel
    from quipu.modeling.behaviour import behaviour
    from quipu.report.behaviour import change_rows, noise_facts, noise_rows, unrepeated
    from quipu.report.json_views import changes_json, models_json, noise_json
    from quipu.report.terminal import change_table, head, model_table, noise_table

    from .analysis import load_both

    how = over_ranks_of(over_ranks)
    options = _options(selector)
    with parallel.jobs(jobs) as workers:
        if workers is None:
            return
        analysis, experiment = load_both(experiment_path, how, options)
        names = _metrics(analysis, split_names(metric))
        observed = behaviour(experiment, analysis, names) if experiment is not None else {}
    if noise and experiment is None:
        raise UsageError(f"{experiment_path} holds models: --noise needs the measurements")
    rows, hidden = _rows(analysis, names, path, inclusive, everything, observed)
    if output is not None:
        from quipu.modeling.document import FORMAT, to_document

        text = json_text(to_document(analysis), indent=1) + "\n"
        write_own(output, text, lambda old: f'"{FORMAT}"' in old[:400], "file of models", force)
        say(f"wrote {output}")
    places = {(row.path, row.metric): node for node, row, _ in rows}
    changes = [] if inclusive else change_rows(places, observed)
    noises = noise_rows(places, observed, experiment) if noise and experiment is not None else []
    if as_json:
        data = models_json(analysis.name, [row for _, row, _ in rows], [model for _, _, model in rows])
        data |= changes_json(changes) | (noise_json(noises) if noise else {})
        show_json(data)
        return
    room = layout()
    facts = [("measured", _ranges(analysis)), ("values", f"{analysis.over_ranks} over ranks")]
    facts.append(("scope", "inclusive: sums over what a call path calls" if inclusive else "exclusive"))
    if options is not None:
        facts.append(("selector", f"{selector}, for comparison: time without effort, no alternatives"))
    if noise and experiment is not None:
        facts += noise_facts(experiment)
    notes = [*analysis.notes, *unrepeated(observed)]
    parts = [head(analysis.name, facts, notes, room), model_table([row for _, row, _ in rows], room)]
    if changes:
        parts.append(change_table(changes, room))
    if noises:
        parts.append(noise_table(noises, room))
    show(parts)
    if not rows:
        say("no model fits --metric and --path" if path or metric else "there are no models")
    if hidden:
        say(f"{hidden} models that are 0 or could not be made are not shown (--all shows them)")


def _options(selector: str) -> Options | None:
    """Return how to model, None for the default."""
    from quipu.modeling.pmnf.modeler import SELECTORS, Options

    for known in SELECTORS:
        if selector == known:
            return None if known == "evidence" else Options(selector=known)
    raise UsageError(f"--selector {selector!r}: there are {', '.join(SELECTORS)}")


def _rows(
    analysis: Analysis,
    metrics: tuple[str, ...],
    glob: str | None,
    inclusive: bool,
    everything: bool,
    observed: dict[str, list[Behaviour]],
) -> tuple[list[tuple[int, ModelRow, Model | None]], int]:
    """Return call paths with rows in the order of the tree and models, and how many were left out as empty."""
    from quipu.modeling.pmnf.model import Model
    from quipu.report.formats.fnmatch import matches
    from quipu.report.views import ModelRow

    tables = {name: analysis.models(name, inclusive) for name in metrics}
    rows: list[tuple[int, ModelRow, Model | None]] = []
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
                    rows.append((node, ModelRow(steps, name, "", math.nan, entry.basis, entry.model.reason), None))
                hidden += not everything
                continue
            model = entry.model
            if not everything and model.is_constant and model.constant == 0:
                hidden += 1
                continue
            error = model.quality.smape if model.quality is not None else math.nan
            notes = list(model.notes)
            if name in observed and not inclusive and observed[name][node].warning:
                notes.append(observed[name][node].warning)
            rows.append((node, ModelRow(steps, name, str(model), error, entry.basis, "; ".join(notes)), model))
    return rows, hidden


def _metrics(analysis: Analysis, chosen: tuple[str, ...]) -> tuple[str, ...]:
    first = tuple(name for name in _FIRST if name in analysis.exclusive)
    return chosen or first or tuple(sorted(analysis.exclusive))


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
