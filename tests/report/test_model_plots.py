# SPDX-License-Identifier: Apache-2.0
"""Plots of models over a parameter: curves are the models, points the measurements."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from peers import needs
from quipu.modeling.analysis import Analysis
from quipu.modeling.errors import EnvironmentProblem, ModelingError
from quipu.modeling.experiment import Experiment, median_over_repetitions
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.options import NoModel
from quipu.modeling.priors.path_model import PathModel
from quipu.report.model_plots import plot_models, plot_models_interactive

from .planted import METRICS, planted

_NONE = PathModel(NoModel("never executed"), "measured")


def analysis() -> tuple[Experiment, Analysis]:
    experiment, models = planted()
    exclusive = {}
    for name in METRICS:
        found = {one.path: one.model for one in models if one.metric == name and one.model is not None}
        paths = range(len(experiment.tree))
        exclusive[name] = tuple(PathModel(found[path], "measured") if path in found else _NONE for path in paths)
    ranges = ((1.0, 16.0), (32.0, 256.0))
    return experiment, Analysis("heat", ("p", "n"), ranges, experiment.tree, METRICS, exclusive)


def test_curves_intervals_and_points() -> None:
    experiment, models = analysis()
    figure = plot_models(models, "time", "p", until=64, paths=3, experiment=experiment)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("p", "time [s]", "n=256")
    lines = axes.get_lines()
    assert len(lines) == 3 * 3 and len(axes.collections) == 3
    end = {path: entry.model.at(p=64, n=256) for path, entry in enumerate(models.models("time"))
           if isinstance(entry.model, Model)}  # fmt: skip
    largest = sorted(end, key=lambda path: -end[path])[:3]
    for place, path in enumerate(largest):
        inside, beyond, measured = lines[3 * place : 3 * place + 3]
        model = models.models("time")[path].model
        assert isinstance(model, Model)
        for line, style in ((inside, "-"), (beyond, "--")):
            x = np.asarray(line.get_xdata())
            assert line.get_linestyle() == style
            assert np.allclose(np.asarray(line.get_ydata()), model.evaluate([(p, 256) for p in x]))
        dashed = np.asarray(beyond.get_xdata())
        assert (np.asarray(inside.get_xdata()).max(), dashed.min(), dashed.max()) == (16, 16, 64)
        here = experiment.points[:, 1] == 256
        means = median_over_repetitions(experiment.values["time"][path, here])
        assert np.array_equal(np.asarray(measured.get_ydata()), means[~np.isnan(means)])
    figure.savefig(io.BytesIO(), format="png")


def test_chosen_call_paths_with_hostile_names() -> None:
    _, models = analysis()
    figure = plot_models(models, "time", "n", at={"p": 4}, paths=[6, 7])
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {
        "main-></script><img src=x onerror=alert(1)>",
        "main-></script><img src=x onerror=alert(1)>->operator<< <T&>",
    }
    assert figure.axes[0].get_title() == "p=4"
    figure.savefig(io.BytesIO(), format="svg")


def test_what_cannot_be_plotted(monkeypatch: pytest.MonkeyPatch) -> None:
    _, models = analysis()
    with pytest.raises(ModelingError, match="no parameter q; it has: p, n"):
        plot_models(models, "time", "q")
    with pytest.raises(ModelingError, match="no models of metric 'flops'"):
        plot_models(models, "flops", "p")
    with pytest.raises(ModelingError, match="no call path 99; they are 0 to 7"):
        plot_models(models, "time", "p", paths=[99])
    with pytest.raises(ModelingError, match="no model of visits is above 0"):
        plot_models(models, "visits", "p")
    with pytest.raises(ModelingError, match="until=1: give more than 1, the smallest measured p"):
        plot_models(models, "time", "p", until=1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'quipu\[plots\]'"):
        plot_models(models, "time", "p")


@needs("matplotlib", "plotly")
def test_plotly_draws_the_same() -> None:
    experiment, models = analysis()
    figure = plot_models(models, "time", "p", until=64, paths=3, experiment=experiment)
    theirs = plot_models_interactive(models, "time", "p", until=64, paths=3, experiment=experiment)
    drawn = [one for one in theirs.data if one.hoverinfo != "skip"]
    (axes,) = figure.axes
    assert len(drawn) == len(axes.get_lines())
    for line, one in zip(axes.get_lines(), drawn, strict=True):
        np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), one.y)
    assert (theirs.layout.xaxis.type, theirs.layout.yaxis.type) == ("log", "log")
    assert (theirs.layout.xaxis.title.text, theirs.layout.title.text) == ("p", "n=256")
    assert "&gt;" in drawn[0].name and "<" not in theirs.to_json().replace("\\u003c", "")


def test_without_plotly_one_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(EnvironmentProblem, match=r"quipu\[plots\]"):
        plot_models_interactive(analysis()[1], "time", "p")
