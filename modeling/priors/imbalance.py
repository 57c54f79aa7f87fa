# SPDX-License-Identifier: Apache-2.0
"""Compute the waiting that imbalance of effort causes: all ranks wait for the rank with most work.

The effort of all ranks is counted. Ranks wait, on average, for (effort of the busiest rank - mean effort) × seconds per
block, at the next operation that synchronizes them. This waiting has no noise. Its growth depends on the data and on
the decomposition, and may differ from the growth of the computation. For example, the largest of several buckets grows,
relative to the others, with their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..experiment import IMBALANCE, Experiment, FloatArray, RegionKind
from ..pmnf.model import Model, add, alternatives_with
from ..pmnf.modeler import fit_models
from ..pmnf.options import DEFAULT, Options
from .path_model import PathModel

# Share of the computation; a smaller imbalance at all configurations is ignored.
_LEAST_PART = 0.01
# Share of the imbalance from which on a sum without a call path is tried, and the largest number of such sums. Source:
# benchmarks/selection_campaign.py
_NOTICEABLE, _MOST = 0.2, 4


@dataclass(frozen=True, eq=False)
class Imbalance:
    """Seconds that the busiest rank computes longer than the mean: a model, and the measured values (C,)."""

    model: Model
    counted: FloatArray


def imbalances(
    experiment: Experiment, models: Mapping[int, PathModel], options: Options = DEFAULT
) -> tuple[Imbalance, ...]:
    """Return the imbalance of computation, summed over call paths, and the sums without one call path each.

    The sum is an upper bound, for two reasons: call paths may have different busiest ranks, and ranks may have waited
    before, in another operation. models: of time by call path. Empty if the effort of single ranks is unknown at some
    configuration, or equal on all ranks.
    """
    excess = experiment.excess.get(IMBALANCE)
    if excess is None or IMBALANCE not in experiment.values or not np.isfinite(excess).any(axis=(0, 2)).all():
        return ()
    tree = experiment.tree
    most, counts = _first(excess), _first(experiment.values[IMBALANCE])
    paths, rates, whole = [], [], np.zeros(experiment.configurations)
    for path, entry in models.items():
        is_mpi = tree.region_of(path).kind is RegionKind.MPI
        if is_mpi or tree.start_and_end[path] or not isinstance(entry.model, Model):
            continue
        times = np.maximum(entry.model.evaluate(experiment.points), 0.0)
        whole += times
        if counts[path].any() and most[path].any():
            paths.append(path)
            rates.append(times[counts[path] > 0].sum() / counts[path].sum())
    if not paths:
        return ()
    seconds = np.array(rates)[:, None]
    parts = most[paths] * seconds
    wanted = np.flatnonzero((parts > _LEAST_PART * whole).any(axis=1))
    if not wanted.size:
        return ()
    excess, parts, seconds = excess[paths][wanted], parts[wanted], seconds[wanted, 0]
    shares = (parts / np.maximum(parts.sum(axis=0), 1e-300)).max(axis=1)
    apart = [row for row in np.argsort(-shares)[:_MOST].tolist() if shares[row] > _NOTICEABLE and wanted.size > 1]
    chosen = [np.arange(wanted.size), *(np.delete(np.arange(wanted.size), row) for row in apart)]
    models_of = _models(experiment, excess, options)
    found = [
        _summed(experiment, [models_of[row] for row in rows], parts[rows], seconds[rows], options)
        for rows in map(np.ndarray.tolist, chosen)
    ]
    return tuple(one for one in found if one is not None)


def _summed(
    experiment: Experiment,
    counts: Sequence[Model | None],
    parts: FloatArray,
    seconds: FloatArray,
    options: Options,
) -> Imbalance | None:
    """Return the summed imbalance of N call paths. models: of counts; parts (N, C) and seconds (N,) of each.

    If no exact function gives an imbalance, it depends on the data, which all call paths share. These call paths
    therefore get one common model, with its alternatives.
    """
    found = list(enumerate(counts))
    exact = [model.scaled(float(seconds[row])) for row, model in found if model and not model.covariance]
    by_chance = [row for row, model in found if model and model.covariance]
    used = parts[[row for row, model in found if model]].sum(axis=0)
    if not by_chance:
        return Imbalance(add(exact), used) if exact else None
    together = parts[by_chance].sum(axis=0)
    rate = float(together.sum() / (parts[by_chance] / seconds[by_chance, None]).sum())
    (model,) = _models(experiment, together[None, :, None] / rate, options)
    if model is None:
        return None
    model = model.scaled(rate)
    doubts = alternatives_with(model, add(exact))
    return Imbalance(replace(add([*exact, model]), alternatives=doubts), used)


def _models(experiment: Experiment, counts: FloatArray, options: Options) -> list[Model | None]:
    """Return the models of counts (N, C, R); None for no model, and for a constant that is not above 0."""
    metric, points, parameters = experiment.metric(IMBALANCE), experiment.points, experiment.parameters
    return [
        model if isinstance(model, Model) and (model.terms or model.constant > 0.0) else None
        for model in fit_models(points, counts, metric, parameters, options)
    ]


def _first(values: FloatArray) -> FloatArray:
    """Return values (N, C, R) of the first measured repetition, otherwise 0; effort is equal in all repetitions."""
    known = np.isfinite(values)
    first = np.take_along_axis(values, known.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.where(known.any(axis=2), first, 0.0), dtype=np.float64)
