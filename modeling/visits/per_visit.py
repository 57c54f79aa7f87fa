"""Counts that depend on data, for each of visits that do not.

Blocks of a matrix that go around a process grid, levels of a tree of ranks: how often a function is visited is an exact
function of the parameters, and what it finds in the data at each visit is not. Inexact counts have few functions to be
sums of, and none of a process grid; so their model is that of the counts for each visit times the exact one of the
visits, where that is as short and much likelier.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..experiment import Experiment
from ..pmnf.criterion.one_process import reproduces
from ..pmnf.forms.unexplained import missed
from ..pmnf.model import Model
from ..pmnf.modeler import NoModel, Options, fit_models
from .through_visits import Sum, through

Models = dict[str, list[Model | NoModel]]
# What a model misses counts by, relatively, from which on another one is sought.
_LEAST = 0.02
# By how much the other one must be likelier, 2 log likelihood: very strong evidence (Kass and Raftery, Bayes factors,
# Journal of the American Statistical Association 90, 1995).
_STRONG = 10.0


def per_exact_visit(experiment: Experiment, models: Models, options: Options) -> None:
    """Put models of counts for each visit, times the visits, in place of inexact ones that miss more.

    models: by metric one per call path, visits among them, which come first: other counts may be for each of these.
    """
    effort = [name for name in models if name != "visits" and experiment.metrics[name].is_effort]
    for name in ("visits", *effort):
        carriers = _carriers(experiment, models, name)
        _model(experiment, models, name, carriers, options)


def _carriers(experiment: Experiment, models: Models, name: str) -> dict[int, int]:
    """Return the call paths that a metric misses by much, with the nearest of themselves and their callers whose visits
    are exact and change.
    """
    tree, visits = experiment.tree, models["visits"]
    found = {}
    for path, model in enumerate(models[name]):
        if not isinstance(model, Model) or reproduces(model) or not missed(model) > _LEAST:
            continue
        chain = tree.ancestry(path)[: -1 if name == "visits" else None]
        for carrier in reversed(chain):
            own = visits[carrier]
            if isinstance(own, Model) and own.terms and reproduces(own):
                found[path] = carrier
                break
    return found


def _model(experiment: Experiment, models: Models, name: str, carriers: Mapping[int, int], options: Options) -> None:
    """Put models of a metric through the visits of `carriers`, by call path, where these are better."""
    if not carriers:
        return
    values, visits = experiment.values[name][list(carriers)], experiment.values["visits"][list(carriers.values())]
    ratios = np.where(visits > 0, values / np.where(visits > 0, visits, 1.0), np.nan)
    once = fit_models(experiment.points, ratios, experiment.metrics[name], experiment.parameters, options)
    for (path, carrier), model in zip(carriers.items(), once, strict=True):
        before, times = models[name][path], models["visits"][carrier]
        if not isinstance(model, Model) or not isinstance(before, Model) or not isinstance(times, Model):
            continue
        executed = None if experiment.executed is None else experiment.executed[path]
        each = Sum((0.0, ()), (times.constant, times.terms))
        found = through(each, model, before, experiment.points, experiment.values[name][path], executed)
        if _width(model) <= _width(before) and _evidence(found, before) > _STRONG:
            models[name][path] = found


def _width(model: Model) -> int:
    return len(model.terms) + (model.constant != 0.0)


def _evidence(model: Model, former: Model) -> float:
    """Return by how much a model of counts is likelier than the former one, 2 log likelihood."""
    points = model.quality.points if model.quality is not None else 0
    return 2.0 * points * math.log(missed(former) / max(missed(model), 1e-300))
