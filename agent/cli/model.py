# SPDX-License-Identifier: Apache-2.0
"""`quipu model`: model how every metric of every call path depends on the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError
from quipu.modeling.printable import counted

from .options import (
    JOBS,
    OVER_RANKS_OF_SUMS,
    metric_names,
    names_in,
    no_match_error,
    over_ranks_of,
    point_of,
    split_names,
)
from .output import json_text, layout, own_file, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.pmnf.options import Options

# With more than _MANY call paths, only _SHOWN are shown by default.
_MANY, _SHOWN = 60, 30
_LOOPS = 20  # default number of loops to show


def command(
    *,
    experiment_path: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment, or a file of models."),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="Metrics, separated by commas. Default: time, blocks, bytes_sent.",
    ),
    path: str = typer.Option(
        None, "--path", metavar="GLOB", help="Only call paths (main->solve->...) or regions that match."
    ),
    inclusive: bool = typer.Option(
        False, "--inclusive/--exclusive", help="Values with or without the call paths below."
    ),
    over_ranks: str = OVER_RANKS_OF_SUMS,
    top: int = typer.Option(
        None,
        "--top",
        min=1,
        metavar="N",
        help="Only the N call paths with the largest values of the first metric at the largest measured parameters. "
        f"Default: {_SHOWN}, if there are more than {_MANY} call paths.",
    ),
    everything: bool = typer.Option(
        False, "--all", help="Show all call paths, including call paths without a model and with the value 0."
    ),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE.json", help="Write all models to a file."),
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not a file of models."),
    jobs: str = typer.Option("1", "--jobs", "-j", metavar="N|mpi", help=JOBS),
    noise: bool = typer.Option(False, "--noise", help="Also show how much repetitions scatter."),
    loops: bool = typer.Option(
        False,
        "--loops",
        help="Show the execution counts of loops instead of models of metrics, largest first.",
    ),
    at: list[str] = typer.Option(
        [], "--at", metavar="NAME=NUMBER,...", help="With --loops: show the execution counts at this point."
    ),
    selector: str = typer.Option(
        "evidence",
        "--selector",
        metavar="RULE",
        autocompletion=names_in("quipu.modeling.pmnf.options", "SELECTORS"),
        help="How to select models of cost metrics: evidence; for comparison smape (cross-validated) or extra-p.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Model how every metric of every call path depends on the parameters.

    \b
    Example: quipu model heat --metric time --path '*sweep*' -o heat-models.json
    """
    from quipu.modeling import parallel
    from quipu.modeling.behaviour import behaviour
    from quipu.report.behaviour import change_rows, noise_facts, noise_rows, unrepeated
    from quipu.report.json_views import changes_json, models_json, noise_json
    from quipu.report.model_views import (
        largest_paths,
        metrics_of,
        model_facts,
        model_rows,
        oversubscription_notes,
    )
    from quipu.report.terminal import head, tables

    from ..load.measurements import load_both, ranks_of

    _expect_loops(at, loops)
    how, options = over_ranks_of(over_ranks), _options(selector)
    write = None if output is None else own_file(output, _is_models, "file of models", force, [experiment_path])
    with parallel.jobs(jobs) as workers:
        if workers is None:
            return
        analysis, experiment = load_both(experiment_path, how, options, split_names(metric))
        if loops:
            point = point_of("--at", at, analysis.parameters, ranks=ranks_of(analysis, experiment)) if at else None
            _show_loops(analysis, split_names(metric) or ["instructions"], path, top or _LOOPS, as_json, point)
            return
        names = metrics_of(analysis, split_names(metric))
        observed = behaviour(experiment, analysis, names) if experiment is not None else {}
    if noise and experiment is None:
        raise UsageError(f"{experiment_path} contains only models: give the measurements to --noise")
    is_long = len(analysis.tree) > _MANY and not (everything or path or as_json)
    largest = largest_paths(analysis, names[0], inclusive, path) if top or is_long else None
    chosen = None if largest is None else largest[: top or _SHOWN]
    placed, hidden = model_rows(analysis, names, path, inclusive, everything, observed, chosen)
    rows = [row for _, row in placed]
    if path is not None and not rows and not hidden:
        raise no_match_error(path)
    if write is not None:
        from quipu.modeling.document import to_document

        write(json_text(to_document(analysis), indent=1) + "\n")
        say(f"wrote {output}")
    places = {(row.path, row.metric): node for node, row in placed}
    changes = [] if inclusive else change_rows(places, observed)
    noises = noise_rows(places, observed, experiment) if noise and experiment is not None else []
    if as_json:
        show_json(models_json(analysis.name, rows) | changes_json(changes) | (noise_json(noises) if noise else {}))
        return
    room = layout()
    facts = model_facts(analysis, inclusive)
    if options is not None:
        facts.append(("selector", f"{selector}, for comparison: time without effort, no alternatives"))
    if noise and experiment is not None:
        facts += noise_facts(experiment)
    notes = [*oversubscription_notes(analysis), *analysis.notes, *unrepeated(observed)]
    parts = [head(analysis.name, facts, notes, room), tables.model_table(rows, room)]
    parts += [tables.change_table(changes, room)] if changes else []
    show([*parts, tables.noise_table(noises, room)] if noises else parts)
    if not rows:
        say(
            "--metric selects no model; quipu show lists the metrics"
            if metric
            else "the experiment has no models: all values are 0 or unknown"
        )
    _say_left_out(hidden, 0 if largest is None else len(largest) - len(chosen or []))


