# SPDX-License-Identifier: Apache-2.0
"""Convert an experiment and its models to the JSON data of the report.

Call paths, parameters, configurations and products are referred to by index.

- "parameters", "metrics", "regions"; "region" and "parent" of each call path.
- "points": the configurations in ascending order. "oversubscribed": for each configuration, whether its times contain
  waiting for a processor. "loaded": whether only other programs cause this waiting.
- "ranges": lowest and highest value of each parameter. "far": ratio of a point to these ranges above which no benchmark
  checks predictions. "open": ratio of the ends of an interval above which the value is not determined.
- "repetitions": number of repetitions by metric and configuration.
- "target": one number per parameter, the initial point of the ranking and the diagnosis.
- "slowdowns": null without a diagnosis. "blind": notes about call paths that a diagnosis does not cover.
- "slowest": null, or a text about the slowest rank in the configuration with the largest ratio to the mean ("text"),
  and how ranks are combined ("over").
- "start_and_end": call paths of the start and the end of MPI, which are not part of the program.
- "values": by metric and call path. "against": null, or name and mean values of the experiment to compare with.
- "models": for each model, "absent" lists [parameter, value] pairs at which the model is 0, and "summed" is the form of
  the model for sums of call paths.
- "products": lists of factors. A term is a coefficient and the index of a product, because many models share few
  products.
- "communication" (report/communication_views.py), "ranks" (report/rank_views.py), "efficiency" (null, or see
  report/efficiency_views.py), "refinement" (null, or see report/refinement_views.py), "noise" and "changes"
  (report/behaviour.py).

The values of a call path are null if nothing was measured, and 0 if all values are 0. Otherwise they are a list over
configurations. Each element is null (not measured), a number (all repetitions are equal), or a list of repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.analysis import Analysis
from quipu.modeling.behaviour import Behaviour
from quipu.modeling.diagnosis import blind_spots, scale_of
from quipu.modeling.experiment import Experiment, FloatArray, Metric, mean_over_repetitions
from quipu.modeling.extrapolation import FAR, OPEN
from quipu.modeling.pmnf.changes.ranges import Change
from quipu.modeling.pmnf.model import Factor, Model, Term, present, recursion_text
from quipu.modeling.priors.slowdown import Slowdown
from quipu.modeling.short_names import shorten_apart
from quipu.modeling.slowest_rank import most_dominating

from ..behaviour import behaviour_data
from ..communication_views import Pairs, communication_data
from ..efficiency_views import EfficiencyView, efficiency_data
from ..json_views import json_number, metric_json, region_json
from ..rank_views import rank_data
from ..refinement_views import RefinementPanel, refinement_data
from ..text import slowest_rank_text
from ..views import PlacedModel

# Largest length of the short name of a region. The page shows the full name when the pointer is over the short one.
_SHORT = 34

_FIRST = ("time", "blocks", "bytes_sent", "bytes_received", "visits")


def report_data(
    experiment: Experiment,
    models: Iterable[PlacedModel],
    target: Mapping[str, float],
    observed: Mapping[str, Sequence[Behaviour]],
    slow: Sequence[Slowdown] | None = None,
    against: Experiment | None = None,
    refinement: RefinementPanel | None = None,
    communication: Mapping[tuple[float, ...], tuple[Pairs, int]] | None = None,
    ranks: Mapping[tuple[float, ...], FloatArray] | None = None,
    efficiency: EfficiencyView | None = None,
) -> dict[str, Any]:
    """Return the data of a report, described at the top of this file. Arguments as in `html_report`.

    target: if values are missing, `scale_of` adds them.
    """
    order = np.lexsort(experiment.points.T[::-1]) if experiment.parameters else np.arange(experiment.configurations)
    points = experiment.points[order]
    beside = behaviour_data(experiment, observed)
    products = _Products(experiment.parameters)
    names = sorted(experiment.values, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    return {
        "parameters": list(experiment.parameters),
        "points": [[json_number(float(value)) for value in row] for row in points],
        "oversubscribed": (~experiment.dedicated[order]).tolist(),
        "loaded": (experiment.disturbed & ~experiment.shares_processors)[order].tolist(),
        "ranges": _ranges(points),
        "far": json_number(FAR),
        "open": json_number(OPEN),
        "repetitions": {name: repetitions(experiment.values[name][:, order, :]).sum(axis=1).tolist() for name in names},
        "target": list(map(json_number, scale_of(experiment.of_time, target))),
        "blind": [] if slow is None else list(blind_spots(experiment.of_time)),
        "slowdowns": None if slow is None else [_slowdown(one) for one in slow],
        "metrics": [metric_json(experiment.metrics[name]) for name in names],
        "regions": [
            {**region_json(region), "short": short}
            for region, short in zip(
                experiment.tree.regions,
                shorten_apart([region.display for region in experiment.tree.regions], _SHORT),
                strict=True,
            )
        ],
        "region": experiment.tree.region.tolist(),
        "parent": experiment.tree.parent.tolist(),
        "slowest": _slowest(experiment),
        "start_and_end": np.flatnonzero(experiment.tree.start_and_end).tolist(),
        "values": {name: _values(experiment.values[name][:, order, :], experiment.metrics[name]) for name in names},
        "models": [_model(entry, products, _ranges(points)) for entry in models],
        "against": None if against is None else _against(against, order),
        "communication": communication_data(communication or {}, points),
        "ranks": rank_data(ranks or {}, points),
        "efficiency": efficiency_data(efficiency),
        "refinement": refinement_data(refinement),
        "noise": beside["noise"],
        "changes": [_change(entry, products) for entry in beside["changes"]],
        "products": products.lists,
    }


def _slowest(experiment: Experiment) -> dict[str, str] | None:
    """Return the value of "slowest"."""
    timed = experiment.of_time
    slowest = most_dominating(timed.rank_times, timed.points, timed.dedicated)
    over = experiment.over_ranks
    text = None if slowest is None else slowest_rank_text(experiment.parameters, slowest, over)
    return None if text is None else {"text": text, "over": over}


def _against(before: Experiment, order: NDArray[np.int64]) -> dict[str, Any]:
    """Return the value of "against". before: the other experiment. order: indices of its configurations in order."""
    return {
        "name": before.name,
        "values": {
            name: _values(mean_over_repetitions(values[:, order, :])[:, :, None], before.metrics[name])
            for name, values in before.values.items()
        },
    }


def placed_models(analysis: Analysis) -> list[PlacedModel]:
    """Return the models of an analysis for the report. Models that are 0 everywhere are left out."""
    return [
        PlacedModel(path, metric, entry.model, entry.basis, entry.prior, "", entry.oversubscribed, entry.lower)
        if isinstance(entry.model, Model)
        else PlacedModel(path, metric, None, entry.basis, entry.prior, entry.model.reason)
        for metric, entries in analysis.exclusive.items()
        for path, entry in enumerate(entries)
        if not (isinstance(entry.model, Model) and entry.model.is_constant and entry.model.constant == 0)
    ]


def repetitions(values: FloatArray) -> NDArray[np.bool_]:
    """Return whether a metric was measured in each run, shape (configurations, repetitions).

    values: shape (call paths, configurations, repetitions).
    """
    counts: NDArray[np.int64] = np.count_nonzero(~np.isnan(values), axis=0)
    return counts > 0


def _values(values: FloatArray, metric: Metric) -> list[Any]:
    """Return the values of a metric, shape (call paths, configurations, repetitions), in the form of "values"."""
    if not metric.is_effort:  # nine digits are sufficient for times
        values = _rounded(values)
    measured = repetitions(values)
    known = ~np.isnan(values)
    zero = np.count_nonzero(np.nan_to_num(values), axis=(1, 2)) == 0
    zero &= np.count_nonzero(measured & ~known, axis=(1, 2)) == 0
    missing = np.count_nonzero(known, axis=(1, 2)) == 0
    return [
        None
        if missing[path]
        else 0
        if zero[path]
        else [_cell(cell[where]) for cell, where in zip(values[path], measured, strict=True)]
        for path in range(values.shape[0])
    ]


def _rounded(values: FloatArray) -> FloatArray:
    """Return values with nine significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        digits = np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** (8 - np.maximum(np.where(np.isfinite(digits), digits, 0), -300))
    return np.asarray(np.round(values * scale) / scale)


