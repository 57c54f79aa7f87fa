"""`quipu filter`: a Score-P filter file with the regions that matter at a point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import FormatError, UsageError

from .options import over_ranks_of, point_of
from .output import layout, say, show, show_json, write_own

if TYPE_CHECKING:
    from quipu.modeling.refine.selection import Choice
    from quipu.report.views import SelectionRow

_MOST_DROPPED = 10


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
    at: list[str] = typer.Option([], "--at", metavar="NAME=NUMBER,...", help="Where regions are to matter."),
    output: Path = typer.Option(
        Path("score-p.filter"), "--output", "-o", metavar="FILE", help="The filter file to write."
    ),
    threshold: float = typer.Option(
        0.01, "--threshold", metavar="SHARE", help="Keep regions with at least this share of the program (0 to 1)."
    ),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is no filter file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write a Score-P filter file that keeps the regions that matter at a point.

    The same file works for the compiler wrappers and at run time (QUIPU_FILTER, quipu run --filter), and for Score-P.

    \b
    Example: quipu filter heat --at p=1024,n=1e6 --threshold 0.02 -o score-p.filter
    """
    from quipu.modeling.refine.selection import select
    from quipu.report.formats import format_filter
    from quipu.report.json_views import selection_json
    from quipu.report.terminal import selection_table
    from quipu.report.terminal.text import percent, point_text

    from .analysis import load_analysis

    if not 0 <= threshold <= 1:
        raise UsageError(f"--threshold {threshold:g}: give a share between 0 and 1, such as 0.01")
    analysis = load_analysis(experiment, over_ranks_of(over_ranks))
    point = point_of("--at", at, analysis.parameters)
    selection = select(analysis, point, threshold)
    place = point_text(analysis.parameters, tuple(point.values()))
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
    text = format_filter([choice.region.name for choice in selection.kept], comments)
    write_own(output, text, _is_filter, "filter file", force)
    rows = [_row(choice, True) for choice in selection.kept]
    dropped = [_row(choice, False) for choice in selection.dropped]
    if as_json:
        show_json(selection_json(analysis.name, point, [*rows, *dropped]))
    else:
        show([selection_table([*rows, *dropped[:_MOST_DROPPED]], layout())])
        if len(dropped) > _MOST_DROPPED:
            say(f"{len(dropped) - _MOST_DROPPED} further regions are dropped (--json lists them)")
    for comment in comments[2:]:
        say(comment)
    say(f"wrote {output}: {len(rows)} regions, predicted overhead {percent(selection.overhead_share)}")


def _row(choice: Choice, kept: bool) -> SelectionRow:
    from quipu.report.views import SelectionRow

    return SelectionRow(
        region=choice.region.display,
        kept=kept,
        share=choice.share,
        visits=choice.visits,
        overhead=choice.overhead,
        reason=choice.reason,
    )


def _is_filter(text: str) -> bool:
    """Whether a text is a filter file with at least one block; comments alone could be anything."""
    from quipu.report.formats import parse_filter

    try:
        parse_filter(text)
    except FormatError:
        return False
    return "SCOREP_" in text