def _expect_loops(at: list[str], loops: bool) -> None:
    """Raise UsageError if --at is given without --loops."""
    if at and not loops:
        raise UsageError("--at belongs to --loops; quipu predict shows the values of call paths at a point")


def _show_loops(
    analysis: Analysis,
    names: Sequence[str],
    path: str | None,
    top: int,
    as_json: bool,
    point: dict[str, float] | None,
) -> None:
    from quipu.report.json_views import loops_json
    from quipu.report.loop_views import loop_rows
    from quipu.report.model_views import matching_paths, model_facts
    from quipu.report.terminal import head, tables
    from quipu.report.text import point_text

    if len(names) > 1:
        raise UsageError("--loops shows one metric: give one to --metric")
    chosen = None if path is None else matching_paths(analysis, path)
    if path is not None and not chosen:
        raise no_match_error(path)
    rows = loop_rows(analysis, names[0], chosen, point)
    if not rows:
        raise UsageError(
            f"--loops: the measurements contain no {names[0]} of loops; compile with the wrappers, measure "
            "three points or more, and choose one of blocks, instructions, flops, loads, stores and their bytes"
        )
    if as_json:
        show_json(loops_json(analysis.name, names[0], rows, point))
        return
    room = layout()
    facts = model_facts(analysis, False)
    if point is not None:
        facts.append(("point", point_text(list(point), point.values())))
    table = tables.loop_table(rows[:top], names[0], room, point is not None)
    show([head(analysis.name, facts, [], room), table])
    if len(rows) > top:
        say(f"{counted(len(rows) - top, 'further loop is', 'further loops are')} not shown (--top)")


def _say_left_out(hidden: int, further: int) -> None:
    """Print how many models (`hidden`: they are 0 or could not be made) and further call paths are not shown."""
    if hidden:
        what = counted(hidden, "model that is 0 or could not be made is", "models that are 0 or could not be made are")
        say(f"{what} not shown (--all shows them)")
    if further > 0:
        say(f"{counted(further, 'further call path is', 'further call paths are')} not shown (--top N, --all)")


def _is_models(old: str) -> bool:
    from quipu.modeling.document import FORMAT

    return f'"{FORMAT}"' in old[:400]


def _options(selector: str) -> Options | None:
    """Return the options of modeling for the value of --selector; None for the default. Raises UsageError."""
    from quipu.modeling.pmnf.options import SELECTORS, Options

    for known in SELECTORS:
        if selector == known:
            return None if known == "evidence" else Options(selector=known)
    raise UsageError(f"--selector {selector!r}: choose one of {', '.join(SELECTORS)}")
