# SPDX-License-Identifier: Apache-2.0
"""Plot models over a parameter in notebooks, with matplotlib or plotly (`pip install 'quipu[plots]'`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quipu.modeling.analysis import Analysis
from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.experiment import Experiment

from .figures import new_figure, plain
from .model_curves import Curve, Curves, model_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
"""The colors of matplotlib, used for the plots of plotly, too."""


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

    - at: values of the other parameters; default: the largest measured values.
    - until: the largest value of the parameter; default: the largest measured one. Curves are dashed beyond the
      measured range.
    - paths: indices of call paths; or a number: the call paths with the largest values at `until`.
    - inclusive: plot models of inclusive values.
    - experiment: its medians over repetitions at `at` are drawn as points.

    Raises ModelingError for an unknown metric or parameter, or without any model to plot, EnvironmentProblem without
    matplotlib.
    """
    curves = model_curves(analysis, metric, parameter, at, until, paths, inclusive, experiment)
    figure = new_figure(7.0, 4.2)
    axes = figure.add_subplot()
    for number, curve in enumerate(curves.curves):
        _draw(axes, curves, curve, f"C{number}")
    wide, high = curves.logarithmic
    axes.set_xscale("log" if wide else "linear")
    axes.set_yscale("log" if high else "linear")
    axes.set_xlabel(plain(curves.labels[0]))
    axes.set_ylabel(plain(curves.labels[1]))
    if curves.labels[2]:
        axes.set_title(plain(curves.labels[2]), fontsize=9)
    axes.legend(fontsize=7)
    return figure


def _draw(axes: Axes, curves: Curves, curve: Curve, color: str) -> None:
    x, inside, beyond = curves.x, curves.x <= curves.measured, curves.x >= curves.measured
    axes.plot(x[inside], curve.values[inside], color=color, label=plain(curve.label))
    axes.plot(x[beyond], curve.values[beyond], color=color, linestyle="--")
    axes.fill_between(x, curve.lower, curve.upper, color=color, alpha=0.15, linewidth=0)
    if curve.known.size:
        axes.plot(curve.known, curve.means, ".", color=color)


def plot_models_interactive(
    analysis: Analysis,
    metric: str,
    parameter: str,
    *,
    at: Mapping[str, float] | None = None,
    until: float | None = None,
    paths: int | Sequence[int] = 5,
    inclusive: bool = False,
    experiment: Experiment | None = None,
) -> Any:
    """Return the plot of `plot_models` as a `plotly.graph_objects.Figure`.

    The figure shows values under the pointer, and the reader can hide call paths. Arguments and errors are the same as
    in `plot_models`. Raises EnvironmentProblem without plotly.
    """
    try:
        from plotly import graph_objects
    except ImportError as error:
        raise EnvironmentProblem("interactive plots need plotly: pip install 'quipu[plots]'") from error
    curves = model_curves(analysis, metric, parameter, at, until, paths, inclusive, experiment)
    figure = graph_objects.Figure()
    inside, beyond = curves.x <= curves.measured, curves.x >= curves.measured
    for number, curve in enumerate(curves.curves):
        color = _COLORS[number % len(_COLORS)]
        group = {"legendgroup": str(number), "line_color": color}
        name = _text(curve.label)
        figure.add_scatter(x=curves.x[inside], y=curve.values[inside], name=name, **group)
        figure.add_scatter(
            x=curves.x[beyond],
            y=curve.values[beyond],
            name=f"{name}, beyond",
            line_dash="dash",
            showlegend=False,
            **group,
        )
        around = {**group, "line_width": 0, "showlegend": False, "hoverinfo": "skip"}
        figure.add_scatter(x=curves.x, y=curve.lower, mode="lines", **around)
        red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
        fill = f"rgba({red},{green},{blue},0.15)"
        figure.add_scatter(x=curves.x, y=curve.upper, mode="lines", fill="tonexty", fillcolor=fill, **around)
        if curve.known.size:
            figure.add_scatter(
                x=curve.known, y=curve.means, name=f"{name}, measured", mode="markers", showlegend=False, **group
            )
    wide, high = curves.logarithmic
    figure.update_xaxes(title_text=_text(curves.labels[0]), type="log" if wide else "linear")
    figure.update_yaxes(title_text=_text(curves.labels[1]), type="log" if high else "linear")
    figure.update_layout(title_text=_text(curves.labels[2]))
    return figure


def _text(text: str) -> str:
    """Return a text in which plotly interprets nothing as a tag or a formula."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
