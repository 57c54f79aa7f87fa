# SPDX-License-Identifier: Apache-2.0
"""Share steps between counts of one call path, because they count the same loops.

Blocks, loads and stores of a function are sums of the executions of its blocks. If some of them are exact sums with
steps, the others have the same functions. A few values of one count alone cannot exclude a coincidence.
"""

from __future__ import annotations

import numpy as np

from .experiment import Experiment
from .pmnf.criterion.one_process import is_exact
from .pmnf.forms.stepped import by_steps_of
from .pmnf.model import Model
from .pmnf.options import NoModel

Models = dict[str, list[Model | NoModel]]


def by_shared_steps(experiment: Experiment, models: Models) -> Models:
    """Return the models of metrics; models with shared steps replace inexact models of effort."""
    effort = [name for name in models if experiment.metrics[name].is_effort]
    result = {metric: list(own) for metric, own in models.items()}
    points = experiment.points
    varying = np.flatnonzero(np.ptp(points, axis=0) > 0.0) if len(points) else np.empty(0)
    for path in range(len(experiment.tree)) if varying.size == 1 else ():
        own = {name: model for name in effort if isinstance(model := models[name][path], Model)}
        exact = [name for name, model in own.items() if is_exact(model)]
        known = [own[name] for name in exact if _has_steps(own[name])]
        for name in own if known else ():
            values = experiment.values[name][path]
            if name in exact or not np.isfinite(values).all() or np.ptp(values, axis=1).any():
                continue
            found = by_steps_of(known, points, values[:, 0], own[name])
            result[name][path] = found or own[name]
    return result


def _has_steps(model: Model) -> bool:
    return any(factor.steps is not None for term in model.terms for factor in term.factors)
