# SPDX-License-Identifier: Apache-2.0
"""`quipu show`: show the call tree of a run archive or of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from quipu.modeling.errors import UsageError
from quipu.modeling.printable import counted

from ..load.measurements import MADE, is_of_others, is_run, load
from .options import OVER_RANKS_OPTION, metric_names, no_match_error, over_ranks_of, parse_assignments, split_names
from .output import layout, say, show, show_json

if TYPE_CHECKING:
    from quipu.report.views import Over, TreeOptions, TreeView

# The table of configurations is left out if there are more configurations than this.
_MOST_ROWS = 12
# With more than _MANY call paths, only _SHOWN are shown by default.
_MANY, _SHOWN = 100, 40


def command(
    *,
    folder: Path = typer.Argument(..., metavar="DIR", help="A run archive or an experiment."),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="Metrics to show; repeat or separate by commas. Default: all that are not zero.",
    ),
    depth: int = typer.Option(None, "--depth", "-d", min=0, metavar="N", help="Levels below the roots to show."),
    top: int = typer.Option(
        None,
        "--top",
        min=1,
        metavar="N",
        help="Only the N call paths with the largest values of the first metric, and their callers. "
        f"Default: {_SHOWN}, if there are more than {_MANY} call paths.",
    ),
    everything: bool = typer.Option(False, "--all", help="Show all call paths."),
    sort: str = typer.Option(
        None, "--sort", "-s", metavar="METRIC", autocompletion=metric_names, help="Order siblings by this metric."
    ),
    exclusive: bool = typer.Option(
        None, "--exclusive/--inclusive", help="Show only exclusive or only inclusive values."
    ),
    ranks: bool = typer.Option(
        False, "--ranks", help="Show minimum, mean, maximum and imbalance over ranks (or repetitions)."
    ),
    over_ranks: str = OVER_RANKS_OPTION,
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="Configuration of an experiment; default: the last one."
    ),
    source: bool = typer.Option(
        False,
        "--source",
        help="Show source lines of one run, for programs built with -g; default: the last run.",
    ),
    inlined: bool = typer.Option(
        False, "--inlined", help="Show call paths with the inlined source functions that cause their effort."
    ),
    communication: bool = typer.Option(
        False, "--communication", help="Show the messages and bytes between ranks of one run; default: the last run."
    ),
    iterations: str = typer.Option(
        None,
        "--iterations",
        metavar="NAME",
        help="Show the iterations of a phase that the program marks; default: the last run.",
    ),
    path: str = typer.Option(
        None, "--path", metavar="PATTERN", help="For --source: functions or files; for --inlined: call paths."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the call tree with its metrics.

    \b
    Example: quipu show heat --metric time,blocks --depth 3 --at p=4,n=100
             quipu show heat --top 10
             quipu show heat --source --at p=4,n=100 --path stencil.c --metric flops,bytes_loaded
             quipu show heat --communication --at p=16,n=100
             quipu show heat --iterations step
    """
    from quipu.report.json_views import show_json as tree_json
    from quipu.report.terminal import call_tree, head, tables
    from quipu.report.tree_selection import largest_with_callers
    from quipu.report.tree_views import configuration_rows, experiment_view
    from quipu.report.views import ConfigurationRow, TreeOptions

    from ..merge.experiment import NoCompleteRun

    over = over_ranks_of(over_ranks)
    _expect_one_view(
        {"--source": source, "--inlined": inlined, "--communication": communication, "--iterations": iterations}
    )
    if communication:
        from .show_communication import show_communication

        show_communication(_run_of(folder, at), as_json)
        return
    if iterations is not None:
        from .show_iterations import show_iterations

        show_iterations(_run_of(folder, at), iterations, split_names(metric), as_json)
        return
    if source or inlined:
        _show_source(_run_of(folder, at), over, split_names(metric), path, inlined, as_json)
        return
    if path is not None:
        raise UsageError("--path belongs to --source and --inlined; --depth cuts the call tree")
    scope: Literal["exclusive", "inclusive"] = "exclusive" if exclusive else "inclusive"
    options = TreeOptions(split_names(metric), None if exclusive is None else scope, depth, sort, ranks, top)
    rows: list[ConfigurationRow] = []
    names: tuple[str, ...] = ()
    per_rank = ranks or as_json or over == "max"
    if not is_of_others(folder) and is_run(folder) and not MADE.intersection(options.metrics):
        if at:
            raise UsageError("--at chooses a configuration of an experiment, but this folder is one run")
        view = _run_view(folder, over, per_rank)
    else:
        try:
            experiment = load(folder, over, options.metrics)
        except NoCompleteRun as error:
            if at or len(error.runs) > 1 or MADE.intersection(options.metrics):
                raise
            view = _run_view(error.runs[0], over, per_rank)
        else:
            view = experiment_view(experiment, parse_assignments("--at", at))
            rows, names = configuration_rows(experiment), experiment.parameters
    if as_json:
        show_json(tree_json(view, options))
        return
    room = layout()
    options = _readable(options, view, everything)
    parts = [head(view.title, view.facts, view.notes, room)]
    if 1 < len(rows) <= _MOST_ROWS:
        parts.append(tables.configuration_table(names, rows, room))
    show([*parts, call_tree(view, options, room)])
    _say_hidden(int((~largest_with_callers(view, options)).sum()))


