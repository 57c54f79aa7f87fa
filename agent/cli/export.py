"""`quipu export`: an experiment in a format of another tool."""

from __future__ import annotations

import re
from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .options import over_ranks_of
from .output import say, write_own

_SUFFIXES = {"extrap-json": ".json", "extrap-jsonl": ".jsonl"}
_OWN = re.compile(r'\s*\{"param(eter)?s": ')


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment: a folder, or a file of Extra-P."),
    format_name: str = typer.Option(
        None,
        "--format",
        "-f",
        metavar="FORMAT",
        help="extrap-json or extrap-jsonl. Default: by the suffix of FILE, else extrap-json.",
    ),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Default: the name of the experiment."),
    inclusive: bool = typer.Option(False, "--inclusive/--exclusive", help="Sums over what a call path calls."),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is no export."),
) -> None:
    """Write an experiment to a file that another tool reads: Extra-P opens both formats with --json.

    \b
    Example: quipu export heat --format extrap-jsonl -o heat.jsonl
    """
    from quipu.report.formats.extrap import format_json, format_json_lines
    from quipu.report.text import points_text

    from .measurements import load

    chosen = _format(format_name, output)
    data = load(experiment, over_ranks_of(over_ranks))
    target = Path(f"{data.name}{_SUFFIXES[chosen]}") if output is None else output
    written = (format_json if chosen == "extrap-json" else format_json_lines)(data, inclusive)
    write_own(target, written.text, lambda old: _OWN.match(old) is not None, "export of measurements", force)
    if not data.dedicated.all():
        which = points_text(data.parameters, data.points[~data.dedicated].tolist())
        say(f"oversubscribed (more ranks than processors), which the file cannot say: {which}")
    for text in written.left_out:
        say(f"left out, because Extra-P needs every metric at every point: {text}")
    say(f"wrote {target}")


def _format(name: str | None, output: Path | None) -> str:
    if name is None:
        return "extrap-jsonl" if output is not None and output.suffix == ".jsonl" else "extrap-json"
    if name not in _SUFFIXES:
        raise UsageError(f"--format {name!r}: choose one of {', '.join(_SUFFIXES)}")
    return name
