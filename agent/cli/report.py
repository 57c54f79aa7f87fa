# SPDX-License-Identifier: Apache-2.0
"""`quipu report`: write an experiment and its models as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .options import OVER_RANKS_OF_SUMS, over_ranks_of, point_of
from .output import own_file, say, show_json

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.experiment import Experiment
    from quipu.modeling.priors.slowdown import Slowdown
    from quipu.report.kernel_views import KernelPanel
    from quipu.report.refinement_views import RefinementPanel
    from quipu.report.views import Over

    from ..archive.run import CommunicationMatrix
    from ..merge.experiment import StoredRun


def command(
    *,
    experiment: Path = typer.Argument(..., metavar="EXPERIMENT", help="An experiment: a folder, or a file of Extra-P."),
    output: Path = typer.Option(Path("report.html"), "--output", "-o", metavar="FILE", help="The HTML file to write."),
    at: list[str] = typer.Option(
        [],
        "--at",
        metavar="NAME=NUMBER,...",
        help="The initial point of ranking and diagnosis; the reader can change it in the report.",
    ),
    against: Path | None = typer.Option(
        None,
        "--against",
        metavar="B",
        help="An earlier run, experiment or baseline: the flame graph shows the differences.",
    ),
    kernels: bool = typer.Option(
        False, "--kernels", help="Also show what limits each kernel at the target of the diagnosis."
    ),
    machine: Path | None = typer.Option(
        None,
        "--machine",
        metavar="FILE",
        help="For --kernels: the machine of the measurements, as written by quipu machine.",
    ),
    refinement: Path | None = typer.Option(
        None, "--refinement", metavar="FOLDER", help="A folder of quipu refine: also show its iterations."
    ),
    over_ranks: str = OVER_RANKS_OF_SUMS,
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not a report."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON about the file."),
) -> None:
    """Write a report: call tree, models, plots, ranking and diagnosis in one HTML file that loads nothing else.

    \b
    Example: quipu report heat -o heat.html --at p=1024,n=1e6
             quipu report branch.runs --against main.runs -o branch.html
    \b
    For a folder of quipu refine, the report shows the last iteration and compares all iterations.
    """
    from quipu.modeling.behaviour import behaviour
    from quipu.modeling.priors.rank_parameters import rank_parameters
    from quipu.report.html import html_report, placed_models
    from quipu.report.json_views import document_json
    from quipu.report.model_views import outside_notes, oversubscription_notes
    from quipu.report.provenance import provenance
    from quipu.report.text import quality_fact

    from ..installation import quipu_version
    from ..load.kept_models import analyze_once
    from ..load.measurements import is_of_others, load, or_target
    from ..merge.experiment import find_runs
    from ..merge.rank_times import times_by_rank
    from .efficiencies import measured_view

    if machine is not None and not kernels:
        raise UsageError("--machine belongs to --kernels")
    sources = [experiment, against, machine]
    write = own_file(output, lambda old: 'id="quipu-data"' in old, "report", force, sources)
    over = over_ranks_of(over_ranks)
    steps = _refinement(refinement or experiment) if refinement or (experiment / "refinement.json").is_file() else None
    if steps is not None and refinement is None:
        experiment = experiment / f"iteration-{steps.rows[-1].number}"
    data = load(experiment, over)
    before: Experiment | None = None
    notes: list[str] = []
    if against is not None:
        before, data, notes = _compared(against, data, experiment, over)
    target = point_of("--at", or_target(at, experiment), data.parameters, partial=True, ranks=rank_parameters(data))
    if is_of_others(experiment):
        runs: list[StoredRun] = []
        facts = [("read from", str(experiment))]
    else:
        runs = find_runs(experiment)
        facts = [*quality_fact(data.quality), *provenance([run.metadata for run in runs])]
    models = analyze_once(data)
    page = html_report(
        data,
        placed_models(models),
        facts=facts,
        notes=[*oversubscription_notes(models), *outside_notes(models, data), *notes],
        target=target,
        observed=behaviour(data, models),
        slow=_slowdowns(data, models) if "time" in data.values and data.parameters else None,
        kernels=_kernels(experiment, data, models, target, machine) if kernels else None,
        refinement=steps,
        against=before,
        communication=_communication(runs, data.parameters),
        ranks=times_by_rank(runs, data),
        efficiency=measured_view(data, runs),
        subtitle=_subtitle(data),
        footer=f"Quipu {quipu_version()}. Values of ranks: {over}.",
    )
    write(page)
    if as_json:
        show_json(document_json("report", data.name, file=str(output), bytes=len(page.encode())))
    else:
        say(f"wrote {output}")


def _slowdowns(data: Experiment, models: Analysis) -> list[Slowdown]:
    """Return the slowdowns in the runs that contain times. Their call paths are indices in the tree of all runs."""
    from quipu.modeling.models import of_time
    from quipu.modeling.priors.slowdown import slowdowns

    timed, of_these = of_time(data, models)
    found = slowdowns(timed, of_these.models("time"))
    return found if data.timed is None else [replace(one, path=int(data.timed.paths[one.path])) for one in found]


def _subtitle(data: Experiment) -> str:
    """Return the subtitle of the report: the varied parameters, or the only configuration."""
    from quipu.report.text import point_text

    if len(data.points) == 1:
        return f"One configuration: {point_text(data.parameters, data.points[0])}"
    return f"How {data.name} scales with {', '.join(data.parameters)}"


def _communication(
    runs: Sequence[StoredRun], parameters: Sequence[str]
) -> dict[tuple[float, ...], tuple[CommunicationMatrix, int]]:
    """Return, for each point, the communication matrix and number of ranks of the first complete run with a matrix.

    One run is enough, because all repetitions have the same matrix.
    """
    from ..archive.communication_table import read_communication

    found: dict[tuple[float, ...], tuple[CommunicationMatrix, int]] = {}
    for run in runs:
        metadata = run.metadata
        point = tuple(float(metadata.parameters.get(name, 0.0)) for name in parameters)
        if metadata.complete and point not in found and (matrix := read_communication(run.path)) is not None:
            found[point] = matrix, metadata.ranks
    return found


def _compared(against: Path, data: Experiment, source: Path, over: Over) -> tuple[Experiment, Experiment, list[str]]:
    """Return the earlier experiment and `data`, with common call paths and configurations, and notes.

    against: path of the earlier experiment. source: path of `data`.
    """
    from ..compare.sides import Side, paired
    from ..load.measurements import load_side

    pair = paired(load_side(against, over), Side(str(source), data))
    return replace(pair.before, name=str(against)), pair.after, [f"compared with {against}", *pair.notes]


def _refinement(folder: Path) -> RefinementPanel:
    """Return the iterations of a refinement, with the numbers of regions that each iteration added and removed."""
    from quipu.report.refinement_views import RefinementPanel, RefinementRow

    from ..campaign.refinement import filter_names, read_refinement

    iterations, budget = read_refinement(folder)
    rows = []
    before: frozenset[str] | None = None
    for one in iterations:
        names = filter_names(folder, one.number)
        added = None if names is None or before is None else len(names - before)
        dropped = None if names is None or before is None else len(before - names)
        shares = one.overhead, one.start_and_end, one.predicted, one.coverage
        within = None if budget is None else one.within(budget)
        counts = one.number, one.marked, one.executed, added, dropped
        rows.append(RefinementRow(*counts, *shares, within, one.seconds, one.error))
        before = names
    return RefinementPanel(folder.absolute().name, budget, tuple(rows))


def _kernels(
    source: Path, data: Experiment, analysis: Analysis, target: Mapping[str, float], machine: Path | None
) -> KernelPanel:
    """Return what limits each kernel at the point of the diagnosis.

    machine: file of the machine of the measurements; None: unknown. Raises ModelingError if data are missing.
    """
    from quipu.modeling.diagnosis import scale_of
    from quipu.modeling.kernels.model import model_program
    from quipu.modeling.kernels.roofline import roofline
    from quipu.report.kernel_views import kernel_panel

    from ..load.measurements import read_machine
    from .kernels import clock_of_runs

    here = None if machine is None else read_machine(machine)
    model = model_program(data, here, clock_of_runs(source), analysis=analysis)
    point = dict(zip(data.parameters, scale_of(data.of_time, target), strict=True))
    return kernel_panel(model, model.at(point), None if here is None else roofline(model, here, point))
