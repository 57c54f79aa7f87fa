# SPDX-License-Identifier: Apache-2.0
"""`quipu refine`: select regions to instrument: build, run and analyze until the overhead is within the budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import names_in
from .output import layout, require_own, say, show, show_json, stdout_for_json, write_whole

if TYPE_CHECKING:
    from ..campaign.refinement import Refinement


def command(
    *,
    file: Path = typer.Argument(..., metavar="FILE.toml", help="A campaign file with a table [refine]."),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Also write the last selection to FILE."),
    compiler: str = typer.Option(
        "clang",
        "--compiler",
        metavar="NAME",
        autocompletion=names_in("quipu.report.formats.compiler_names", "COMPILERS"),
        help="Write the linker names of clang or gcc (for Score-P with gcc) to FILE.",
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only errors and the result."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Find what to instrument: build, run and analyze until the overhead is within the budget.

    The command first runs all points without instrumentation, and each point once with the default instrumentation.
    Each iteration builds the program with a selection of regions, runs all points, and models the measurements. After
    an interruption, repeat the command: complete steps are kept.

    \b
    Example: quipu refine heat.toml
    \b
        [experiment]
        build = "make clean && make heat"    # a line for sh; rebuild all files with the wrappers
        command = "mpirun -n {p} ./heat {n}"
        repetitions = 3
        [parameters]
        p = [1, 2, 4, 8]
        n = [100, 200, 400]
        [refine]
        at = {p = 64, n = 1000}
        overhead = 0.05
    """
    from quipu.modeling.errors import UsageError
    from quipu.report.formats import format_filter
    from quipu.report.formats.compiler_names import COMPILERS
    from quipu.report.terminal import tables

    from ..campaign.file import read_campaign
    from ..campaign.progress_lines import ProgressLines
    from ..campaign.refinement import refine
    from .filter import is_filter

    if compiler not in COMPILERS:
        raise UsageError(f"--compiler {compiler!r}: choose one of {', '.join(COMPILERS)}")
    if output is not None:  # checked now, because the runs may take hours
        require_own(output, is_filter, "filter file", None, [file])
    campaign = read_campaign(file)
    with stdout_for_json(as_json):
        result = refine(campaign, ProgressLines(errors_only=quiet or as_json))
    if output is not None:
        last = f"iteration {result.iterations[-1].number} of {campaign.name}: {len(result.names)} regions"
        write_whole(output, format_filter(result.names, [last], compiler))
    if as_json:
        show_json(_json(result))
    else:
        rows = [
            (one.number, one.marked, one.executed, (one.overhead, one.error), one.predicted, one.coverage, one.seconds)
            for one in result.iterations
        ]
        show([tables.refinement_table(rows, layout())])
        for line in _remarks(result):
            say(line)
        say(_conclusion(result))


def _remarks(result: Refinement) -> list[str]:
    """Return notes on the start and end of the recording, which the overhead does not contain, and on noise."""
    from quipu.report.text import percent, quantity

    last, found = result.iterations[-1], []
    if result.recording:
        found.append(
            f"the overhead does not contain the start and end of the recording, which every selection needs: "
            f"{quantity(result.recording, 's')} of each process, {percent(last.start_and_end)} of these runs"
        )
    if last.overhead < 0.0 and result.within is None:
        noise = "" if last.noise is None else f", and repetitions differ by {percent(last.noise)}"
        found.append(
            f"the overhead is too small to be measured by these runs: they took {percent(-last.overhead)} less time "
            f"than the runs without instrumentation{noise}; use larger points or more repetitions, on a machine with "
            "less load"
        )
    elif last.noise is not None and result.within is None:
        found.append(
            f"repetitions differ, so the overhead is between {percent(max(last.overhead - last.noise, 0.0))} and "
            f"{percent(last.overhead + last.noise)}, and the budget is in this range: use larger points or more "
            "repetitions, on a machine with less load"
        )
    return found


def _conclusion(result: Refinement) -> str:
    states = {
        True: "within the budget",
        False: "above the budget: raise it, or the number of iterations",
        None: "not known to be within the budget",
    }
    state = states[result.within]
    change = "stable" if result.stable else "not stable yet"
    return (
        f"{result.filter_file}: {len(result.names)} regions, {state}, {change}; the cycle took {result.seconds:.3g} s, "
        f"the runs without instrumentation {result.vanilla:.3g} s"
    )


def _json(result: Refinement) -> dict[str, object]:
    return {
        "format": "quipu-refinement",
        "schema": 1,
        "filter": str(result.filter_file),
        "regions": sorted(result.names),
        "within": result.within,
        "stable": result.stable,
        "recording_seconds": result.recording,
        "seconds": result.seconds,
        "vanilla_seconds": result.vanilla,
        "iterations": [{**vars(one), "error": one.error} for one in result.iterations],
    }
