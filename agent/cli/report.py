"""`quipu report`: an experiment and its models as one HTML file."""

from __future__ import annotations

from pathlib import Path

import typer

from .options import over_ranks_of, point_of
from .output import say, write_own


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment: a folder, or a file of Extra-P."),
    output: Path = typer.Option(Path("report.html"), "--output", "-o", metavar="FILE", help="The HTML file to write."),
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="Where ranking and diagnosis start; the report can change it."
    ),
    over_ranks: str = typer.Option("mean", "--over-ranks", metavar="HOW", help="How ranks combine: mean, max, sum."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is no report."),
) -> None:
    """Write a report: call tree, models, plots, ranking and diagnosis in one HTML file that loads nothing else.

    \b
    Example: quipu report heat -o heat.html --at p=1024,n=1e6
    """
    from quipu.modeling.analysis import analyze
    from quipu.modeling.behaviour import behaviour
    from quipu.modeling.priors.slowdown import slowdowns
    from quipu.report.html import html_report, placed_models
    from quipu.report.model_views import oversubscription_notes
    from quipu.report.provenance import provenance

    from ..installation import quipu_version
    from ..merge.experiment import find_runs
    from .measurements import is_of_others, load

    over = over_ranks_of(over_ranks)
    data = load(experiment, over)
    target = point_of("--at", at, data.parameters, partial=True)
    if is_of_others(experiment):
        facts = [("read from", str(experiment))]
    else:
        facts = provenance([run.metadata for run in find_runs(experiment)])
    models = analyze(data)
    page = html_report(
        data,
        placed_models(models),
        facts=facts,
        notes=oversubscription_notes(models),
        target=target,
        observed=behaviour(data, models),
        slow=slowdowns(data, models.models("time")) if "time" in data.values and data.parameters else None,
        subtitle=f"How {data.name} scales with {', '.join(data.parameters) or 'nothing: it has no parameters'}",
        footer=f"Quipu {quipu_version()}. Values of ranks: {over}.",
    )
    write_own(output, page, lambda old: 'id="quipu-data"' in old, "report", force)
    say(f"wrote {output}")
