# SPDX-License-Identifier: Apache-2.0
"""`quipu efficiency`: show how well a program uses its processors, and the causes of the losses."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .options import no_match_error, point_of
from .output import layout, say, show, show_json


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="RUNS", help="An experiment, or one run."),
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="Also predict the efficiencies at this point."
    ),
    path: str = typer.Option(
        None,
        "--path",
        metavar="PATTERN",
        help="Show the efficiencies of these functions or call paths instead of the program.",
    ),
    scaling: str = typer.Option(
        "auto",
        "--scaling",
        metavar="KIND",
        help="strong, weak, or auto (weak if the total work grows with the processors).",
    ),
    ideal_network: Path = typer.Option(
        None, "--ideal-network", metavar="RUNS", help="Runs of the same configurations, simulated on an ideal network."
    ),
    top: int = typer.Option(10, "--top", min=1, metavar="N", help="Show the first N call paths."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    as_csv: bool = typer.Option(False, "--csv", help="Print a table in the layout of TALP (DLB)."),
) -> None:
    """Show the efficiency hierarchy of the POP methodology, and the call paths that cause the losses.

    POP is the EU centre of excellence Performance Optimisation and Productivity.

    \b
    Example: quipu efficiency heat --at p=1024,n=1e6
             quipu efficiency heat --path solve
    """
    from quipu.modeling.efficiency.scaling import KINDS
    from quipu.modeling.priors.rank_parameters import rank_parameters
    from quipu.report.efficiency_views import efficiency_json, factor_rows, matching_scopes, scaling_fact
    from quipu.report.formats.talp import talp_csv
    from quipu.report.terminal import head
    from quipu.report.terminal.efficiency import factor_table, loss_tables, scope_heading, waiting_text
    from quipu.report.text import quality_fact

    from ..load.measurements import load
    from .efficiencies import efficiency_view

    if scaling not in KINDS:
        raise UsageError(f"--scaling {scaling!r}: choose one of {', '.join(KINDS)}")
    if as_json and as_csv:
        raise UsageError("--json and --csv: choose one of them")
    target = None
    if at:
        measured = load(experiment).of_time
        target = point_of("--at", at, measured.parameters, ranks=rank_parameters(measured))
    view = efficiency_view(experiment, target, scaling, ideal_network)
    if as_json:
        show_json(efficiency_json(view))
        return
    scopes = [-1] if path is None else matching_scopes(view.tree, path)
    if not scopes:
        raise no_match_error(path)
    if as_csv:
        print(talp_csv([(one.run, one.factors) for one in view.repetitions if one.run is not None], scopes), end="")
        return
    room = layout()
    facts = [*quality_fact(view.quality), *scaling_fact(view.columns)]
    parts = []
    for scope in scopes[:top]:
        parts += [] if scope < 0 else [scope_heading(view.tree, scope, room)]
        parts.append(factor_table(view.columns, factor_rows(view.columns, scope), room))
    if path is None:
        parts += [*loss_tables(view, top, room), *waiting_text(view.tree, view.waiting, top, room)]
    show([head(f"{view.title}: efficiency", facts, view.notes, room), *parts])
    if len(scopes) > top:
        say(f"{len(scopes) - top} further call paths are not shown (--top)")
