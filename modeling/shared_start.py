# SPDX-License-Identifier: Apache-2.0
"""Share a different formula at x = 1 between counts of one call path, because they count the same loops.

The code decides what one process (or a tree with one leaf) does, and all counts follow the code. Counts that depend on
data scatter, so a few values of one count may suggest the wrong decision. For example, a sort of 16·p keys had
179·p·log2(p) + 1490·p instructions from 2 processes on, but 117·p·log2(p) + 452·log2(p) + 168 blocks from 1 process on,
which is 14 % too many at 512.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from .experiment import Experiment
from .pmnf.batch import of_another_formula
from .pmnf.calibration import LARGE_ERROR
from .pmnf.criterion.one_process import is_exact, turns
from .pmnf.data.preparation import without_one
from .pmnf.model import Model
from .pmnf.modeler import fit_counts
from .pmnf.options import NoModel, Options

Models = dict[str, list[Model | NoModel]]

# Least number of counts of a call path with a different formula at one value, and no fewer than counts without.
_LEAST = 2


def by_shared_start(experiment: Experiment, models: Models, options: Options) -> Models:
    """Return the models of metrics, with shared formulas.

    Inexact models of effort are replaced by models without x = 1 if the models of most counts exclude x = 1.
    """
    result = {metric: list(own) for metric, own in models.items()}
    for place, name in enumerate(experiment.parameters):
        others = without_one(experiment.points, place) if len(experiment.points) else None
        if others is None:
            continue
        paths = _left(experiment, result, name)
        metrics = list(paths)
        values = [experiment.values[metric][paths[metric]][:, others] for metric in metrics]
        executed = experiment.executed
        flags = None if executed is None else [executed[paths[metric]][:, others] for metric in metrics]
        points = experiment.points[others]
        again = fit_counts(points, values, experiment.parameters, options, flags)
        for metric, own, found in zip(metrics, values, again, strict=True):
            for path, counts, model in zip(paths[metric], own, found, strict=True):
                if _explains_as_well(model, result[metric][path], name, points, counts.mean(axis=1)):
                    assert isinstance(model, Model)
                    notes = dict.fromkeys((*model.notes, of_another_formula(name)))
                    result[metric][path] = replace(model, notes=tuple(notes))
    return result


def _left(experiment: Experiment, models: Models, name: str) -> dict[str, list[int]]:
    """Return, by metric, the call paths whose counts include x = 1 of a parameter although most other counts do not."""
    effort = [metric for metric in models if experiment.metrics[metric].is_effort]
    said, result = of_another_formula(name), defaultdict(list)
    for path in range(len(experiment.tree)):
        own = {metric: model for metric in effort if isinstance(model := models[metric][path], Model)}
        inexact = [metric for metric, model in own.items() if not is_exact(model) and model.depends_on(name)]
        apart = [metric for metric in inexact if said in own[metric].notes]
        rest = [metric for metric in inexact if metric not in apart]
        if len(apart) >= max(_LEAST, len(rest)):
            for metric in rest:
                if np.isfinite(experiment.values[metric][path]).all():
                    result[metric].append(path)
    return dict(result)


def _explains_as_well(
    model: Model | NoModel, former: Model | NoModel, name: str, points: np.ndarray, counts: np.ndarray
) -> bool:
    """Return whether a model without x = 1 explains the other counts about as well as the former one.

    counts: shape (C,); points: shape (C, m).
    """
    if not isinstance(model, Model) or not isinstance(former, Model):
        return False
    if model.quality is None or former.quality is None:
        return False
    near = model.quality.rms_relative <= max(2.0 * former.quality.rms_relative, LARGE_ERROR)
    return near and not turns(model, name, points, counts)