def _cell(cell: FloatArray) -> Any:
    """Return the repetitions of one configuration in the form of "values"."""
    if not cell.size or bool(np.all(np.isnan(cell))):
        return None
    if bool(np.all(cell == cell[0])):
        return json_number(float(cell[0]))
    return [json_number(float(value)) for value in cell]


def _ranges(points: FloatArray) -> list[list[float | int | None]]:
    """Return the lowest and the highest value of each parameter."""
    return [[json_number(float(column.min())), json_number(float(column.max()))] for column in points.T if column.size]


def _model(entry: PlacedModel, products: _Products, ranges: list[list[float | int | None]]) -> dict[str, Any]:
    model = entry.model
    data: dict[str, Any] = {"path": entry.path, "metric": entry.metric, "basis": entry.basis, "prior": entry.prior}
    if model is None:
        return {**data, "reason": entry.reason}
    quality = model.quality
    data["constant"] = model.constant
    if entry.oversubscribed:
        data["oversubscribed"] = True
    if entry.lower is not None:
        data["lower"] = {"constant": entry.lower.constant, "terms": products.terms(entry.lower.terms)}
    own = [[json_number(low), json_number(high)] for low, high in model.ranges]
    if len(own) == len(ranges) and own != ranges:
        data["ranges"] = own
    data["terms"] = products.terms(model.terms)
    if model.absent:
        data["absent"] = [[products.places[name], json_number(value)] for name, value in model.absent]
        least = [name for name, (low, _) in zip(products.places, ranges, strict=True) if low == 1]
        summed = present(model, least)
        data["summed"] = {"constant": summed.constant, "terms": products.terms(summed.terms)}
    data["smape"] = None if quality is None else json_number(quality.smape)
    if model.covariance and all(math.isfinite(value) for row in model.covariance for value in row):
        rows = enumerate(model.covariance)
        data["covariance"] = [[_short(value) for value in row[place:]] for place, row in rows]
    if model.alternatives:
        data["alternatives"] = [
            [_short(a.weight), _short(a.constant), [[_short(c), number] for c, number in products.terms(a.terms)]]
            for a in model.alternatives
        ]
    if model.notes:
        data["notes"] = list(model.notes)
    return data


