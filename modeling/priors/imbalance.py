"""What the imbalance of effort over the ranks says of waiting: the others wait for the rank that has the most to do.

Effort of all ranks is counted. What the busiest rank counts beyond the mean, times the seconds that a block takes, is
what ranks wait on average where the next operation synchronizes them. It has no noise, and its growth is that of the
data and of the decomposition, which need not be that of the computation: a largest bucket grows, relative to the
others, with their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..experiment import IMBALANCE, Experiment, FloatArray, RegionKind
from ..pmnf.model import Model, add
from ..pmnf.modeler import DEFAULT, Options, fit_models
from .path_model import PathModel

# Below this part of all computation, somewhere, no rank has more to do than the others.
_LEAST_PART = 0.01


@dataclass(frozen=True, eq=False)
class Imbalance:
    """The seconds that the busiest rank computes longer than the mean: a model, and what was counted (C,)."""

    model: Model
    counted: FloatArray


def imbalance(experiment: Experiment, models: Mapping[int, PathModel], options: Options = DEFAULT) -> Imbalance | None:
    """Return the imbalance of computation, summed over call paths.

    It is an upper bound where call paths have different busiest ranks. models: of time by call path. None if effort
    of single ranks is not known at all configurations, or is the same on all of them.
    """
    excess = experiment.excess.get(IMBALANCE)
    if excess is None or IMBALANCE not in experiment.values or not np.isfinite(excess).any(axis=(0, 2)).all():
        return None
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
        return None
    parts = most[paths] * np.array(rates)[:, None]
    wanted = [row for row, part in enumerate(parts) if (part > _LEAST_PART * whole).any()]
    if not wanted:
        return None
    metric, points = experiment.metric(IMBALANCE), experiment.points
    chosen = excess[[paths[row] for row in wanted]]
    found = fit_models(points, chosen, metric, experiment.parameters, options)
    scaled = [
        (row, model.scaled(float(rates[row])))
        for row, model in zip(wanted, found, strict=True)
        if isinstance(model, Model) and (model.terms or model.constant > 0.0)
    ]
    if not scaled:
        return None
    return Imbalance(add([model for _, model in scaled]), parts[[row for row, _ in scaled]].sum(axis=0))


def _first(values: FloatArray) -> FloatArray:
    """Return values (N, C, R) of the first repetition that has them, 0 where none has: effort is the same in all."""
    known = np.isfinite(values)
    first = np.take_along_axis(values, known.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.where(known.any(axis=2), first, 0.0), dtype=np.float64)
