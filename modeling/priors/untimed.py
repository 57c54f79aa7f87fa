# SPDX-License-Identifier: Apache-2.0
"""Add the effort of functions without a time to the call path whose time contains theirs.

A function that the compiler inlines has counters. Only inlined functions with enough work have hooks that measure time.
The time of a call path therefore belongs to its effort and the effort of all untimed functions below it, down to
functions with a separate time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import BETWEEN, CallTree, Experiment, FloatArray, Metric, RegionKind
from ..pmnf.changes.ranges import fit_models
from ..pmnf.criterion.one_process import reproduces
from ..pmnf.model import Model, add
from ..pmnf.options import DEFAULT, NoModel, Options

# Counts that belong to the call path of the operation, and not to the work of its caller.
OF_CALLS = frozenset(("visits", "comm_size"))
OF_CALLS |= {f"{what}_{way}" for what in ("bytes", "messages") for way in ("sent", "received")}


def timed_owners(tree: CallTree, times: FloatArray, visits: FloatArray | None = None) -> NDArray[np.int64]:
    """Return for each call path the call path whose time contains its time, (N,).

    This is the nearest call path with a time, from the call path itself upwards. times, visits: (N, ...), all 0 or NaN
    if a call path has none. MPI operations own their time, and so do call paths without a timed caller. To limit the
    overhead, a call path may lose its time to its caller during a run. If it was visited without a time in any
    configuration, it counts as untimed in all.
    """
    has = np.nan_to_num(times).reshape(len(tree), -1) != 0.0
    timed = has.any(axis=1)
    if visits is not None:
        timed &= ~(_visited(visits) & ~has).reshape(len(tree), -1).any(axis=1)
    is_mpi = np.array([region.kind is RegionKind.MPI for region in tree.regions], dtype=bool)[tree.region]
    owners = np.arange(len(tree))
    for path in np.flatnonzero(~timed & ~is_mpi & (tree.parent >= 0)).tolist():
        above = int(owners[tree.parent[path]])
        if has[above].any():
            owners[path] = above
    return owners


def _visited(visits: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.nan_to_num(visits) > 0, dtype=bool).reshape(len(visits), -1)


def with_times_at_callers(experiment: Experiment) -> Experiment:
    """Return the experiment with times at call paths that are timed in all runs; other times move to the callers."""
    times, visits = experiment.values.get("time"), experiment.values.get("visits")
    if times is None or visits is None or times.shape != visits.shape:
        return experiment
    owners = timed_owners(experiment.tree, times, visits)
    timed = np.nan_to_num(times).any(axis=(1, 2))
    moved = np.flatnonzero((owners != np.arange(len(owners))) & timed)
    if not moved.size:
        return experiment
    values = {
        name: _at(owners, moved, own) if _is_cost_that_adds_up(experiment.metrics[name]) else own
        for name, own in experiment.values.items()
    }
    return replace(experiment, values=values)


def with_untimed(experiment: Experiment) -> Experiment:
    """Return the experiment with effort moved to the call path that contains its time; unchanged without times."""
    times = experiment.values.get("time")
    if times is None:
        return experiment
    owners = timed_owners(experiment.tree, times)
    moved = np.flatnonzero(owners != np.arange(len(owners)))
    if not moved.size:
        return experiment

    def at_owners(counts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        return {name: _at(owners, moved, own) if _is_work(experiment, name) else own for name, own in counts.items()}

    return replace(experiment, values=at_owners(experiment.values), excess=at_owners(experiment.excess))


def models_with_untimed(
    experiment: Experiment, whole: Experiment, effort: Mapping[str, list[Model | NoModel]], options: Options = DEFAULT
) -> dict[str, list[Model | NoModel]]:
    """Return the models of effort of a `whole` experiment (`with_untimed`), from the models `effort` of the experiment.

    If all models of a sum are exact, the result is the sum of the models. Otherwise, the sum of the counts is modeled.
    """
    result = {name: list(models) for name, models in effort.items()}
    if whole is experiment:
        return result
    owners = timed_owners(experiment.tree, experiment.values["time"])
    for name in effort:
        before, values = experiment.values[name], whole.values[name]
        if values is before:
            continue
        changed = np.flatnonzero([not np.array_equal(a, b, True) for a, b in zip(before, values, strict=True)])
        parts: dict[int, list[Model | NoModel]] = {
            path: [effort[name][part] for part in np.flatnonzero(owners == path).tolist()] for path in changed.tolist()
        }
        again = []
        for path, own in parts.items():
            models = _exact(own)
            if models is None:
                again.append(path)
            else:
                result[name][path] = add(models)
        if again:
            executed = None if whole.executed is None else whole.executed[again]
            metric = whole.metric(name)
            found = fit_models(whole.points, values[again], metric, whole.parameters, options, executed)
            for path, model in zip(again, found, strict=True):
                result[name][path] = model
    return result


def _exact(parts: Sequence[Model | NoModel]) -> list[Model] | None:
    """Return the models if all are exact at all configurations; else None."""
    models = [part for part in parts if isinstance(part, Model)]
    nothing = [not model.terms and not model.constant for model in models]
    exact = all((none or reproduces(model)) and not model.notes for model, none in zip(models, nothing, strict=True))
    return models if exact and len(models) == len(parts) else None


def _is_cost_that_adds_up(metric: Metric) -> bool:
    return not metric.is_effort and metric.over_locations == "sum"


def _is_work(experiment: Experiment, name: str) -> bool:
    return name == BETWEEN or (experiment.metric(name).is_effort and name not in OF_CALLS)


def _at(owners: NDArray[np.int64], moved: NDArray[np.int64], counts: FloatArray) -> FloatArray:
    """Return counts (N, C, R) added to the counts of their owners; 0 at their former place."""
    result = counts.copy()
    np.add.at(result, owners[moved], np.nan_to_num(counts[moved]))
    result[moved] = np.where(np.isnan(counts[moved]), np.nan, 0.0)
    return result
