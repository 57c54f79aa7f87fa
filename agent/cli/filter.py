# SPDX-License-Identifier: Apache-2.0
"""`quipu filter`: select the regions to instrument, and write them as a Score-P filter file or in another format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.printable import counted

from .options import OVER_RANKS_OPTION, names_in, names_of, over_ranks_of, point_of
from .output import layout, own_file, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.refine import RegionSelection

_MOST_DROPPED = 10
_FORMATS = {"scorep": "score-p.filter", "gcc": "gcc.options", "names": "regions.txt"}
_TOOLS = ("quipu", "scorep")


@dataclass(frozen=True)
class _Selected:
    """A selection of regions.

    - names: linker names of the regions to instrument. dropped: linker names of regions that are not selected.
    - comments: lines for the head of the filter file; all but the first two are also printed.
    - summary: the end of the last message. lines: further messages about the selection.
    - show: prints the selection as a table; None: there is no table.
    """

    names: list[str]
    comments: list[str]
    summary: str
    lines: Sequence[str] = ()
    show: Callable[[], None] | None = None
    dropped: Sequence[str] = ()


def command(
    *,
    experiment: Path = typer.Argument(
        None, metavar="[EXPERIMENT]", help="An experiment, profiles of Score-P, or a file of models."
    ),
    at: list[str] = typer.Option([], "--at", metavar="NAME=NUMBER,...", help="The point at which regions are ranked."),
    output: Path = typer.Option(
        None, "--output", "-o", metavar="FILE", help="The file to write. [default: score-p.filter]"
    ),
    threshold: float = typer.Option(
        None,
        "--threshold",
        metavar="SHARE",
        help="Keep regions with at least this share of the program, 0 to 1. [default: 0.01; with --overhead 0.001]",
    ),
    overhead: float = typer.Option(
        None, "--overhead", metavar="SHARE", help="Keep the regions that explain most time with at most this overhead."
    ),
    tool: str = typer.Option(
        "quipu",
        "--tool",
        metavar="NAME",
        autocompletion=names_of(_TOOLS),
        help="The tool whose overhead per visit counts: quipu or scorep.",
    ),
    program: Path = typer.Option(
        None, "--program", metavar="PROGRAM", help="A program built with the wrappers, for its call graph."
    ),
    statements: str = typer.Option(
        None,
        "--statements",
        metavar="THRESHOLD",
        help="Select by the call graph alone: unique-median, median, maximum, or a number of statements.",
    ),
    imbalance: float = typer.Option(
        None,
        "--imbalance",
        metavar="SHARE",
        help=(
            "Select regions with at least this imbalance over the ranks of one run (0: equal, 1: one rank "
            "does all), and the regions that they call."
        ),
    ),
    imbalance_metric: str = typer.Option(
        "percentage",
        "--imbalance-metric",
        metavar="NAME",
        help="For --imbalance: percentage, efficiency (max / mean, from 1), variation (deviation / mean).",
    ),
    compiler: str = typer.Option(
        "clang",
        "--compiler",
        metavar="NAME",
        autocompletion=names_in("quipu.report.formats.compiler_names", "COMPILERS"),
        help="Write the linker names of clang or gcc.",
    ),
    format_name: str = typer.Option(
        "scorep",
        "--format",
        "-f",
        metavar="FORMAT",
        autocompletion=names_of(_FORMATS),
        help="scorep, gcc (options; needs --program), names (for CaPI).",
    ),
    over_ranks: str = OVER_RANKS_OPTION,
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not a filter file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write a Score-P filter file that keeps the regions that matter at a point.

    The same file works for the compiler wrappers, at run time (QUIPU_FILTER, quipu run --filter), and for Score-P.

    \b
    Example: quipu filter heat --at p=1024,n=1e6 --threshold 0.02 -o score-p.filter
    \b
    With a budget for measuring: quipu filter heat --at p=1024,n=1e6 --overhead 0.05 --tool scorep --compiler gcc
    Without any measurement:     quipu filter --program ./heat --statements unique-median
    By imbalance, of one run:    quipu filter 'heat/p=8,n=64.r1' --imbalance 0.05
    """
    from quipu.modeling.refine.imbalance import METRICS
    from quipu.report.formats.compiler_names import COMPILERS

    for option, value, known in (
        ("--tool", tool, _TOOLS),
        ("--compiler", compiler, COMPILERS),
        ("--format", format_name, tuple(_FORMATS)),
        ("--imbalance-metric", imbalance_metric, METRICS),
    ):
        if value not in known:
            raise UsageError(f"{option} {value!r}: choose one of {', '.join(known)}")
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"--threshold {threshold:g}: give a share between 0 and 1, such as 0.01")
    if overhead is not None and not 0 < overhead <= 1:
        raise UsageError(f"--overhead {overhead:g}: give a share above 0, such as 0.05")
    if format_name == "gcc" and program is None:
        raise UsageError("--format gcc: needs --program, which lists the functions to exclude")
    target = output or Path(_FORMATS[format_name])
    is_own = is_filter if format_name == "scorep" else lambda old: False
    write = own_file(target, is_own, "filter file", force, [experiment, program])
    if statements is not None:
        chosen = _static(program, statements)
    elif experiment is None:
        raise UsageError("EXPERIMENT is missing: name one, or give --program and --statements")
    elif imbalance is not None:
        others = (("--at", at), ("--overhead", overhead is not None), ("--json", as_json))
        if given := [option for option, is_given in others if is_given]:
            raise UsageError(f"{', '.join(given)}: --imbalance uses the ranks of one run and no models")
        least = 0.01 if threshold is None else threshold
        chosen = _imbalanced(experiment, imbalance, least, imbalance_metric, program)
    else:
        from ..load.measurements import load_both, or_target, ranks_of

        analysis, measured = load_both(experiment, over_ranks_of(over_ranks))
        point = point_of("--at", or_target(at, experiment), analysis.parameters, ranks=ranks_of(analysis, measured))
        chosen = _modeled(analysis, point, threshold, overhead, tool, experiment, as_json)
    text, notes = _text(chosen, compiler, format_name, program)
    write(text)
    if chosen.show is not None:
        chosen.show()
    for note in [
        *chosen.lines,
        *notes,
        *_demangled_notes(chosen.names, format_name),
        *_construct_notes([*chosen.names, *chosen.dropped]),
        *chosen.comments[2:],
    ]:
        say(note)
    say(f"wrote {target}: {chosen.summary}")


