"""Plots of tensor models as files: effects of parameters. Needs matplotlib (`pip install 'quipu[plots]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from quipu.modeling.errors import EnvironmentProblem, UsageError
from quipu.modeling.printable import one_line
from quipu.modeling.tensor.explain import Effect

SUFFIXES = (".png", ".svg", ".pdf")
_COLUMNS = 3
_MOST_LABELS = 8
_GEOMETRIC = 8.0  # ratio of values from which an axis is logarithmic


def draw_effects(effects: Sequence[Effect], target: str, path: Path) -> None:
    """Draw the main effect of each parameter as a factor on the time.

    Raises UsageError for a file of another kind, EnvironmentProblem without matplotlib, OSError.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {path}: the name must end with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise UsageError(f"--plot {path}: the folder {path.parent} does not exist: make it first")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem("plots need matplotlib: pip install 'quipu[plots]'") from error
    rows = -(-len(effects) // _COLUMNS)
    figure = Figure(figsize=(3.6 * _COLUMNS, 2.6 * rows), layout="constrained")
    for place, effect in enumerate(effects, start=1):
        axes = figure.add_subplot(rows, _COLUMNS, place)
        factors = np.exp(effect.logs)
        numbers = [value for value in effect.values if not isinstance(value, str)]
        if len(numbers) < len(effect.values):
            places = np.arange(len(effect.values))
            axes.bar(places, factors)
            shown = places[:: max(1, len(places) // _MOST_LABELS)]
            axes.set_xticks(shown, [_plain(str(effect.values[at])) for at in shown], rotation=45)
        else:
            axes.plot(numbers, factors, marker="." if len(numbers) < 20 else "")
            if min(numbers) > 0 and max(numbers) / min(numbers) >= _GEOMETRIC:
                axes.set_xscale("log")
        if factors.max() / factors.min() >= _GEOMETRIC:
            axes.set_yscale("log")
        axes.set_title(_plain(f"{effect.parameter}: {100 * effect.total:.1f} %"), fontsize=9)
        axes.tick_params(labelsize=7)
    figure.supylabel(_plain(f"{target}, relative to the mean"), fontsize=9)
    figure.savefig(path, dpi=130)


def _plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics."""
    return one_line(text).replace("$", r"\$")
