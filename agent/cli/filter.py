"""`quipu filter`: a Score-P filter file with the regions that matter at a point."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import FormatError, UsageError

from .options import over_ranks_of, point_of
from .output import layout, say, show, show_json, write_own

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
    from quipu.report.json_views import filter_json
    from quipu.report.model_views import filter_comments
    from quipu.report.terminal import tables
    from quipu.report.text import percent

    from .measurements import load_both

    if not 0 <= threshold <= 1:
        raise UsageError(f"--threshold {threshold:g}: give a share between 0 and 1, such as 0.01")
    analysis = load_both(experiment, over_ranks_of(over_ranks))[0]
    point = point_of("--at", at, analysis.parameters)
    selection = select(analysis, point, threshold)
    comments = filter_comments(analysis, selection, point, threshold)
    text = format_filter([choice.region.name for choice in selection.kept], comments)
    write_own(output, text, _is_filter, "filter file", force)
    if as_json:
        show_json(filter_json(analysis.name, point, selection))
    else:
        show([tables.filter_table(selection, _MOST_DROPPED, layout())])
        if len(selection.dropped) > _MOST_DROPPED:
            say(f"{len(selection.dropped) - _MOST_DROPPED} further regions are dropped (--json lists them)")
    for comment in comments[2:]:
        say(comment)
    say(f"wrote {output}: {len(selection.kept)} regions, predicted overhead {percent(selection.overhead_share)}")


def _is_filter(text: str) -> bool:
    """Whether a text is a filter file with at least one block; comments alone could be anything."""
    from quipu.report.formats import parse_filter

    try:
        parse_filter(text)
    except FormatError:
        return False
    return "SCOREP_" in text
