# SPDX-License-Identifier: Apache-2.0
"""What the imbalance of effort over the ranks says of waiting: the others wait for the rank that has the most to do.

Effort of all ranks is counted. What the busiest rank counts beyond the mean, times the seconds that a block takes, is
what ranks wait on average where the next operation synchronizes them. It has no noise, and its growth is that of the
data and of the decomposition, which need not be that of the computation: a largest bucket grows, relative to the
others, with their number.
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

# Below this part of all computation, somewhere, no rank has more to do than the others.
_LEAST_PART = 0.01
# A call path that is somewhere more than this part of the imbalance is worth a sum without it; no more than so many.
# benchmarks/selection_campaign.py
_NOTICEABLE, _MOST = 0.2, 4


@dataclass(frozen=True, eq=False)
class Imbalance:
    """The seconds that the busiest rank computes longer than the mean: a model, and what was counted (C,)."""

    model: Model
    counted: FloatArray


def imbalances(
    experiment: Experiment, models: Mapping[int, PathModel], options: Options = DEFAULT
) -> tuple[Imbalance, ...]:
    """Return the imbalance of computation, summed over call paths, and sums without one of them each.

    It is an upper bound where call paths have different busiest ranks; and for what one of them computes longer, ranks
    may have waited before, in another operation. models: of time by call path. Nothing if effort of single ranks is not
    known at all configurations, or is the same on all of them.
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
    """Return the sum of the imbalance of N call paths: models of their counts, parts (N, C) and seconds (N,) for each.

    Where no exact function gives it, it is by chance: that of the data, which call paths have in common. So these have
    one model together, and the doubt about that.
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
    """Return the models of counts (N, C, R), None where there is none, or a constant that is not above 0."""
    metric, points, parameters = experiment.metric(IMBALANCE), experiment.points, experiment.parameters
    return [
        model if isinstance(model, Model) and (model.terms or model.constant > 0.0) else None
        for model in fit_models(points, counts, metric, parameters, options)
    ]


def _first(values: FloatArray) -> FloatArray:
    """Return values (N, C, R) of the first repetition that has them, 0 where none has: effort is the same in all."""
    known = np.isfinite(values)
    first = np.take_along_axis(values, known.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.where(known.any(axis=2), first, 0.0), dtype=np.float64)