def _short(value: float) -> float:
    """Return a number with ten digits, which are sufficient for intervals."""
    return float(f"{value:.10g}")


def _slowdown(one: Slowdown) -> dict[str, Any]:
    return {
        "path": one.path,
        "cause": one.cause.value,
        "parameter": one.parameter,
        "power": float(one.power),
        "powerText": str(one.power),
        "log": one.log,
        "chance": one.significance,
        "wait": json_number(one.wait_share),
        "lines": [
            {
                "others": list(map(json_number, line.others)),
                **{name: json_number(getattr(line, name)) for name in ("low", "high", "least", "a", "b")},
            }
            for line in one.lines
        ],
    }


def _change(entry: tuple[int, str, Change], products: _Products) -> dict[str, Any]:
    path, metric, change = entry
    sides = {"below": change.below, "above": change.above}
    return {
        "path": path,
        "metric": metric,
        "parameter": products.places[change.parameter],
        "last": json_number(change.last),
        "first": json_number(change.first),
        **{name: {"constant": side.constant, "terms": products.terms(side.terms)} for name, side in sides.items()},
    }


class _Products:
    """The products of factors that occur in a report, each once. lists: the value of "products"."""

    def __init__(self, parameters: Sequence[str]) -> None:
        """Create the object without products. parameters: names; factors refer to parameters by index."""
        self.places = {name: place for place, name in enumerate(parameters)}
        self.lists: list[list[Any]] = []
        self._numbers: dict[tuple[Factor, ...], int] = {}

    def terms(self, terms: Iterable[Term]) -> list[list[float | int]]:
        """Return the coefficient and the index of the product of each term."""
        return [[term.coefficient, self._number(term.factors)] for term in terms]

    def _number(self, factors: tuple[Factor, ...]) -> int:
        if factors not in self._numbers:
            self._numbers[factors] = len(self.lists)
            self.lists.append([self._factor(factor) for factor in factors])
        return self._numbers[factors]

    def _factor(self, factor: Factor) -> list[Any]:
        """Return a factor: index of the parameter, exponents of power and logarithm, shares, and optionally its basis.

        The basis is present if the factor is not a power of the parameter itself. It is [rule, dimensions, index, name]
        for a dimension of the process grid, and an object for steps, blocks and functions (see model.js).
        """
        about: list[Any] = []
        if factor.steps is not None:
            about = [asdict(factor.steps)]
        elif factor.blocks is not None:
            blocks = factor.blocks
            about = [{"size": blocks.size, "power": blocks.power, "product": [self._factor(f) for f in blocks.product]}]
        elif (function := factor.function) is not None:
            argument = [[term.coefficient, [self._factor(f) for f in term.factors]] for term in function.argument]
            order = sum(float(function.exponents(name)[0]) for name in function.parameters)
            about = [{"kind": function.kind, "numbers": function.numbers, "argument": argument, "order": order}]
        elif (axis := factor.axis) is not None:
            about = [[axis.rule, axis.dimensions, axis.index, factor.name]]
        shares = -1 if factor.several else factor.shares
        return [self.places[factor.parameter], _exponent(factor), factor.log, shares, *about]


def _exponent(factor: Factor) -> str:
    """Return the exponent of a factor as text: "2/3"; for a recursion such as "log2(7)-1"."""
    return recursion_text(factor.exponent) or str(factor.exponent)