def _static(program: Path | None, statements: str) -> _Selected:
    from quipu.modeling.refine.static import THRESHOLDS, select_statically, threshold_of

    from ..source.callgraph import call_graph

    if program is None:
        raise UsageError("--statements: needs --program, which has the call graph")
    threshold = threshold_of(statements)
    if threshold is None:
        raise UsageError(f"--statements {statements!r}: choose one of {', '.join(THRESHOLDS)}, or give a number")
    found = select_statically(call_graph(program), threshold)
    reached = f"functions of {program} that reach at least {found.threshold:g} statements ({statements}), and callers"
    names = [function.name for function in found.kept]
    return _Selected(names, [reached, f"{len(names)} regions kept"], f"{len(names)} regions")


def _imbalanced(folder: Path, least: float, share: float, metric: str, program: Path | None) -> _Selected:
    import numpy as np
    from quipu.modeling.refine.costs import is_always_measured
    from quipu.modeling.refine.imbalance import EVEN, METRICS, imbalanced, unmeasured_callees
    from quipu.report.short_label import short_label

    from ..archive.read import read_archive
    from ..load.measurements import is_run
    from ..source.callgraph import call_graph

    even = EVEN[metric]
    if not even < least or (metric == "percentage" and least > 1):
        limit = f"above {even:g} and up to 1" if metric == "percentage" else f"above {even:g}"
        raise UsageError(f"--imbalance {least:g}: {metric} needs a number {limit}, such as {even + 0.05:g}")
    if not is_run(folder):
        raise UsageError(f"{folder}: --imbalance needs one run, which is a folder in an experiment")
    run = read_archive(folder)
    if run.values is None or run.metadata.ranks < 2:
        raise UsageError(f"{folder}: --imbalance needs the values of at least two ranks (quipu run --rank-columns N)")
    if "time" not in run.values.metrics:
        raise UsageError(f"{folder}: --imbalance needs times, and this run has none (quipu run --counts)")
    times = np.zeros((len(run.tree), run.metadata.ranks))
    np.add.at(times, (run.values.callpath, run.values.rank), np.nan_to_num(run.values.metrics["time"]))
    by = next(name for name in METRICS if name == metric)
    found, below = imbalanced(run.tree, times, least, share, by)
    kept = {path for own in (*(entry.path for entry in found), *below) for path in run.tree.ancestry(own)}
    regions = [run.tree.region_of(path) for path in sorted(kept)]
    names = list(dict.fromkeys(region.name for region in regions if not is_always_measured(region)))
    if program is not None:
        deeper = unmeasured_callees(call_graph(program), run.tree, [entry.path for entry in found])
        names = list(dict.fromkeys([*names, *(function.name for function in deeper)]))
    lines = [
        f"{short_label(run.tree, entry.path)}: {entry.percentage:.0%} imbalance, slowest rank {entry.seconds:.3g} s "
        "above the mean"
        for entry in found
    ]
    uneven = f"regions whose time differs between ranks, by a {metric} of {least:g} or more"
    head = f"{folder}: {uneven}, the callees that take most of this time, and callers"
    summary = f"{len(names)} regions"
    return _Selected(names, [head, f"{summary} kept"], summary, lines)


