# SPDX-License-Identifier: Apache-2.0
"""Draw tensor models to files: the effects of parameters. Needs matplotlib (`pip install 'quipu[plots]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from quipu.modeling.errors import UsageError
from quipu.modeling.tensor.explain import Beyond, Effect, Tried
from quipu.modeling.tensor.growth import ErrorAt

from .figures import GEOMETRIC, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".png", ".svg", ".pdf")
_COLUMNS = 3  # plots side by side
_MOST_LABELS = 8  # approximate number of labels of an axis with words


def draw_effects(
    effects: Sequence[Effect],
    target: str,
    path: Path,
    tried: Sequence[Tried] = (),
    beyond: Sequence[Beyond] = (),
    growth: Sequence[ErrorAt] = (),
) -> None:
    """Draw the main effect of each parameter as a factor of the target (such as the time), and optional further plots.

    - target: name of the predicted quantity. path: the file to write; its suffix is one of `SUFFIXES`.
    - tried: error of models by their size. growth: error by number of rows of the measurements.
    - beyond: predictions beyond the measured values (dashed), with their interval.

    Raises UsageError for another suffix or a missing folder, EnvironmentProblem without matplotlib, OSError if the file
    cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {path}: the name must end with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise UsageError(f"--plot {path}: the folder {path.parent} does not exist: make it first")
    tried = [one for one in tried if one.error > 0]
    rows = -(-(len(effects) + bool(tried) + len(beyond) + bool(growth)) // _COLUMNS)
    figure = new_figure(3.6 * _COLUMNS, 2.6 * rows)
    for place, effect in enumerate(effects, start=1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        factors = np.exp(effect.logs)
        numbers = [value for value in effect.values if not isinstance(value, str)]
        if len(numbers) < len(effect.values):
            places = np.arange(len(effect.values))
            axes.bar(places, factors)
            shown = places[:: max(1, len(places) // _MOST_LABELS)]
            axes.set_xticks(shown, [plain(str(effect.values[at])) for at in shown], rotation=45)
        else:
            axes.plot(numbers, factors, marker="." if len(numbers) < 20 else "")
            if min(numbers) > 0 and max(numbers) / min(numbers) >= GEOMETRIC:
                axes.set_xscale("log")
        if factors.max() / factors.min() >= GEOMETRIC:
            axes.set_yscale("log")
        axes.set_title(plain(f"{effect.parameter}: {100 * effect.total:.1f} %"), fontsize=9)
        axes.tick_params(which="both", labelsize=7)
    if tried:
        axes = figure.add_subplot(rows, _COLUMNS, len(effects) + 1)
        for kept, marker in ((False, "."), (True, "o-")):
            points = [(one.size, one.error) for one in tried if one.kept is kept]
            if points:
                axes.loglog(*zip(*points, strict=True), marker, label="kept" if kept else "tried")
        axes.set_title("MLogQ by numbers of the model", fontsize=9)
        axes.tick_params(which="both", labelsize=7)
        axes.legend(fontsize=7)
    drawn = len(effects) + bool(tried)
    for place, one in enumerate(beyond, start=drawn + 1):
        _draw_beyond(figure.add_subplot(rows, _COLUMNS, place), one)
    if growth:
        axes = figure.add_subplot(rows, _COLUMNS, drawn + len(beyond) + 1)
        axes.loglog([one.rows for one in growth], [one.error for one in growth], marker="o")
        axes.set_title("MLogQ by number of rows", fontsize=9)
        axes.tick_params(which="both", labelsize=7)
    figure.supylabel(plain(f"{target}, relative to the mean"), fontsize=9)
    figure.savefig(path, dpi=130)


def _draw_beyond(axes: Axes, one: Beyond) -> None:
    """Draw the prediction beyond the measured values of a parameter; a vertical line marks the end of these values."""
    edge = one.inside - 1
    axes.plot(one.values[: edge + 1], np.exp(one.logs[: edge + 1]), color="C0")
    axes.plot(one.values[edge:], np.exp(one.logs[edge:]), color="C0", linestyle="--")
    axes.fill_between(one.values, np.exp(one.low), np.exp(one.high), color="C0", alpha=0.2)
    axes.axvline(one.values[edge], color="gray", linewidth=0.8)
    if one.values[0] > 0 and one.values[-1] / one.values[0] >= GEOMETRIC:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(plain(f"{one.parameter} beyond {one.values[edge]:g}: {', '.join(one.forms)}"), fontsize=9)
    axes.tick_params(which="both", labelsize=7)
