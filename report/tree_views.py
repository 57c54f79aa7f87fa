# SPDX-License-Identifier: Apache-2.0
"""Views of runs and experiments: call trees, and rows of configurations."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import numpy as np
from quipu.modeling.errors import UsageError
from quipu.modeling.experiment import Experiment, FloatArray, Metric, with_all_repetitions
from quipu.modeling.measurement_quality import quality_line
from quipu.modeling.slowest_rank import SlowestRank

from .catalogue import LOADED_RUN, OVERSUBSCRIBED_RUN, SLOWEST_RANK
from .measured_run import CostlyPath, MeasuredRun, RankValues
from .measuring import measuring_facts, measuring_notes
from .node_use import node_use
from .sampling import counter_facts, function_lines
from .text import near, point_text, points_text, quality_fact, slowest_rank_text, values_text
from .views import REPETITIONS, ConfigurationRow, Over, RunView, Statistics, TreeView, imbalance, statistics


def run_view(run: MeasuredRun, reported: str = "") -> RunView:
    """Return the outcome of a run. reported: a message to the user; problems that it contains are left out."""
    metadata = run.metadata
    return RunView(
        name=near(run.path),
        ranks=metadata.ranks,
        call_paths=len(run.tree),
        seconds=float("nan") if metadata.seconds is None else metadata.seconds,
        node_use=tuple(node_use([metadata])),
        exit_code=metadata.exit_code or 0,
        partial=metadata.partial,
        problems=(
            *(problem for problem in metadata.problems if problem not in reported),
            *([OVERSUBSCRIBED_RUN(subject="this run")] if metadata.oversubscribed else []),
            *([LOADED_RUN(subject="this run")] if metadata.loaded and not metadata.oversubscribed else []),
        ),
    )


def run_tree_view(
    run: MeasuredRun, over: Over, costly: Sequence[CostlyPath] = (), slowest: SlowestRank | None = None
) -> TreeView:
    """Return the call tree of a run, from the values of single ranks if known, otherwise from statistics over ranks.

    over: how to combine ranks. costly: call paths whose time is mostly overhead, slowest: a rank that is much slower
    than the mean; both become notes.
    """
    if run.values is None:
        values = {name: _from_statistics(run, name, over).reshape(-1, 1) for name in run.metrics}
    else:
        values = {metric.name: per_rank(run.values, metric, len(run.tree)) for metric in run.metrics.values()}
    return TreeView(
        title=str(run.path),
        tree=run.tree,
        metrics=dict(run.metrics),
        values=values,
        samples="ranks",
        over=over,
        facts=run_facts(run, over),
        notes=(
            *run.metadata.problems,
            *([OVERSUBSCRIBED_RUN(subject="this run")] if run.metadata.oversubscribed else []),
            *([LOADED_RUN(subject="this run")] if run.metadata.loaded else []),
            *_slowest(tuple(run.metadata.parameters), slowest, over),
            *measuring_notes(run.tree, costly),
        ),
        spread=None if run.metadata.rank_columns else _spread(run, over),
        oversubscribed=run.metadata.oversubscribed,
    )


def _slowest(parameters: Sequence[str], slowest: SlowestRank | None, over: Over) -> list[str]:
    return [] if slowest is None else [SLOWEST_RANK(text=slowest_rank_text(parameters, slowest, over))]


def _spread(run: MeasuredRun, over: Over) -> dict[str, Statistics]:
    """Return the statistics over ranks, by metric, of an archive without values of single ranks."""
    ranks = np.full(len(run.tree), max(run.metadata.ranks, 2))
    return {
        name: Statistics(_from_statistics(run, name, over), of.min, of.mean, of.max, imbalance(of.mean, of.max, ranks))
        for name, of in run.statistics.items()
    }


def _from_statistics(run: MeasuredRun, name: str, over: Over) -> FloatArray:
    found = run.statistics[name]
    if run.metrics[name].over_locations == "max" or over == "max":
        return found.max
    return found.mean if over == "mean" else found.sum


def per_rank(values: RankValues, metric: Metric, paths: int) -> FloatArray:
    """Return a metric of each call path and rank, shape (call paths, ranks).

    The threads of a rank are combined by `metric.over_locations`. The value is 0 for a rank that does not execute a
    call path. paths: number of call paths.
    """
    ranks, column = np.unique(values.rank, return_inverse=True)
    dense = np.zeros((paths, ranks.size))
    combine = np.maximum if metric.over_locations == "max" else np.add
    combine.at(dense, (values.callpath, column), values.metrics[metric.name].astype(np.float64))
    return dense


def run_facts(run: MeasuredRun, over: Over) -> tuple[tuple[str, str], ...]:
    """Return (label, text) pairs for the head of views of a run."""
    metadata = run.metadata
    hosts = sorted({record.host for record in run.ranks if record.host})
    parameters = tuple(metadata.parameters)
    facts = [
        *([] if metadata.counts_only else quality_fact(quality_line([metadata.quality]))),
        ("command", shlex.join(metadata.command)),
        ("point", point_text(parameters, metadata.parameters.values())),
        ("run", f"repetition {metadata.repetition}, {metadata.started or 'date unknown'}"),
        ("ranks", f"{metadata.ranks} on {', '.join(hosts[:4]) or 'an unknown host'}{' …' if len(hosts) > 4 else ''}"),
        ("values", values_text(over, run.metrics)),
    ]
    if metadata.seconds is not None:
        facts.insert(-2, ("wall time", f"{metadata.seconds:.3f} s"))
    if metadata.counts_only:
        facts.append(("counts", "effort and communication only; no time was measured"))
    facts += measuring_facts(metadata.overhead, metadata.simulated_by_effort)
    facts += counter_facts(metadata.counters)
    facts += function_lines(metadata.counters)
    if metadata.exit_code:
        facts.append(("exit code", str(metadata.exit_code)))
    for name, value in metadata.environment_added.items():
        facts.append(("added", f"{name}={value}"))
    return tuple(facts)


def experiment_view(experiment: Experiment, at: Mapping[str, float]) -> TreeView:
    """Return the call tree of one configuration of an experiment, over its repetitions.

    at: values of some parameters, which select the configuration. If several configurations match, the last one with
    times is shown (without times: the last one). Raises UsageError if no configuration matches.
    """
    where = _configuration(experiment, at)
    values, largest = (
        {name: own for name, x in of.items() if (own := _samples(x[:, where])).size}
        for of in (experiment.values, experiment.largest)
    )
    oversubscribed = bool(experiment.shares_processors[where])
    counted = max((column.shape[1] for column in values.values()), default=0)
    repetitions = "1 repetition" if counted == 1 else f"median of {counted} repetitions"
    times = experiment.rank_times
    slowest = None if times is None else times.dominating(experiment.points)[where]
    facts = (
        *quality_fact(experiment.quality),
        ("experiment", _measured(experiment)),
        ("shown", f"{point_text(experiment.parameters, experiment.points[where])}, {repetitions}"),
        ("values", values_text(experiment.over_ranks, experiment.metrics)),
    )
    return TreeView(
        title=experiment.name,
        tree=experiment.tree,
        metrics={name: metric for name, metric in experiment.metrics.items() if name in values},
        values=values,
        largest=largest,
        samples=REPETITIONS,
        over="median",
        facts=facts,
        notes=(
            *experiment.notes,
            *([OVERSUBSCRIBED_RUN(subject="this configuration")] if oversubscribed else []),
            *([LOADED_RUN(subject="this configuration")] if experiment.disturbed[where] else []),
            *_slowest(experiment.parameters, slowest, experiment.over_ranks),
        ),
        oversubscribed=oversubscribed,
    )


def _samples(column: FloatArray) -> FloatArray:
    """Return the repetitions that have any value, shape (call paths, repetitions)."""
    return column[:, np.count_nonzero(~np.isnan(column), axis=0) > 0]


def _configuration(experiment: Experiment, at: Mapping[str, float]) -> int:
    if unknown := [name for name in at if name not in experiment.parameters]:
        known = ", ".join(experiment.parameters) or "none"
        raise UsageError(f"--at: no parameter {', '.join(unknown)} in this experiment; it has: {known}")
    fits = np.ones(experiment.configurations, dtype=bool)
    for column, name in enumerate(experiment.parameters):
        if name in at:
            fits &= experiment.points[:, column] == at[name]
    if not fits.any():
        raise UsageError(f"--at: this configuration was not measured; there are {_measured(experiment)}")
    timed = np.isfinite(experiment.values["time"]).any(axis=(0, 2)) if experiment.timed is not None else fits
    return int(np.flatnonzero(fits & timed if (fits & timed).any() else fits)[-1])


def _measured(experiment: Experiment) -> str:
    return points_text(experiment.parameters, experiment.points.tolist())


def configuration_rows(experiment: Experiment) -> list[ConfigurationRow]:
    """Return a row for each configuration, with its repetitions and the total of one metric.

    The metric is time; if no time was measured, the number of basic blocks, otherwise the first metric.
    """
    name = "time" if "time" in experiment.values else next(iter(sorted(experiment.values)), "")
    if not name:
        return []
    values = experiment.values[name]
    if name == "time" and not np.any(np.nan_to_num(values)) and "blocks" in experiment.values:
        name, values = "blocks", experiment.values["blocks"]
    totals = experiment.program(name)
    outside = np.nansum(with_all_repetitions(values)[experiment.tree.start_and_end], axis=0)
    measured = np.count_nonzero(~np.isnan(values), axis=0) > 0
    runs = experiment.measured_runs.sum(axis=1)
    rows = []
    for where, point in enumerate(experiment.points):
        known = totals[where][measured[where]]
        found = statistics(known.reshape(1, -1), "mean")
        spread = np.nan if known.size < 2 else 0.0
        if known.size > 1 and found.mean[0]:
            spread = float((found.max[0] - found.min[0]) / found.mean[0])
        start = float(outside[where][measured[where]].mean()) if known.size else 0.0
        place, unit = tuple(point.tolist()), experiment.metrics[name].unit
        shared, loaded = bool(experiment.shares_processors[where]), bool(experiment.disturbed[where])
        counts_only = not known.size
        number = int(runs[where] if counts_only else known.size)
        total = float(found.mean[0])
        rows.append(ConfigurationRow(place, number, total, unit, spread, start, shared, loaded, counts_only))
    return rows
