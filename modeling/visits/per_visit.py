# SPDX-License-Identifier: Apache-2.0
"""Model counts as the count per visit times the visits, if this is better than a function of the count alone.

First case: exact visits. Blocks of a matrix go around a process grid, or messages go up a tree of ranks: the number of
visits is an exact function of the parameters, but the work of a visit depends on the data. A direct model of inexact
counts has few terms, and no functions of process grids. The product of the model per visit and the exact model of the
visits replaces the direct model if it has no more terms and a much higher likelihood.

Second case: visits that scatter, such as iterations to a tolerance. If the count per visit scatters much less than the
visits, the model is again the product. A direct function of the counts would follow the scatter of the visits.
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
# Relative residual of a model above which a product is tried.
_LEAST = 0.02
# Necessary improvement of 2 log likelihood: very strong evidence (Kass and Raftery, Bayes factors,
# Journal of the American Statistical Association 90, 1995).
_STRONG = 10.0
# Largest residual of the counts per visit, as a share of the residual of the visits (second case).
_TIGHT = 0.25
# Largest number of terms of counts per visit, with the constant: more terms would follow the scatter.
_MOST_TERMS = 3


def per_exact_visit(experiment: Experiment, models: Models, options: Options) -> None:
    """Replace inexact models by models of the count per visit times exact models of visits, where these are better.

    Replaces models of visits first, because models of other counts use them. models: one per call path, by metric,
    with visits.
    """
    effort = [name for name in models if name != "visits" and experiment.metrics[name].is_effort]
    for names in (["visits"], effort):
        carriers = {name: _carriers(experiment, models, name) for name in names}
        for name, path, each, before, times in _each_visit(experiment, models, carriers, options):
            found = _through(experiment, name, path, Sum((0.0, ()), (times.constant, times.terms)), each, before)
            if _width(each) <= _width(before) and _evidence(found, before) > _STRONG:
                models[name][path] = found


def _carriers(experiment: Experiment, models: Models, name: str) -> dict[int, int]:
    """Return the call paths with a large residual of a metric, and the nearest call path with exact visits that vary.

    The nearest call path is the call path itself or one of its callers.
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
    """Yield metric, call path, model of the count per visit, model of the count, and model of the visits.

    carriers: by metric and call path, the call path whose visits divide the count.
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
    """Replace models by models of the count per visit times the model of the visits, where the visits scatter most.

    The residual of the replaced model may be small, because with few values of a parameter an additional term is not
    recognized as superfluous. former: the models before any was replaced by a function of visits; a model that differs
    from its former one is not replaced again.
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
    """Return whether there is a model, and its residual is large."""
    return isinstance(model, Model) and not reproduces(model) and missed(model) > _LEAST


def _width(model: Model) -> int:
    return len(model.terms) + (model.constant != 0.0)


def _evidence(model: Model, former: Model) -> float:
    """Return the difference of 2 log likelihood between a model of counts and the former model."""
    points = model.quality.points if model.quality is not None else 0
    return 2.0 * points * math.log(missed(former) / max(missed(model), 1e-300))
