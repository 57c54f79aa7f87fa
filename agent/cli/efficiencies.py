# SPDX-License-Identifier: Apache-2.0
"""Compute the efficiencies of an experiment, measured and predicted, for display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quipu.modeling.analysis import Analysis
from quipu.modeling.efficiency import RunTimes, Scaling, computation_factors, losses, parallel_factors, scalings
from quipu.modeling.efficiency.prediction import predicted_factors, predicted_work
from quipu.modeling.efficiency.scaling import amount, kind_of, reference_at, size_at, work_of
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.evaluation import Evaluation, evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray
from quipu.modeling.root_causes import RootCauses, root_causes
from quipu.modeling.run_times import EFFORTS
from quipu.report.efficiency_views import (
    EfficiencyColumn,
    EfficiencyView,
    efficiency_notes,
    reference_text,
)
from quipu.report.model_views import extrapolation_notes
from quipu.report.text import point_text

from ..load.kept_models import analyze_once
from ..load.measurements import is_of_others, load
from ..merge.efficiency_times import efficiency_times, slowest_ranks
from ..merge.experiment import StoredRun, find_runs

Place = tuple[tuple[str, float], ...]
_TIMES = ("time", "thread_time", "wait_time")


def efficiency_view(
    source: Path, target: Mapping[str, float] | None = None, scaling: str = "auto", ideal_network: Path | None = None
) -> EfficiencyView:
    """Return the measured efficiencies of an experiment or a run; with a target also the predicted efficiencies.

    - target: the point to predict, by parameter; None or empty: no prediction.
    - scaling: "strong", "weak" or "auto" (weak if the total work grows with the processors).
    - ideal_network: folder with runs of the same configurations, simulated without latency and with infinite bandwidth.
      They separate the loss by serialization from the loss by transfer.

    Raises FormatError for measurements of other tools, MeasurementError if no complete run contains times.
    """
    if is_of_others(source):
        raise FormatError(source, "has no times of ranks: efficiencies need run archives of quipu run")
    experiment, stored = load(source).of_time, find_runs(source)
    view = measured_view(experiment, stored, scaling, ideal_network)
    if view is None:
        raise MeasurementError(f"{source}: no complete run contains times; measure one without --counts")
    notes = [*experiment.notes, *view.notes]
    if not target:
        return replace(view, notes=tuple(notes))
    runs = [column.run for column in view.repetitions if column.run is not None]
    column, doubts = _predicted(experiment, stored, runs, target, scaling)
    return replace(view, columns=(*view.columns, column), notes=(*notes, *doubts))


def measured_view(
    experiment: Experiment, stored: Sequence[StoredRun], scaling: str = "auto", ideal_network: Path | None = None
) -> EfficiencyView | None:
    """Return the measured efficiencies of the runs of an experiment; None if no complete run contains times.

    For the arguments see `efficiency_view`.
    """
    runs = efficiency_times(stored, experiment.tree)
    if not runs:
        return None
    ideal = {} if ideal_network is None else _ideal(ideal_network, experiment.tree)
    chosen = _representatives(runs)
    found = dict(zip(map(_place, chosen), scalings(chosen, scaling), strict=True))
    columns = [_measured(run, found[_place(run)], ideal.get(_place(run))) for run in chosen]
    return EfficiencyView(
        experiment.name,
        experiment.tree,
        tuple(columns),
        tuple(_measured(run, found[_place(run)], ideal.get(_place(run))) for run in runs),
        losses(chosen[-1], found[_place(chosen[-1])]),
        root_causes(chosen[-1]),
        experiment.quality,
        tuple(efficiency_notes(columns)),
    )


def waiting_of_largest(source: Path, experiment: Experiment) -> tuple[RunTimes, RootCauses] | None:
    """Return a run and the causes of waiting in it: among the runs with the most ranks, the run with the median time.

    Returns None for measurements of other tools, without runs with times, or if the values of single ranks are unknown.
    """
    if is_of_others(source):
        return None
    stored = [run for run in find_runs(source) if run.metadata.complete and not run.metadata.counts_only]
    most = max((run.metadata.ranks for run in stored), default=0)
    runs = efficiency_times([run for run in stored if run.metadata.ranks == most], experiment.tree)
    if not runs:
        return None
    run = _representatives(runs)[-1]
    found = root_causes(run)
    return None if found is None else (run, found)


def _place(run: RunTimes) -> Place:
    return tuple(sorted((name, float(value)) for name, value in run.point.items()))


def _representatives(runs: Sequence[RunTimes]) -> list[RunTimes]:
    """Return, for each configuration, the run with the median elapsed time, in ascending order of processors."""
    alike: dict[Place, list[RunTimes]] = {}
    for run in runs:
        alike.setdefault(_place(run), []).append(run)
    median = [sorted(own, key=lambda run: float(run.elapsed.low[-1]))[(len(own) - 1) // 2] for own in alike.values()]
    return sorted(median, key=lambda run: (run.processors, tuple(run.point.values())))


def _ideal(folder: Path, tree: CallTree) -> dict[Place, FloatArray]:
    """Return, for each configuration, the elapsed seconds on an ideal network: of each call path, then the program."""
    runs = efficiency_times(find_runs(folder), tree)
    return {_place(run): run.elapsed.low for run in _representatives(runs)}


def _measured(run: RunTimes, scaling: Scaling, ideal: FloatArray | None) -> EfficiencyColumn:
    factors = parallel_factors(run, ideal)
    computation = computation_factors(work_of(run), work_of(scaling.reference), scaling.kind)
    return EfficiencyColumn(
        run.point,
        run.ranks,
        run.threads,
        float(run.elapsed.low[-1]),
        factors.joined(computation),
        scaling.kind,
        reference_text(scaling.reference) if scaling.kind != "none" else "",
        run,
    )


def _predicted(
    experiment: Experiment,
    stored: Sequence[StoredRun],
    runs: Sequence[RunTimes],
    target: Mapping[str, float],
    wanted: str,
) -> tuple[EfficiencyColumn, list[str]]:
    """Return the predicted efficiencies at a point, and notes if the point is beyond the measured range.

    runs: `efficiency_times` of the stored runs. target: the point. wanted: the kind of scaling. Raises MeasurementError
    if the values of single ranks are unknown.
    """
    slow = slowest_ranks(stored, runs, experiment)
    if slow is None:
        raise MeasurementError(
            f"{experiment.name}: predicted efficiencies need the values of single ranks, which the archives do not "
            "have: measure with quipu run --rank-columns N, for N ranks or more"
        )
    analysis, of_slowest = analyze_once(experiment), analyze_once(slow)
    metrics = [name for name in (*_TIMES, *EFFORTS) if name in analysis.exclusive]

    def models_at(point: Mapping[str, float], of: Analysis = analysis) -> dict[str, Evaluation]:
        return {name: evaluate(of, point, name) for name in metrics if name in of.exclusive}

    like, mean = runs[-1], models_at(target)
    ranks, threads = size_at(runs, target)
    work = predicted_work(like, mean, ranks, threads)
    reference = reference_at(runs, target)
    if isinstance(reference, RunTimes):
        before, place = work_of(reference), reference_text(reference)
    else:
        size = size_at(runs, reference)
        before = predicted_work(like, models_at(reference), *size)
        place = f"{point_text(tuple(reference), reference.values())} (predicted)"
    kind = kind_of(wanted, amount(work), amount(before), work.processors / before.processors)
    factors = predicted_factors(like, mean, models_at(target, of_slowest), threads)
    factors = factors.joined(computation_factors(work, before, kind))
    elapsed = float(mean["time"].total.value)
    column = EfficiencyColumn(target, ranks, threads, elapsed, factors, kind, place)
    return column, extrapolation_notes(analysis, target)
