# SPDX-License-Identifier: Apache-2.0
"""Counts of which what is for each visit is known better than their sum.

Blocks of a matrix that go around a process grid, levels of a tree of ranks: how often a function is visited is an exact
function of the parameters, and what it finds in the data at each visit is not. Inexact counts have few functions to be
sums of, and none of a process grid; so their model is that of the counts for each visit times the exact one of the
visits, where that is as short and much likelier.

Where both scatter, iterations to a tolerance over the points of a share with its edges, and what is for each visit does
so by far less, counts are as many as the visits: their own functions would follow the scatter of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ..experiment import Experiment
from ..pmnf.criterion.one_process import reproduces
from ..pmnf.forms.unexplained import missed
from ..pmnf.model import Model
from ..pmnf.modeler import fit_counts
from ..pmnf.options import NoModel, Options
from .through_visits import Sum, through

Models = dict[str, list[Model | NoModel]]
# What a model misses counts by, relatively, from which on another one is sought.
_LEAST = 0.02
# By how much the other one must be likelier, 2 log likelihood: very strong evidence (Kass and Raftery, Bayes factors,
# Journal of the American Statistical Association 90, 1995).
_STRONG = 10.0
# What counts for each visit are missed by at most, as part of what the visits are missed by, to be that many for each.
_TIGHT = 0.25
# Terms that counts for each visit have at most, the constant included: more follow what is left of the scatter.
_MOST_TERMS = 3


def per_exact_visit(experiment: Experiment, models: Models, options: Options) -> None:
    """Put models of counts for each visit, times the visits, in place of inexact ones that miss more.

    models: by metric one per call path, visits among them, which come first: other counts may be for each of these.
    """
    effort = [name for name in models if name != "visits" and experiment.metrics[name].is_effort]
    for names in (["visits"], effort):
        carriers = {name: _carriers(experiment, models, name) for name in names}
        for name, path, each, before, times in _each_visit(experiment, models, carriers, options):
            found = _through(experiment, name, path, Sum((0.0, ()), (times.constant, times.terms)), each, before)
            if _width(each) <= _width(before) and _evidence(found, before) > _STRONG:
                models[name][path] = found


def _carriers(experiment: Experiment, models: Models, name: str) -> dict[int, int]:
    """Return the call paths that a metric misses by much, with the nearest of themselves and their callers whose visits
    are exact and change.
    """
    tree, visits = experiment.tree, models["visits"]
    found = {}
    for path, model in enumerate(models[name]):
        if not _is_missed(model):
            continue
        chain = tree.ancestry(path)[: -1 if name == "visits" else None]
        for carrier in reversed(chain):
            own = visits[carrier]
            if isinstance(own, Model) and own.terms and reproduces(own):
                found[path] = carrier
                break
    return found


def _each_visit(
    experiment: Experiment, models: Models, carriers: Mapping[str, Mapping[int, int]], options: Options
) -> Iterator[tuple[str, int, Model, Model, Model]]:
    """Yield metrics and call paths, the models for each of the visits of `carriers`, of the metric, and of these
    visits.

    carriers: by metric, of call paths those whose visits count.
    """
    ratios = {}
    for name in (name for name, own in carriers.items() if own):
        counts, visits = (
            experiment.values[metric][list(paths)]
            for metric, paths in ((name, carriers[name]), ("visits", carriers[name].values()))
        )
        ratios[name] = np.where(visits > 0, counts / np.where(visits > 0, visits, 1.0), np.nan)
    found = fit_counts(experiment.points, list(ratios.values()), experiment.parameters, options)
    for name, once in zip(ratios, found, strict=True):
        for (path, carrier), each in zip(carriers[name].items(), once, strict=True):
            before, times = models[name][path], models["visits"][carrier]
            if isinstance(each, Model) and isinstance(before, Model) and isinstance(times, Model):
                yield name, path, each, before, times


def _through(experiment: Experiment, name: str, path: int, found: Sum, visits: Model, before: Model) -> Model:
    executed = None if experiment.executed is None else experiment.executed[path]
    return through(found, visits, before, experiment.points, experiment.values[name][path], executed)


def per_scattered_visit(experiment: Experiment, models: Models, former: Models, options: Options) -> None:
    """Put models of counts for each visit, times that of the visits, in place of others where the visits scatter most.

    Those may miss counts by little where few values of a parameter tell that a function is too many.
    former: the models before those by visits; what differs has one by visits already.
    """
    visits, carriers = models["visits"], {}
    for name in (name for name in models if name != "visits" and experiment.metrics[name].is_effort):
        carriers[name] = {
            path: path
            for path, own in enumerate(models[name])
            if own is former[name][path] and isinstance(own, Model) and not reproduces(own) and _is_missed(visits[path])
        }
    for name, path, each, before, times in _each_visit(experiment, models, carriers, options):
        if missed(each) <= _TIGHT * missed(times) and _width(each) <= _MOST_TERMS:
            found = Sum((0.0, ()), (each.constant, each.terms), tuple(each.alternatives), each.notes)
            models[name][path] = _through(experiment, name, path, found, times, before)


def _is_missed(model: Model | NoModel) -> bool:
    """Whether there is a model that does not reproduce the counts, and misses them by much."""
    return isinstance(model, Model) and not reproduces(model) and missed(model) > _LEAST


def _width(model: Model) -> int:
    return len(model.terms) + (model.constant != 0.0)


def _evidence(model: Model, former: Model) -> float:
    """Return by how much a model of counts is likelier than the former one, 2 log likelihood."""
    points = model.quality.points if model.quality is not None else 0
    return 2.0 * points * math.log(missed(former) / max(missed(model), 1e-300))
