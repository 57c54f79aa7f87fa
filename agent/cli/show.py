"""`quipu show`: the call tree of a run archive or of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer
from quipu.modeling.errors import UsageError

from .options import over_ranks_of, parse_assignments, split_names
from .output import layout, say, show, show_json

# More configurations than this are told in one line.
_MOST_ROWS = 12


def command(
    *,
    folder: Path = typer.Argument(..., metavar="DIR", help="A run archive or an experiment."),
    metric: list[str] = typer.Option(
        [], "--metric", "-m", metavar="NAME", help="Columns; repeat or separate by commas. Default: those not zero."
    ),
    depth: int = typer.Option(None, "--depth", "-d", min=0, metavar="N", help="Levels below the roots to show."),
    sort: str = typer.Option(None, "--sort", "-s", metavar="METRIC", help="Order siblings by this metric."),
    exclusive: bool = typer.Option(None, "--exclusive/--inclusive", help="Only exclusive or only inclusive values."),
    ranks: bool = typer.Option(False, "--ranks", help="Min, mean, max and imbalance over ranks (or repetitions)."),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="Configuration of an experiment; default: the last one."
    ),
    source: bool = typer.Option(
        False, "--source", help="Source lines with their effort; for programs built with --quipu-per-block."
    ),
    inlined: bool = typer.Option(
        False, "--inlined", help="Call paths with the source functions that their effort came from."
    ),
    path: str = typer.Option(
        None, "--path", metavar="PATTERN", help="Of --source: functions or files; of --inlined: call paths."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the call tree with its metrics.

    \b
    Example: quipu show heat --metric time,blocks --depth 3 --at p=4,n=100
             quipu show heat/p=4,n=100.r1 --source --path stencil.c --metric flops,bytes_loaded
    """
    from quipu.report.json_views import show_json as tree_json
    from quipu.report.terminal import Selection, call_tree, configuration_table, head
    from quipu.report.views import ConfigurationRow

    from .analysis import is_of_others, load
    from .views import configuration_rows, experiment_view, is_run, run_tree_view

    over = over_ranks_of(over_ranks)
    if source or inlined:
        _show_source(folder, over, split_names(metric), path, inlined, as_json)
        return
    if path is not None:
        raise UsageError("--path belongs to --source and --inlined; --depth cuts the call tree")
    selection = Selection(
        metrics=split_names(metric),
        scope=None if exclusive is None else "exclusive" if exclusive else "inclusive",
        depth=depth,
        sort=sort,
        spread=ranks,
    )
    rows: list[ConfigurationRow] = []
    names: tuple[str, ...] = ()
    if not is_of_others(folder) and is_run(folder):
        from ..archive.read import read_archive

        if at:
            raise UsageError("--at chooses a configuration of an experiment, but this folder is one run")
        per_rank = ranks or as_json or over == "max"
        view = run_tree_view(read_archive(folder, values=per_rank), over)
    else:
        experiment = load(folder, over)
        view = experiment_view(experiment, parse_assignments("--at", at))
        rows, names = configuration_rows(experiment), experiment.parameters
    if as_json:
        show_json(tree_json(view, selection))
        return
    room = layout()
    parts = [head(view.title, view.facts, view.notes, room)]
    if 1 < len(rows) <= _MOST_ROWS:
        parts.append(configuration_table(names, rows, room))
    show([*parts, call_tree(view, selection, room)])


def _show_source(
    folder: Path,
    over: Literal["mean", "max", "sum"],
    metrics: tuple[str, ...],
    path: str | None,
    inlined: bool,
    as_json: bool,
) -> None:
    from quipu.report.terminal import head, inlined_listing, source_listing

    from .source import RunSource, inlined_view, source_json, source_view
    from .views import is_run, run_tree_view

    if not is_run(folder):
        raise UsageError(f"{folder} is an experiment: source lines are kept per run; give one of the folders in it")
    run = RunSource(folder, over, metrics)
    if as_json:
        show_json(source_json(run, path, inlined))
        return
    room = layout()
    facts = run_tree_view(run.archive, over).facts
    if inlined:
        view = inlined_view(run, path)
        parts = [head(str(folder), facts, (), room), *inlined_listing(view, room)]
    else:
        view, notes = source_view(run, path)
        parts = [head(str(folder), facts, notes, room), *source_listing(view, room)]
    show(parts)
    if not view.inlined and not view.functions:
        say(
            f"nothing fits --path {path}: a pattern is of a whole name, * fits anything"
            if path
            else "nothing was counted"
        )
