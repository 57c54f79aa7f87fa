# SPDX-License-Identifier: Apache-2.0
"""Compute the curves of models over a parameter, with intervals and measured values, for plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from quipu.modeling.analysis import Analysis
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import Experiment, FloatArray, median_over_repetitions
from quipu.modeling.pmnf.model import Model

from .figures import GEOMETRIC
from .short_label import short_label
from .text import point_text

_PLACES = 65  # number of points of a curve
_PARTS = ("value", "lower", "upper")


@dataclass(frozen=True, eq=False)
class Curve:
    """The curve of one model.

    values, lower, upper: prediction and 90 % interval at the parameter values `Curves.x`. means: measured values
    (median over repetitions) at the parameter values `known`.
    """

    label: str
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    known: FloatArray
    means: FloatArray


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves of models of one metric over one parameter.

    x: parameter values. measured: the largest measured parameter value; the models extrapolate beyond it.
    """

    x: FloatArray
    measured: float
    curves: tuple[Curve, ...]
    labels: tuple[str, str, str]
    """Labels of the axes x and y, and the title: the values of the other parameters."""

    @property
    def logarithmic(self) -> tuple[bool, bool]:
        """Return whether the axes x and y should be logarithmic, because their values differ by a large ratio."""
        values = np.concatenate([array for one in self.curves for array in (one.values, one.means)])
        return _spans(self.x), bool(values.size) and _spans(values)


def _spans(values: FloatArray) -> bool:
    return bool(values.min() > 0 and values.max() / values.min() >= GEOMETRIC)


def model_curves(
    analysis: Analysis,
    metric: str,
    parameter: str,
    at: Mapping[str, float] | None,
    until: float | None,
    paths: int | Sequence[int],
    inclusive: bool,
    experiment: Experiment | None,
) -> Curves:
    """Return the curves for `plot_models`, which describes the arguments and errors."""
    point = _point(analysis, metric, parameter, at or {})
    column = analysis.parameters.index(parameter)
    low, high = analysis.ranges_of(metric)[column]
    end = high if until is None else float(until)
    if not end > low:
        raise ModelingError(f"until={end:g}: give more than {low:g}, the smallest measured {parameter}")
    spaced = np.geomspace if low > 0 and end / low >= GEOMETRIC else np.linspace
    x = np.union1d(spaced(low, end, _PLACES), [min(high, end)])
    places = np.tile(point, (x.size, 1))
    places[:, column] = x
    curves = []
    for path, model in _chosen(analysis, metric, inclusive, paths, places[-1]):
        predictions = [model.predict(place) for place in places.tolist()]
        value, lower, upper = (np.array([getattr(one, name) for one in predictions]) for name in _PARTS)
        known = means = np.zeros(0)
        if experiment is not None:
            known, means = _measured(experiment, metric, inclusive, path, point, column)
        curves.append(Curve(short_label(analysis.tree, path), value, lower, upper, known, means))
    others = [name for name in analysis.parameters if name != parameter]
    unit = analysis.metrics[metric].unit
    title = point_text(others, np.delete(point, column).tolist()) if others else ""
    return Curves(x, high, tuple(curves), (parameter, metric if unit == "1" else f"{metric} [{unit}]", title))


def _point(analysis: Analysis, metric: str, parameter: str, at: Mapping[str, float]) -> FloatArray:
    known = ", ".join(analysis.parameters) or "none"
    if unknown := [name for name in (parameter, *at) if name not in analysis.parameters]:
        raise ModelingError(f"{analysis.name}: no parameter {', '.join(unknown)}; it has: {known}")
    pairs = zip(analysis.parameters, analysis.ranges_of(metric), strict=True)
    return np.array([float(at.get(name, high)) for name, (_, high) in pairs])


def _chosen(
    analysis: Analysis, metric: str, inclusive: bool, paths: int | Sequence[int], end: FloatArray
) -> list[tuple[int, Model]]:
    """Return indices of call paths and their models. Raises ModelingError if there are none.

    paths: indices of call paths; or a number: the call paths with the largest values at the point `end`.
    """
    entries = analysis.models(metric, inclusive)
    wanted = range(len(entries)) if isinstance(paths, int) else paths
    if wrong := [path for path in wanted if not 0 <= path < len(entries)]:
        raise ModelingError(f"{analysis.name}: no call path {wrong[0]}; they are 0 to {len(entries) - 1}")
    found = [(path, model) for path in wanted if isinstance(model := entries[path].model, Model)]
    if isinstance(paths, int):
        sizes = {path: np.nan_to_num(model.evaluate([end.tolist()])[0], nan=0.0) for path, model in found}
        found = sorted((one for one in found if sizes[one[0]] > 0), key=lambda one: -sizes[one[0]])[:paths]
    if not found:
        raise ModelingError(
            f"{analysis.name}: no model of {metric} is above 0, so the plot would be empty: choose another metric"
        )
    return found


def _measured(
    experiment: Experiment, metric: str, inclusive: bool, path: int, point: FloatArray, column: int
) -> tuple[FloatArray, FloatArray]:
    """Return the parameter values at which a metric was measured, and its values there (median over repetitions).

    column: index of the parameter. point: the values of the other parameters.
    """
    experiment.metric(metric)
    others = np.arange(len(point)) != column
    here = np.all(experiment.points[:, others] == point[others], axis=1)
    values = experiment.inclusive(metric) if inclusive else experiment.values[metric]
    means = median_over_repetitions(values[path, here])
    known = ~np.isnan(means)
    return experiment.points[here, column][known], means[known]
