# SPDX-License-Identifier: Apache-2.0
"""`quipu kernels`: predict the computation, memory and communication time of each kernel, and what limits it."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .options import OVER_RANKS_OPTION, over_ranks_of, point_of
from .output import layout, say, show, show_json

_ADVICE = 5


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment of at least 3 configurations."),
    at: list[str] = typer.Option([], "--at", metavar="NAME=NUMBER,...", help="The point, such as p=1024,D=1e6."),
    machine: Path = typer.Option(
        None,
        "--machine",
        metavar="FILE",
        help="The machine of the measurements, as written by quipu machine: latencies and clock frequency.",
    ),
    on: Path = typer.Option(None, "--on", metavar="FILE", help="Predict for this machine instead; needs --machine."),
    processes: str = typer.Option(
        None, "--processes", metavar="NAME", help="The parameter that is the number of ranks."
    ),
    size: str = typer.Option(
        None,
        "--size",
        metavar="NAME",
        help="The parameter that is the problem size of all ranks together. [default: D]",
    ),
    frequency: str = typer.Option(
        None,
        "--frequency",
        metavar="NAME",
        help="The parameter that is the clock frequency of the cores (Hz), if there is one.",
    ),
    share: float = typer.Option(
        0.05, "--share", metavar="X", help="Smallest share of the time of a function that is a kernel."
    ),
    over_ranks: str = OVER_RANKS_OPTION,
    everything: bool = typer.Option(False, "--all", help="Also show kernels with almost no time."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Split the predicted time of each kernel into computation, memory and communication, and show what limits it.

    \b
    Example: quipu kernels heat --at p=1024 --machine here.json
    with     quipu machine -o here.json
    """
    from quipu.modeling.kernels.model import model_program
    from quipu.modeling.kernels.other_machine import moved
    from quipu.modeling.priors.rank_parameters import rank_parameters
    from quipu.report.kernel_views import kernel_facts, kernel_notes, kernel_rows, kernels_json, shown
    from quipu.report.terminal import head
    from quipu.report.terminal.kernels import advice_lines, kernel_table
    from quipu.report.text import quality_fact

    from ..load.kept_models import analyze_once
    from ..load.measurements import load, or_target, read_machine

    if not 0 < share < 1:
        raise UsageError(f"--share {share:g}: give a part of the time between 0 and 1")
    if on is not None and machine is None:
        raise UsageError("--on needs --machine: the description of the measured machine")
    here = read_machine(machine) if machine is not None else None
    whole = load(experiment, over_ranks_of(over_ranks))
    measured = whole.of_time
    for option, name in (("--processes", processes), ("--size", size), ("--frequency", frequency)):
        if name is not None and name not in measured.parameters:
            known = ", ".join(measured.parameters) or "none"
            raise UsageError(f"{option} {name!r}: no parameter of this experiment; it has: {known}")
    at, ranks = or_target(at, experiment), {processes} if processes else rank_parameters(measured)
    point = point_of("--at", at, measured.parameters, ranks=ranks)
    clock = clock_of_runs(experiment)
    model = model_program(whole, here, clock, processes, size, share, frequency, analyze_once(whole))
    if on is not None and here is not None:
        model = moved(model, here, read_machine(on))
    prediction = model.at(point)
    if as_json:
        found = None
        if here is not None:
            from quipu.modeling.kernels.roofline import roofline

            found = roofline(model, here if on is None else read_machine(on), point)
        show_json(kernels_json(model, prediction, found))
        return
    room = layout()
    rows = kernel_rows(model, prediction)
    visible = shown(rows, everything)
    notes = kernel_notes(model, point)
    show(
        [
            head(model.name, [*quality_fact(measured.quality), *kernel_facts(model, prediction)], notes, room),
            kernel_table(visible, room),
            advice_lines(visible, _ADVICE, room),
        ]
    )
    if len(visible) < len(rows):
        say(f"{len(rows) - len(visible)} kernels with less than 0.05% of the time are not shown (--all shows them)")


def clock_of_runs(experiment: Path) -> float | None:
    """Return the clock frequency of the complete runs (Hz, see `clock_of`); None if unknown, or for other tools."""
    from ..load.measurements import is_of_others
    from ..merge.counters import clock_of
    from ..merge.experiment import find_runs

    if is_of_others(experiment):
        return None
    return clock_of(run.metadata for run in find_runs(experiment) if run.metadata.complete)
