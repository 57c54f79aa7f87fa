# SPDX-License-Identifier: Apache-2.0
"""`quipu diff`: compare two runs or experiments."""

from __future__ import annotations

from pathlib import Path

import typer

from ..load.measurements import load_side
from .options import OVER_RANKS_OPTION, metric_names, over_ranks_of, split_names
from .output import layout, show, show_json


def command(
    *,
    before: Path = typer.Argument(..., metavar="A", help="A run, an experiment or a baseline."),
    after: Path = typer.Argument(
        ..., metavar="B", help="The run, experiment or baseline to compare with A: another commit, compiler or machine."
    ),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="Metrics to compare; repeat or separate by commas. Default: all.",
    ),
    inclusive: bool = typer.Option(
        False, "--inclusive/--exclusive", help="Values with or without the call paths below."
    ),
    top: int = typer.Option(
        30, "--top", min=1, metavar="N", help="Show the first N differences of effort, and of time."
    ),
    over_ranks: str = OVER_RANKS_OPTION,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Compare two runs or experiments by call path and source line: effort exactly, time with a significance test.

    \b
    Example: quipu diff heat.gcc heat.clang
             quipu diff main.runs branch.runs --metric blocks,time --json
    """
    from quipu.report.difference_views import difference_json
    from quipu.report.terminal import head
    from quipu.report.terminal.differences import difference_tables, significance_note

    from ..compare.differing import difference_view

    over = over_ranks_of(over_ranks)
    view = difference_view(load_side(before, over), load_side(after, over), split_names(metric), inclusive)
    if as_json:
        show_json(difference_json(view))
        return
    room = layout()
    notes = [*view.notes, *significance_note(view.times)]
    show([head(f"{view.before} → {view.after}", view.facts, notes, room), *difference_tables(view, top, room)])