def _expect_one_view(views: Mapping[str, object]) -> None:
    """Raise UsageError if more than one option selects a view. views: option → value."""
    if len(given := [option for option, value in views.items() if value]) > 1:
        raise UsageError(f"{given[0]} and {given[1]} are different views: give one of them")


def _readable(options: TreeOptions, view: TreeView, everything: bool) -> TreeOptions:
    """Return the options of a view; a large call tree without limits gets the default of --top.

    everything: whether --all is given. Raises UsageError if --all and --top are given.
    """
    if everything and options.top is not None:
        raise UsageError("--all and --top exclude each other: give one of them")
    if everything or options.top is not None or options.depth is not None or len(view.tree) <= _MANY:
        return options
    return replace(options, top=_SHOWN)


def _say_hidden(hidden: int) -> None:
    if hidden:
        say(f"{counted(hidden, 'further call path is', 'further call paths are')} not shown (--top N, --all)")


def _run_view(folder: Path, over: Over, per_rank: bool) -> TreeView:
    from quipu.report.tree_views import run_tree_view

    from ..archive.read import read_archive
    from ..merge.overhead import dominated_in
    from ..merge.slowest_rank import slowest_rank

    archive = read_archive(folder, values=per_rank)
    return run_tree_view(archive, over, dominated_in(archive), slowest_rank(archive))


def _run_of(folder: Path, at: list[str]) -> Path:
    """Return the path of a run: the folder itself if it is a run, else the last run of the experiment in it.

    at: only consider runs of this configuration. Raises UsageError if there is no such run.
    """
    from ..merge.experiment import find_runs

    wanted = parse_assignments("--at", at)
    if is_run(folder):
        if at:
            raise UsageError("--at chooses a configuration of an experiment, but this folder is one run")
        return folder
    fits = [run for run in find_runs(folder) if wanted.items() <= dict(run.metadata.parameters).items()]
    if not fits:
        raise UsageError(f"--at {','.join(at)}: not measured in {folder}" if at else f"{folder} contains no runs")
    say(f"this view shows one run, by default the last one (--at selects another): {fits[-1].path}")
    return fits[-1].path


def _show_source(
    folder: Path, over: Over, metrics: tuple[str, ...], path: str | None, inlined: bool, as_json: bool
) -> None:
    from quipu.report.json_views import source_json
    from quipu.report.source_listing import SourceListing, inlined_view, source_view
    from quipu.report.terminal import head
    from quipu.report.terminal.source import inlined_listing, source_listing
    from quipu.report.tree_views import run_facts

    from ..archive.class_tables import read_source
    from ..archive.read import read_archive

    archive = read_archive(folder, values=False)
    source = SourceListing(archive, read_source(folder, archive.metadata, archive.tree), over, metrics)
    if as_json:
        data = source_json(source, path, inlined)
        if path is not None and not data["lines"]:
            raise no_match_error(path)
        show_json(data)
        return
    room = layout()
    view, notes = (inlined_view(source, path), []) if inlined else source_view(source, path)
    listing = (inlined_listing if inlined else source_listing)(view, room)
    if path is not None and not listing:
        raise no_match_error(path)
    show([head(str(folder), run_facts(archive, over), notes, room), *listing])
    if not listing:
        say("nothing was counted")
