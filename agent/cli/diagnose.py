# SPDX-License-Identifier: Apache-2.0
"""`quipu diagnose`: find call paths whose time grows faster than their effort, and the loss at a larger scale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .options import OVER_RANKS_OF_SUMS, over_ranks_of, point_of
from .output import layout, own_file, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.diagnosis import Diagnosis
    from quipu.modeling.experiment import Experiment


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment: a folder, or a file of Extra-P."),
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="The scale to predict (default: 16 times the measured ranks)."
    ),
    output: Path | None = typer.Option(None, "--output", "-o", metavar="FILE", help="Also write an HTML page."),
    top: int = typer.Option(20, "--top", min=1, metavar="N", help="Show the first N findings."),
    over_ranks: str = OVER_RANKS_OF_SUMS,
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not a diagnosis."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Find what limits a larger scale: call paths whose time grows faster than their work and their messages.

    \b
    Example: quipu diagnose heat --at p=65536,n=64
    """
    from quipu.modeling.diagnosis import diagnose
    from quipu.report.html import html_diagnosis
    from quipu.report.json_views import diagnosis_json, files_json
    from quipu.report.model_views import diagnosis_facts, extrapolation_notes, slowest_rank_notes
    from quipu.report.terminal import head, tables
    from quipu.report.terminal.efficiency import waiting_text
    from quipu.report.text import point_text, quality_fact
    from quipu.report.waiting_views import waiting_json

    from ..load.kept_models import analyze_once
    from ..load.measurements import load, or_target
    from .efficiencies import waiting_of_largest
    from .file_uses import file_uses

    write = None
    if output is not None:
        write = own_file(output, lambda old: "quipu-diagnosis" in old, "diagnosis", force, [experiment])
    data = load(experiment, over_ranks_of(over_ranks)).of_time
    target = _target(data, or_target(at, experiment))
    analysis = analyze_once(data)
    found = diagnose(data, analysis, target)
    waits = waiting_of_largest(experiment, data)
    files = file_uses(experiment, data, analysis, target)
    place = point_text(data.parameters, found.point.values())
    beside = [*extrapolation_notes(analysis, found.point), *slowest_rank_notes(analysis)]
    if write is not None:
        page = html_diagnosis(data.name, place, found, beside)
        write(page)
        say(f"wrote {output}")
    if as_json:
        waiting = waiting_json(data.tree, None if waits is None else waits[1])
        show_json({**diagnosis_json(data.name, found, data.quality), "waiting": waiting, "files": files_json(files)})
        return
    room = layout()
    facts = [*quality_fact(data.quality), *diagnosis_facts(place, found)]
    shown = head(f"{data.name}: what will hurt at {place}", facts, [*beside, *data.notes, *found.notes], room)
    found_there = [tables.diagnosis_table(found, top, room)] if found.findings else []
    others = [tables.beyond_effort_table(found, top, room)] if found.others else []
    waiting_there = [] if waits is None else waiting_text(data.tree, waits[1], top, room, waits[0])
    files_there = [tables.files_table(files, place, top, room)] if files else []
    show([shown, *found_there, *others, *waiting_there, *files_there])
    if not found.findings and (reason := _why_nothing(found, bool(others))):
        say(reason)
    if len(found.findings) > top:
        say(f"{len(found.findings) - top} further findings are not shown (--top)")


def _target(data: Experiment, at: list[str]) -> dict[str, float]:
    """Return the point at which to diagnose: `at`, or by default a larger number of ranks.

    Raises UsageError if the experiment has no parameters, or if `at` is empty and no parameter is called p.
    """
    from quipu.modeling.diagnosis import scale_of
    from quipu.modeling.priors.rank_parameters import rank_parameters

    if not data.parameters:
        raise UsageError(
            "diagnose compares runs at several scales, and this experiment has no parameters: measure several values "
            "of a parameter (quipu run --param), or use quipu efficiency for one run"
        )
    if at:
        return point_of("--at", at, data.parameters, ranks=rank_parameters(data))
    if "p" not in data.parameters:
        raise UsageError("--at: give the scale to predict, such as " + ",".join(f"{x}=1e6" for x in data.parameters))
    return dict(zip(data.parameters, scale_of(data, {}), strict=True))


def _why_nothing(found: Diagnosis, others: bool) -> str:
    """Return the reason why there are no findings; "" if a shown table explains this.

    others: whether the table of time beyond effort is shown.
    """
    if found.without_effort >= 1.0:
        return "no effort was measured, so the growth of time cannot be compared with it"
    return "" if others else "no call path takes more time per unit of effort as a parameter grows"
