"""`quipu show`: the call tree of a run archive or of an experiment."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .options import over_ranks_of, parse_assignments, split_names
from .output import layout, show, show_json

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
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the call tree with its metrics.

    \b
    Example: quipu show heat --metric time,blocks --depth 3 --at p=4,n=100
    """
    from quipu.report.json_views import show_json as tree_json
    from quipu.report.terminal import Selection, call_tree, configuration_table, head
    from quipu.report.views import ConfigurationRow

    from .analysis import is_of_others, load
    from .views import configuration_rows, experiment_view, is_run, run_tree_view

    over = over_ranks_of(over_ranks)
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
        from ..archive import read_archive

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