def _modeled(
    analysis: Analysis,
    point: dict[str, float],
    threshold: float | None,
    overhead: float | None,
    tool: str,
    experiment: Path,
    as_json: bool,
) -> _Selected:
    from quipu.modeling.refine.selection import select
    from quipu.report.model_views import filter_comments
    from quipu.report.text import percent

    if overhead is None:
        least = 0.01 if threshold is None else threshold
        selection = select(analysis, point, least)
    else:
        least, selection = _within(analysis, point, threshold, overhead, tool, experiment)
    names = [choice.region.name for choice in selection.kept]
    summary = f"{len(names)} regions, predicted overhead {percent(selection.overhead_share)}"
    if overhead is not None:
        summary += f", {percent(selection.coverage)} of the time explained"
    comments = filter_comments(analysis, selection, point, least)
    shows = partial(_show, analysis.name, point, selection, as_json)
    return _Selected(names, comments, summary, show=shows, dropped=[one.region.name for one in selection.dropped])


def _show(name: str, point: dict[str, float], selection: RegionSelection, as_json: bool) -> None:
    """Print the selected and the rejected regions at a point, as a table or as JSON. name: of the experiment."""
    from quipu.report.json_views import filter_json
    from quipu.report.terminal import tables

    if as_json:
        show_json(filter_json(name, point, selection))
        return
    show([tables.filter_table(selection, _MOST_DROPPED, layout())])
    if len(selection.dropped) > _MOST_DROPPED:
        say(f"{len(selection.dropped) - _MOST_DROPPED} further regions are dropped (--json lists them)")


def _within(
    analysis: Analysis, point: dict[str, float], threshold: float | None, overhead: float, tool: str, experiment: Path
) -> tuple[float, RegionSelection]:
    from quipu.modeling.refine import SCOREP, HookCost, costs_at, select_within
    from quipu.modeling.refine.budget import RELEVANT

    from ..load.measurements import is_of_others

    least = RELEVANT if threshold is None else threshold
    if is_of_others(experiment) or experiment.is_file():
        measured = SCOREP if is_of_others(experiment) else HookCost(0.0)
        hook = SCOREP
    else:
        from ..campaign.selections import cost_in_times, hook_cost
        from ..merge.experiment import find_runs

        runs = [run for run in find_runs(experiment) if run.metadata.complete]
        measured = cost_in_times(runs)
        hook = SCOREP if tool == "scorep" else hook_cost(runs)
    return least, select_within(costs_at(analysis, point, measured), hook, overhead, least)


def _text(chosen: _Selected, compiler: str, format_name: str, program: Path | None) -> tuple[str, list[str]]:
    """Return the text of the filter file, and notes on what its format cannot express."""
    from quipu.report.formats import format_filter
    from quipu.report.formats.exclusion_lists import gcc_options, name_list

    if format_name == "scorep":
        return format_filter(chosen.names, chosen.comments, compiler, chosen.dropped), []
    if format_name == "names":
        return name_list(chosen.names), []
    from ..source.callgraph import call_graph

    assert program is not None
    found = gcc_options(call_graph(program).functions, chosen.names)
    few = ", ".join(found.measured_too[:6])
    notes = (
        [f"also measured, because gcc cannot exclude a name that is a part of a selected name: {few}"] if few else []
    )
    return "\n".join(found.options) + "\n", notes


def _demangled_notes(names: list[str], format_name: str) -> list[str]:
    """Return, as a list, a note on the regions whose linker names the measurements do not contain."""
    from quipu.report.formats import demangled

    others = demangled(names)
    if not others:
        return []
    stands = {
        "scorep": "the filter contains their displayed names (DEMANGLED), and a tool may write them differently",
        "gcc": "the options leave them out",
        "names": "the file contains their displayed names",
    }
    return [
        f"{len(others)} of {len(names)} regions, such as {others[0]}, have no linker name in these measurements "
        f"(only bodies of OpenMP constructs have one; files of Extra-P and Caliper contain displayed names): "
        f"{stands[format_name]}"
    ]


def _construct_notes(names: list[str]) -> list[str]:
    """Return, as a list, a note on the bodies of OpenMP constructs among the regions."""
    from quipu.report.formats import function_of_construct

    constructs = [name for name in names if function_of_construct(name)]
    if not constructs:
        return []
    many = counted(len(constructs), "region is the body", "regions are bodies")
    return [
        f"{many} of OpenMP constructs, such as {constructs[0]}: with Quipu, a rule for the function that contains a "
        "construct holds for its body, too, unless a later rule names the body"
    ]


def is_filter(text: str) -> bool:
    """Return whether a text is a Score-P filter file with at least one block (SCOREP_…_BEGIN)."""
    from quipu.report.formats import parse_filter

    try:
        parse_filter(text)
    except FormatError:
        return False
    return "SCOREP_" in text
