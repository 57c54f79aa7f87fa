"""Plots of tensor models as files: effects of parameters. Needs matplotlib (`pip install 'quipu[plots]'`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from quipu.modeling.errors import UsageError
from quipu.modeling.tensor.explain import Effect, Tried

from .figures import GEOMETRIC, new_figure, plain

SUFFIXES = (".png", ".svg", ".pdf")
_COLUMNS = 3
_MOST_LABELS = 8


def draw_effects(effects: Sequence[Effect], target: str, path: Path, tried: Sequence[Tried] = ()) -> None:
    """Draw the main effect of each parameter as a factor on the time, and the models that were tried by size and error.

    Raises UsageError for a file of another kind, EnvironmentProblem without matplotlib, OSError.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {path}: the name must end with {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise UsageError(f"--plot {path}: the folder {path.parent} does not exist: make it first")
    tried = [one for one in tried if one.error > 0]
    rows = -(-(len(effects) + bool(tried)) // _COLUMNS)
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
        axes.tick_params(labelsize=7)
    if tried:
        axes = figure.add_subplot(rows, _COLUMNS, len(effects) + 1)
        for kept, marker in ((False, "."), (True, "o-")):
            points = [(one.size, one.error) for one in tried if one.kept is kept]
            if points:
                axes.loglog(*zip(*points, strict=True), marker, label="kept" if kept else "tried")
        axes.set_title("MLogQ by numbers of the model", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.legend(fontsize=7)
    figure.supylabel(plain(f"{target}, relative to the mean"), fontsize=9)
    figure.savefig(path, dpi=130)
