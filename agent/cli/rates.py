# SPDX-License-Identifier: Apache-2.0
"""`quipu rates`: fit the seconds per unit of effort, for simulations that compute time as effort × rate."""

from __future__ import annotations

import datetime
import platform
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import MeasurementError, UsageError

from ..load.measurements import read_machine
from .output import is_document, json_text, layout, own_file, say, show, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from quipu.modeling.experiment import Experiment
    from quipu.modeling.rates import Rates

    from ..merge.experiment import StoredRun

_SHOWN = 10


def command(
    *,
    experiment: Path = typer.Argument(
        ..., metavar="EXPERIMENT", help="Runs of one rank (or of the smallest possible number), or a single run."
    ),
    output: Path = typer.Option(Path("quipu.rates"), "--output", "-o", metavar="FILE", help="The file to write."),
    machine: Path = typer.Option(
        None, "--machine", metavar="FILE", help="The machine of the measurements (quipu machine); needs --on."
    ),
    on: Path = typer.Option(
        None, "--on", metavar="FILE", help="Compute rates for this machine instead; needs --machine."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite a file that does not contain rates."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Fit the time of instructions, flops, loads, stores, bytes and MPI calls, per call path, to runs of one rank.

    Measure one rank on a machine like the simulated one, without other load, with a few problem sizes of a rank.
    `quipu run --compute effort --rates FILE` simulates with the result. If the program needs several ranks, measure
    the smallest possible number, with a processor for each rank. MPI calls have no rates then.

    \b
    Example: quipu rates one -o heat.rates
    with     quipu run --rep 5 --param n=32 -o one -- ./heat 32   (and other sizes)
    """
    from quipu.modeling.rate_fit import fit_rates
    from quipu.modeling.rates import FORMAT, moved, to_document
    from quipu.report.terminal import tables

    from ..machine.describe import processor
    from ..merge.experiment import find_runs, load_experiment

    if (on is None) != (machine is None):
        raise UsageError("--machine (the machine of the runs) and --on (the machine of the rates) go together")
    write = own_file(output, lambda old: is_document(old, FORMAT), "file of rates", force, [experiment, machine, on])
    runs = find_runs(experiment)
    for run in runs:
        if run.metadata.launcher.get("family") == "smpi":
            raise MeasurementError(f"{run.path}: is a simulation: rates are fitted to runs on a machine")
    measured = load_experiment(experiment).of_time
    used, several = _used(measured, runs)
    rates = replace(
        fit_rates(measured, used, several),
        machine={"host": platform.node(), "processor": processor()},
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    if machine is not None and on is not None:
        rates = moved(rates, read_machine(machine), read_machine(on))
    document = to_document(rates)
    text = json_text(document, indent=1) + "\n"
    write(text)
    if as_json:
        show_json(document)
    else:
        room = layout()
        shown = [tables.rates_table(rates, _SHOWN, room)]
        if rates.operations:
            shown.append(tables.operation_rates_table(rates, _SHOWN, room))
        show(shown)
    _conclude(rates, output)


def _used(measured: Experiment, runs: Sequence[StoredRun]) -> tuple[NDArray[np.bool_], bool]:
    """Return which configurations the fit uses, shape (configurations,), and whether they have several ranks.

    The fit uses the configurations with one rank. If there are none, it uses the configurations with a processor for
    each rank.
    """
    import numpy as np

    points = {tuple(point): number for number, point in enumerate(measured.points.tolist())}
    alone = np.zeros(measured.configurations, dtype=bool)
    for run in runs:
        if run.metadata.complete and run.metadata.ranks <= 1 and not run.metadata.counts_only:
            alone[points[tuple(float(run.metadata.parameters[name]) for name in measured.parameters)]] = True
    return (alone, False) if alone.any() else (measured.dedicated, True)


def _conclude(rates: Rates, output: Path) -> None:
    for note in rates.notes:
        say(note)
    if len(rates.points) == 1:
        say("only one configuration was measured: rates at other sizes may differ; measure more configurations")
    if len(rates.callpaths) > _SHOWN:
        say(f"{len(rates.callpaths) - _SHOWN} further call paths are not shown (--json lists them)")
    whole = sum(entry.share * entry.residual**2 for entry in rates.callpaths) ** 0.5
    say(f"wrote {output}: {len(rates.callpaths)} call paths, {whole:.1%} from measured time (root mean square)")
