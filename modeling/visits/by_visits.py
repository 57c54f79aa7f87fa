# SPDX-License-Identifier: Apache-2.0
"""Model counts as functions of visits, if no function of the parameters reproduces them.

Iterations to a tolerance, probes of a hash table and refined cells depend on the data. The number of visits of such a
function is no exact function of the parameters. The work of one visit often is. The number of visits of one function
per visit of another function often is, too.

The counts of such a call path are f + g·v. v: visits of the call path itself, of a callee, of its caller, or of an
earlier callee of its caller. f, g: functions of the parameters. The sum must reproduce every run. The model of the
counts inserts the inexact model of v. Therefore all effort of a loop has the same number of iterations. The product may
also have terms that the library lacks: n² cells in each of n² iterations are n⁴. The interval is the interval of v. If
several functions g reproduce the counts, as with few process grids, the interval contains all of them.

`per_visit` handles the opposite case: the visits are exact, and the work of a visit is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, Metric
from ..pmnf.calibration import (
    EXACT,
    VISITS_AGREE,
    VISITS_LEAST_FREE,
    VISITS_UNDECIDED_FREE,
)
from ..pmnf.changes.one_exception import but_for_one
from ..pmnf.criterion.exactness import exact_weights, rounding_of
from ..pmnf.criterion.one_process import is_exact, reproduces
from ..pmnf.fit.fitter import fit
from ..pmnf.model import Factor, Model, Term, collect
from ..pmnf.modeler import fit_counts, fit_models
from ..pmnf.options import NoModel, Options
from ..progress import steps
from .carriers import Carriers
from .per_visit import per_exact_visit, per_scattered_visit
from .sums import complexity, have_enough_runs, searches, terms_of_visits
from .through_visits import Sum, through

Models = dict[str, list[Model | NoModel]]
_Index = NDArray[np.int64]
# Models of counts per visit, by metric and values.
_Known = dict[tuple[str, bytes], Model | NoModel]


def by_visits(experiment: Experiment, models: Models, options: Options) -> Models:
    """Return the models of metrics, with inexact models of counts replaced by functions of visits where possible.

    models: one per call path, by metric. Returns them unchanged if they do not contain visits.
    """
    if "visits" not in models:
        return models
    result = {metric: list(own) for metric, own in models.items()}
    effort = [name for name in result if name != "visits" and experiment.metrics[name].is_effort]
    tree, visits = experiment.tree, result["visits"]
    exceptions = _without_exceptions(experiment, "visits", visits, options)
    for name in effort if exceptions else []:
        _without_exceptions(experiment, name, result[name], options, sorted(set(exceptions.values())))
    former = {name: list(own) for name, own in result.items()}
    known_models: _Known = {}
    inexact = [isinstance(model, Model) and not reproduces(model) for model in visits]
    known = Carriers.of(experiment, visits, inexact)
    # in this order, callers and earlier callees are modeled before a call path
    for path in steps("modeling visits", np.flatnonzero(inexact).tolist()):
        parent = int(tree.parent[path])
        siblings = tree.children[parent] if parent >= 0 else tree.roots
        carriers = [other for other in (parent, *siblings) if 0 <= other < path and inexact[other]]
        _explain(experiment, [_Unexplained(path, ["visits"], carriers)], known, result, options, known_models)
    unexplained = []
    for path in range(len(tree)):
        wanted = [
            name
            for name in effort
            if isinstance(own := result[name][path], Model)
            and (not reproduces(own) or (inexact[path] and _as_often(experiment, name, path)))
        ]
        near = (path, *tree.children[path], int(tree.parent[path]))
        unexplained.append(_Unexplained(path, wanted, [other for other in near if other >= 0 and inexact[other]]))
    _explain(experiment, unexplained, known, result, options, known_models, "modeling counts by visits")
    per_scattered_visit(experiment, result, former, options)
    per_exact_visit(experiment, result, options)
    return result


def _as_often(experiment: Experiment, name: str, path: int) -> bool:
    """Return whether the count per visit is constant: then the counts contain no more information than the visits."""
    values, visits = experiment.values[name][path], experiment.values["visits"][path]
    known = ~np.isnan(values) & (visits > 0)
    ratios = values[known] / visits[known]
    return bool(ratios.size and ratios.min() > 0.0 and np.ptp(ratios) <= VISITS_AGREE * ratios.max())


def _without_exceptions(
    experiment: Experiment,
    name: str,
    models: list[Model | NoModel],
    options: Options,
    places: Sequence[int] | None = None,
) -> dict[int, int]:
    """Replace models by models that hold for all configurations except one. Return the exception, by call path.

    places: configurations that may be the exception; None: all.
    """
    metric, values = experiment.metrics[name], experiment.values[name]
    own = (experiment.points, values, experiment.executed, metric, experiment.parameters, options, places)
    found = but_for_one(models, *own)
    for path, (_, model) in found.items():
        models[path] = model
    return {path: place for path, (place, _) in found.items()}


@dataclass
class _Unexplained:
    """Metrics of a call path without exact models, and the call paths whose visits may explain them (carriers).

    undecided: by metric, the first carrier with several exact functions of the counts per visit, and these counts
    (C, R).
    """

    path: int
    metrics: list[str]
    carriers: list[int]
    undecided: dict[str, tuple[int, FloatArray]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _PerVisit:
    """Counts per visit (C, R) that are equal in all repetitions, by the index of the metric."""

    keys: dict[int, tuple[str, bytes]]
    ratios: dict[int, FloatArray]


def _explain(
    experiment: Experiment,
    unexplained: Sequence[_Unexplained],
    carriers: Carriers,
    models: Models,
    options: Options,
    known: _Known,
    what: str = "",
) -> None:
    """Replace models of call paths by functions of visits, and remove the explained metrics from `unexplained`.

    Tries one carrier of every call path in each turn, so that many counts are modeled together. carriers: facts about
    all call paths. what: text of the progress display; empty: none.
    """
    for one in unexplained:
        if one.metrics and one.carriers:
            values = np.stack([experiment.values[name][one.path] for name in one.metrics])
            before = [models[name][one.path] for name in one.metrics]
            one.carriers = carriers.likely(one.path, values, before, one.carriers)
    for turn in range(max((len(one.carriers) for one in unexplained), default=0)):
        tried = [one for one in unexplained if one.metrics and turn < len(one.carriers)]
        per_visit = [_per_visit(experiment, one, one.carriers[turn]) for one in tried]
        _model_ratios(experiment, per_visit, options, known, what)
        turns = list(zip(tried, per_visit, strict=True))
        for one, counts in steps(what, turns) if what else turns:
            carrier = one.carriers[turn]
            visits = experiment.values["visits"][carrier]
            values = np.stack([experiment.values[name][one.path] for name in one.metrics])
            likely = {place: own for place, key in counts.keys.items() if (own := _exact_ratio(known[key]))}
            found = {place: own for place, own in likely.items() if not own.others}
            rest = [place for place in range(len(values)) if place not in found]
            if rest:
                found |= {rest[place]: own for place, own in _sums_of_runs(experiment, values[rest], visits).items()}
            for place in (place for place in rest if place not in found):
                own = _sum_of_runs_apart(
                    experiment, values[place], visits, experiment.metrics[one.metrics[place]], options
                )
                found |= {place: own} if own else {}
            found = {place: own for place, own in found.items() if _explains(own, models[one.metrics[place]][one.path])}
            for place, own in found.items():
                _replace(experiment, models, one.metrics[place], one.path, carrier, own)
            for place in likely:
                one.undecided.setdefault(one.metrics[place], (carrier, counts.ratios[place]))
            one.metrics = [name for place, name in enumerate(one.metrics) if place not in found]
    _settle(experiment, unexplained, models, options)


def _settle(experiment: Experiment, unexplained: Sequence[_Unexplained], models: Models, options: Options) -> None:
    """Replace inexact models by functions of visits where the likeliest of several functions is confirmed."""
    asked = [
        (one, name, carrier, ratios)
        for one in unexplained
        for name, (carrier, ratios) in one.undecided.items()
        if name in one.metrics and not (isinstance(before := models[name][one.path], Model) and is_exact(before))
    ]
    # compared with inexact functions, too; each count is modeled alone
    counts = [ratios[None] for *_, ratios in asked]
    likeliest = fit_counts(experiment.points, counts, experiment.parameters, options)
    for (one, name, carrier, ratios), (model,) in zip(asked, likeliest, strict=True):
        found = _exact_ratio(model)
        if found and _left_over(found, experiment, ratios) >= VISITS_UNDECIDED_FREE:
            _replace(experiment, models, name, one.path, carrier, found)


def _exact_ratio(model: Model | NoModel) -> Sum | None:
    """Return the model of counts per visit as a sum, with the alternatives of equal values; None if it is inexact."""
    if not isinstance(model, Model) or not is_exact(model):
        return None
    return Sum((0.0, ()), (model.constant, model.terms), tuple(model.alternatives), model.notes)


def _left_over(found: Sum, experiment: Experiment, ratios: FloatArray) -> int:
    """Return the number of independent counts per visit (C, R) minus the number of coefficients of their sum.

    Configurations that differ only in parameters without an effect count once. Terms that are equal in all dimensions
    of a process grid have one coefficient together: 2 for ranks with neighbours in one dimension, 4 in two.
    """
    constant, terms = found.per_visit
    factors = [factor for term in terms for factor in term.factors]
    places = [place for place, name in enumerate(experiment.parameters) if any(f.parameter == name for f in factors)]
    counted = experiment.points[~np.isnan(ratios).all(axis=1)]
    numbers = {_number(term) for term in terms}
    return len(np.unique(counted[:, places], axis=0)) - len(numbers) - (constant != 0.0)


def _number(term: Term) -> tuple[str, tuple[Factor, ...]]:
    """Return a key that is equal for terms that only differ in the dimension of the process grid."""
    of_one_neighbour = term.coefficient / 2 ** sum(factor.shares for factor in term.factors)
    return f"{of_one_neighbour:.9g}", tuple(factor for factor in term.factors if factor.axis is None)


def _replace(experiment: Experiment, models: Models, name: str, path: int, carrier: int, found: Sum) -> None:
    """Replace the model of a metric of a call path by a function of the visits of `carrier`."""
    before, visits = models[name][path], models["visits"][carrier]
    assert isinstance(before, Model) and isinstance(visits, Model)
    executed = None if experiment.executed is None else experiment.executed[path]
    models[name][path] = through(found, visits, before, experiment.points, experiment.values[name][path], executed)


def _explains(found: Sum, before: Model | NoModel) -> bool:
    """Return whether a function of visits is better than the former model.

    The former model may be exact, but have alternatives. Then only a constant count per visit is better: any other
    function of the parameters would have alternatives, too.
    """
    exact = isinstance(before, Model) and is_exact(before)
    return not exact or not (found.plain[0] or found.plain[1] or found.per_visit[1])


def _per_visit(experiment: Experiment, one: _Unexplained, carrier: int) -> _PerVisit:
    """Return the counts per visit of `carrier` that may be exact functions of the parameters."""
    visits = experiment.values["visits"][carrier]
    values = np.stack([experiment.values[name][one.path] for name in one.metrics])
    with np.errstate(all="ignore"):
        ratios = np.where(visits > 0, values / visits, np.nan)
    known = ~np.isnan(ratios)
    counted = (known == ~np.isnan(values)) | (values == 0)
    middle = np.nanmedian(np.where(known.any(axis=2, keepdims=True), ratios, 0.0), axis=2, keepdims=True)
    alike = np.where(known, np.abs(ratios - middle) <= VISITS_AGREE * np.abs(middle), counted).all(axis=(1, 2))
    places = np.flatnonzero(alike & (known.any(axis=2).sum(axis=1) >= 1 + VISITS_LEAST_FREE)).tolist()
    keys = {place: (one.metrics[place], ratios[place].tobytes()) for place in places}
    return _PerVisit(keys, {place: ratios[place] for place in places})


def _model_ratios(
    experiment: Experiment, per_visit: Sequence[_PerVisit], options: Options, known_models: _Known, what: str
) -> None:
    """Model the counts per visit that are not in `known_models`: many call paths have equal counts."""
    missing: dict[str, dict[bytes, FloatArray]] = {}
    for counts in per_visit:
        for place, (metric, key) in counts.keys.items():
            if (metric, key) not in known_models:
                missing.setdefault(metric, {})[key] = counts.ratios[place]
    exactly = replace(options, exact_only=True)
    values = [np.stack(list(ratios.values())) for ratios in missing.values()]
    said = f"{what}, metrics" if what else ""
    found = fit_counts(experiment.points, values, experiment.parameters, exactly, what=said)
    for (name, ratios), models in zip(missing.items(), found, strict=True):
        known_models.update(((name, key), model) for key, model in zip(ratios, models, strict=True))


def _sums_of_runs(experiment: Experiment, values: FloatArray, visits: FloatArray) -> dict[int, Sum]:
    """Return short sums that reproduce counts (N, C, R) in every run; terms may be multiplied by `visits`."""
    at = np.broadcast_to(experiment.points[:, None], (*visits.shape, len(experiment.parameters)))
    known = ~np.isnan(visits) & ~np.isnan(values).any(axis=0)
    rows = np.column_stack([at[known], visits[known], values[:, known].T])
    if not len(rows):
        return {}
    rows = np.unique(rows, axis=0)
    width = len(experiment.parameters)
    points, times, counts = rows[:, :width], rows[:, width], rows[:, width + 1 :].T
    sizes = tuple(np.unique(points[:, i]).size for i in range(width))
    terms = terms_of_visits(experiment.parameters, tuple(size > 1 for size in sizes))
    columns = {name: points[:, i] for i, name in enumerate(experiment.parameters)}
    with np.errstate(all="ignore"):
        basis = np.stack([term.evaluate(columns, times.shape) for term in terms])
    design = np.concatenate([basis, basis * times])
    scale = np.abs(design).max(axis=1, keepdims=True)
    if not np.isfinite(scale).all() or not scale.all():
        return {}
    weights = exact_weights(counts)
    rounding = rounding_of(counts, weights)
    cost = np.array([EXACT.complexity * complexity(term) for term in terms] * 2)
    result: dict[int, Sum] = {}
    for places, subsets in searches(experiment.parameters, sizes):
        open_rows = np.array([number for number in range(len(counts)) if number not in result], dtype=np.int64)
        open_rows = open_rows[have_enough_runs(len(places), subsets.shape[1], times, counts[open_rows])]
        different = len(np.unique(rows[:, [*places, width]], axis=0))
        if different < subsets.shape[1] + VISITS_LEAST_FREE or not open_rows.size:
            continue
        fitted = fit((design / scale)[subsets], counts[open_rows], weights[open_rows])
        score = cost[subsets].sum(axis=1) + EXACT.negative * (fitted.coefficients < 0).sum(axis=2)
        score = np.where(fitted.worst <= rounding[open_rows, None], score, np.inf)
        for place, (row, best) in enumerate(zip(open_rows.tolist(), score.argmin(axis=1).tolist(), strict=True)):
            if np.isfinite(score[place, best]):
                chosen = subsets[best]
                values_of = fitted.coefficients[place, best] / scale[chosen, 0]
                result[row] = _split(terms, chosen.tolist(), values_of.tolist())
    return result


def _sum_of_runs_apart(
    experiment: Experiment, values: FloatArray, visits: FloatArray, metric: Metric, options: Options
) -> Sum | None:
    """Return counts (C, R) as f + g·v if runs of one configuration with different visits v determine g; else None.

    g is the difference of the counts divided by the difference of the visits. g must be equal in all runs of a
    configuration, and an exact function of the parameters; f = counts - g·v, too. Because f and g are found one after
    the other, each may have more terms than a common search could try.
    """
    known = ~np.isnan(values) & ~np.isnan(visits)
    with np.errstate(all="ignore"):
        counted = np.where(known, visits, np.nan)
        lowest = np.where(known, visits, np.inf).argmin(axis=1)[:, None]
        more = counted - np.take_along_axis(counted, lowest, axis=1)
        slopes = (values - np.take_along_axis(values, lowest, axis=1)) / np.where(more > 0, more, np.nan)
        differs = np.asarray(~np.isnan(slopes).all(axis=1), dtype=bool)
        slope = np.nanmedian(np.where(differs[:, None], slopes, 0.0), axis=1)
        off = np.abs(
            values - slope[:, None] * visits - np.nanmax(values - slope[:, None] * visits, axis=1, keepdims=True)
        )
    if (
        differs.sum() < 1 + VISITS_LEAST_FREE
        or not (off[differs][known[differs]] <= VISITS_AGREE * values[differs][known[differs]]).all()
    ):
        return None
    exactly = replace(options, exact_only=True)

    def exact(counts: FloatArray) -> Model | None:
        (model,) = fit_models(experiment.points, counts[None], metric, experiment.parameters, exactly)
        return model if isinstance(model, Model) and reproduces(model) else None

    of_visits = exact(np.where(differs, slope, np.nan)[:, None])
    if of_visits is None:
        return None
    rest = values - of_visits.evaluate(experiment.points)[:, None] * visits
    plain = exact(np.where(np.abs(rest) <= VISITS_AGREE * np.abs(values), 0.0, rest))
    if plain is None:
        return None
    return Sum((plain.constant, plain.terms), (of_visits.constant, of_visits.terms))


def _split(terms: tuple[Term, ...], chosen: list[int], coefficients: list[float]) -> Sum:
    """Return the sum of the terms with numbers `chosen`; numbers from len(terms) on are terms times the visits."""
    parts: tuple[list[Term], list[Term]] = [], []
    for number, coefficient in zip(chosen, coefficients, strict=True):
        whole = round(coefficient)
        exact = float(whole) if abs(coefficient - whole) <= 1e-7 * abs(whole) else coefficient
        parts[number // len(terms)].append(terms[number % len(terms)].scaled(exact))
    return Sum(collect(0.0, parts[0]), collect(0.0, parts[1]))
