"""Plots of models over a parameter, for notebooks. Needs matplotlib (`pip install 'quipu[plots]'`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from quipu.modeling.analysis import Analysis
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import Experiment, FloatArray, mean_over_repetitions
from quipu.modeling.pmnf.model import Model

from .figures import GEOMETRIC, new_figure, plain
from .text import point_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLACES = 65  # where a curve is computed
_LONGEST = 48  # characters of a call path in the legend


def plot_models(
    analysis: Analysis,
    metric: str,
    parameter: str,
    *,
    at: Mapping[str, float] | None = None,
    until: float | None = None,
    paths: int | Sequence[int] = 5,
    inclusive: bool = False,
    experiment: Experiment | None = None,
) -> Figure:
    """Return a figure of the models of a metric over a parameter, with their 90 % intervals.

    at: values of the other parameters; the largest measured ones if they are not given. until: where the parameter
    ends, beyond what was measured if it is larger; curves are dashed there. paths: call paths, or how many of those
    that are largest at the end. experiment: its means over repetitions become points, where they are at `at`.

    Raises ModelingError for an unknown metric or parameter, or without any model to plot, EnvironmentProblem without
    matplotlib.
    """
    point = _point(analysis, parameter, at or {})
    column = analysis.parameters.index(parameter)
    low, high = analysis.ranges[column]
    end = high if until is None else float(until)
    if not end > low:
        raise ModelingError(f"until={end:g}: {parameter} was measured from {low:g} on: give more than that")
    spaced = np.geomspace if low > 0 and end / low >= GEOMETRIC else np.linspace
    x = np.union1d(spaced(low, end, _PLACES), [min(high, end)])
    places = np.tile(point, (x.size, 1))
    places[:, column] = x
    shown = _chosen(analysis, metric, inclusive, paths, places[-1])
    figure = new_figure(7.0, 4.2)
    axes = figure.add_subplot()
    for color, (path, model) in enumerate(shown):
        _curve(axes, analysis.tree.label(path), model, places, column, high, f"C{color}")
        if experiment is not None:
            known, means = _measured(experiment, metric, inclusive, path, point, column)
            axes.plot(known, means, ".", color=f"C{color}")
    if spaced is np.geomspace:
        axes.set_xscale("log")
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.get_lines()])
    if values.size and values.min() > 0 and values.max() / values.min() >= GEOMETRIC:
        axes.set_yscale("log")
    others = [name for name in analysis.parameters if name != parameter]
    unit = analysis.metrics[metric].unit
    axes.set_xlabel(plain(parameter))
    axes.set_ylabel(plain(metric if unit == "1" else f"{metric} [{unit}]"))
    if others:
        axes.set_title(plain(point_text(others, np.delete(point, column).tolist())), fontsize=9)
    axes.legend(fontsize=7)
    return figure


def _point(analysis: Analysis, parameter: str, at: Mapping[str, float]) -> FloatArray:
    known = ", ".join(analysis.parameters) or "none"
    if unknown := [name for name in (parameter, *at) if name not in analysis.parameters]:
        raise ModelingError(f"{analysis.name}: no parameter {', '.join(unknown)}; it has: {known}")
    pairs = zip(analysis.parameters, analysis.ranges, strict=True)
    return np.array([float(at.get(name, high)) for name, (_, high) in pairs])


def _chosen(
    analysis: Analysis, metric: str, inclusive: bool, paths: int | Sequence[int], end: FloatArray
) -> list[tuple[int, Model]]:
    """Return call paths that have models, with these: those asked for, or so many of the largest at the end."""
    entries = analysis.models(metric, inclusive)
    wanted = range(len(entries)) if isinstance(paths, int) else paths
    if wrong := [path for path in wanted if not 0 <= path < len(entries)]:
        raise ModelingError(f"{analysis.name}: no call path {wrong[0]}; they are 0 to {len(entries) - 1}")
    found = [(path, model) for path in wanted if isinstance(model := entries[path].model, Model)]
    if isinstance(paths, int):
        sizes = {path: np.nan_to_num(model.evaluate([end.tolist()])[0], nan=0.0) for path, model in found}
        found = sorted((one for one in found if sizes[one[0]] > 0), key=lambda one: -sizes[one[0]])[:paths]
    if not found:
        raise ModelingError(f"{analysis.name}: there is no model of {metric} above 0 to plot")
    return found


def _curve(axes: Axes, label: str, model: Model, places: FloatArray, column: int, high: float, color: str) -> None:
    predictions = [model.predict(place) for place in places.tolist()]
    x, values = places[:, column], np.array([one.value for one in predictions])
    text = plain(label if len(label) <= _LONGEST else f"…{label[-_LONGEST:]}")
    inside, beyond = x <= high, x >= high
    axes.plot(x[inside], values[inside], color=color, label=text)
    axes.plot(x[beyond], values[beyond], color=color, linestyle="--")
    lower, upper = (np.array([getattr(one, end) for one in predictions]) for end in ("lower", "upper"))
    axes.fill_between(x, lower, upper, color=color, alpha=0.15, linewidth=0)


def _measured(
    experiment: Experiment, metric: str, inclusive: bool, path: int, point: FloatArray, column: int
) -> tuple[FloatArray, FloatArray]:
    """Return where a metric was measured at this point but for the parameter `column`, and the means there."""
    experiment.metric(metric)
    others = np.arange(len(point)) != column
    here = np.all(experiment.points[:, others] == point[others], axis=1)
    values = experiment.inclusive(metric) if inclusive else experiment.values[metric]
    means = mean_over_repetitions(values[path, here])
    known = ~np.isnan(means)
    return experiment.points[here, column][known], means[known]
