# SPDX-License-Identifier: Apache-2.0
"""`quipu predict`: rank call paths by their predicted value at a point."""

from __future__ import annotations

from pathlib import Path

import typer

from .options import OVER_RANKS_OF_SUMS, metric_names, over_ranks_of, point_of
from .output import layout, say, show, show_json

_LOOPS = 5  # largest number of loops to show


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
    at: list[str] = typer.Option(
        [],
        "--at",
        metavar="NAME=NUMBER,...",
        help="The point, such as p=1024,n=1e6. [default: the target of the campaign]",
    ),
    metric: str = typer.Option(
        "time", "--metric", "-m", metavar="NAME", autocompletion=metric_names, help="The metric to predict."
    ),
    inclusive: bool = typer.Option(
        False, "--inclusive/--exclusive", help="Values with or without the call paths below."
    ),
    top: int = typer.Option(20, "--top", min=1, metavar="N", help="Show the first N call paths."),
    machine: Path = typer.Option(
        None,
        "--machine",
        metavar="FILE",
        help=(
            "The machine of the measurements, as written by quipu machine; it is used for the time of memory accesses."
        ),
    ),
    over_ranks: str = OVER_RANKS_OF_SUMS,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Rank call paths by their predicted value at a point, which can be outside of the measurements.

    \b
    Example: quipu predict heat --at p=1024,n=1e6 --inclusive --top 10
    """
    from quipu.modeling.errors import UsageError
    from quipu.modeling.experiment import HELD, PEAK
    from quipu.modeling.kernels.model import with_machine
    from quipu.report.json_views import ranking_json
    from quipu.report.loop_views import loop_rows
    from quipu.report.model_views import ranking_view
    from quipu.report.terminal import head, tables

    from ..load.measurements import load_both, or_target, ranks_of, read_machine
    from .kernels import clock_of_runs

    wanted = [metric, HELD] if metric == PEAK else [metric]
    analysis, measured = load_both(experiment, over_ranks_of(over_ranks), metrics=wanted)
    if machine is not None:
        if measured is None:
            raise UsageError(f"--machine needs measurements, but {experiment} contains only models")
        analysis = with_machine(measured, analysis, read_machine(machine), clock_of_runs(experiment))
    zero = [name for name, (low, _) in zip(analysis.parameters, analysis.ranges, strict=True) if low <= 0]
    point = point_of(
        "--at", or_target(at, experiment), analysis.parameters, with_zero=zero, ranks=ranks_of(analysis, measured)
    )
    view = ranking_view(analysis, measured, point, metric, inclusive, top)
    if as_json:
        show_json(ranking_json(analysis.name, point, view, analysis.quality))
        return
    room = layout()
    table = tables.ranking_table(view.rows, view.metric.unit, room, view.start_and_end, not view.all_oversubscribed)
    parts = [head(analysis.name, view.facts, view.notes, room), table]
    loops = [] if inclusive else loop_rows(analysis, metric, None, point)
    if loops:
        parts.append(tables.largest_loops(loops[:_LOOPS], metric, room))
    show(parts)
    for line in view.left_out:
        say(line)
