# SPDX-License-Identifier: Apache-2.0
"""`quipu campaign`: run all points of a declared experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError
from quipu.modeling.printable import counted

from .output import layout, say, show, show_json, stdout_for_json

if TYPE_CHECKING:
    from ..campaign.campaign import CampaignResult
    from ..campaign.file import Campaign
    from ..campaign.plan import Plan, PlannedRuns
    from ..campaign.task import Progress


def command(
    *,
    file: Path = typer.Argument(
        ..., metavar="FILE.toml", help="The campaign file: a TOML file that declares an experiment."
    ),
    stop_on_error: bool = typer.Option(False, "--stop-on-error", help="Stop at the first run that fails."),
    keep_going: bool = typer.Option(
        False, "--keep-going", help="Continue if several runs in a row fail at their start with the same error."
    ),
    keep_old: bool = typer.Option(
        False, "--keep-old", help="Keep runs of another build, command or machine instead of measuring them again."
    ),
    cancel: bool = typer.Option(False, "--cancel", help="Cancel the submitted jobs of this campaign, and exit."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show the missing runs and their cost, without running them."
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only errors."),
    as_json: bool = typer.Option(
        False, "--json", help="Print JSON about the runs at the end; the output of programs goes to stderr."
    ),
) -> None:
    """Run all points of an experiment that a file declares, with the declared number of repetitions.

    After an interruption, repeat the command. It keeps complete runs, unless the program, its build, the command or
    the machine has changed.

    \b
    Example: quipu campaign heat.toml
    \b
        [experiment]
        name = "heat"
        repetitions = 3
        command = "mpirun -n {p} ./heat {n}"
        [parameters]
        p = [1, 2, 4, 8]
        n = [32, 48, 64, 96, 128]
    \b
    With a table [search] it runs only the points that improve the prediction of a target:
        [search]
        target = {p = 64, n = 512}
        budget = "10%"
    With a table [target] it also makes count-only runs, with up to the number of ranks of the target:
        [target]
        p = 512
        n = 4000
    With a table [scheduler] each run is a job of Slurm, PBS, LSF or Flux:
        [scheduler]
        name = "slurm"
        minutes = 30
    """
    from ..campaign.declared_run import run_declared, scheduled
    from ..campaign.file import read_campaign
    from ..campaign.progress_lines import ProgressLines

    if cancel and as_json:
        raise UsageError("--json and --cancel exclude each other, because --cancel makes no runs to print")
    if stop_on_error and keep_going:
        raise UsageError("--stop-on-error and --keep-going exclude each other")
    campaign = read_campaign(file)
    if dry_run:
        _show_plan(campaign, as_json)
        return
    progress = Noting(ProgressLines(errors_only=quiet))
    if cancel:
        if (jobs := scheduled(campaign)) is None:
            raise UsageError(f"--cancel: {file} has no table [scheduler], so that it has no jobs")
        say(jobs.cancel_all(campaign.directory))
        return
    with stdout_for_json(as_json):
        result = run_declared(
            campaign, progress, stop_on_failure=stop_on_error, keep_going=keep_going, keep_old=keep_old
        )
    if not quiet:
        _conclude(result)
    if result.stopped:
        say(f"error: {result.stopped}")
    if as_json:
        show_json(_json(result, [*progress.notes, result.stopped] if result.stopped else progress.notes))
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _show_plan(campaign: Campaign, as_json: bool) -> None:
    from quipu.report.terminal import head, tables
    from quipu.report.text import duration

    from ..campaign.plan import plan_of

    plan = plan_of(campaign)
    if as_json:
        show_json(_plan_json(campaign, plan))
        return
    rows = [(one.parameters, one.runs, one.counts, _takes(one)) for one in plan.planned]
    runs = counted(sum(one.runs for one in plan.planned), "run", "runs")
    facts = [("complete", counted(plan.finished, "run", "runs")), ("to do", runs)]
    if plan.planned:
        known = duration(plan.seconds) if plan.seconds else "not known"
        facts.append(("takes", f"{'at least ' if plan.unknown and plan.seconds else ''}{known}"))
    room = layout()
    table = [tables.plan_table(campaign.parameters, rows, room)] if rows else []
    show([head(str(campaign.directory), facts, plan.notes, room), *table])


def _takes(one: PlannedRuns) -> str:
    from quipu.report.text import duration

    if one.seconds is None:
        return "not known"
    return f"{'at least ' if one.at_least else ''}{duration(one.seconds)}"


def _plan_json(campaign: Campaign, plan: Plan) -> dict[str, object]:
    from quipu.report.json_views import document_json
    from quipu.report.run_json import planned_json

    return document_json(
        "campaign-plan",
        str(campaign.directory),
        complete=plan.finished,
        planned=[planned_json(one.parameters, one.runs, one.counts, one.seconds, one.at_least) for one in plan.planned],
        seconds=plan.seconds,
        unknown=plan.unknown,
        notes=list(plan.notes),
    )


class Noting:
    """A progress display that also stores the notes, for --json."""

    def __init__(self, drawn: Progress) -> None:
        """Start without notes. drawn: the display that shows the progress."""
        self.planned, self.started, self.ended = drawn.planned, drawn.started, drawn.ended
        self._drawn = drawn
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Store a note and show it."""
        self.notes.append(text)
        self._drawn.note(text)


def _json(result: CampaignResult, notes: Sequence[str]) -> dict[str, object]:
    from quipu.report.json_views import document_json
    from quipu.report.run_json import task_json

    return document_json(
        "campaign",
        str(result.directory),
        complete=result.complete,
        complete_before=result.finished,
        not_started=result.not_started,
        interrupted=result.interrupted,
        runs=[
            task_json(one.task.parameters, one.task.repetition, one.seconds, one.archive, one.error, one.task.counts)
            for one in result.outcomes
        ],
        notes=list(notes),
    )


def _conclude(result: CampaignResult) -> None:
    say(f"{counted(result.complete, 'complete run', 'complete runs')} in {result.directory}")
    if result.failed:
        names = ", ".join(outcome.task.name for outcome in result.failed[:6])
        more = " …" if len(result.failed) > 6 else ""
        failed, them = counted(len(result.failed), "run", "runs"), "it" if len(result.failed) == 1 else "them"
        say(f"error: {failed} failed: {names}{more}; repeat the command to try {them} again")
    if result.not_started:
        left = counted(result.not_started, "run was", "runs were")
        say(f"{left} not started; repeat the command to start {'it' if result.not_started == 1 else 'them'}")
