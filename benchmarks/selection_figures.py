# SPDX-License-Identifier: Apache-2.0
"""Draw figures 5, 6 and 8 of the published evaluation as PNG files, with the results of `selection_study.py`.

Solid lines show these results. Dashed lines of the same color show published results (Extra-P).
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from modeling_sets import Floats
from quipu.modeling.design import STRATEGIES
from selection_functions import grid, noisy

Errors = Mapping[str, Mapping[str, Sequence[float]]]
Curve = list[tuple[float, float]]
PUBLISHED = {
    "CPF": "cpf",
    "GPR": "gpr",
    "hybrid": "hybrid",
    "random": "random",
    "grid": "grid",
    "bayesian": "bayes",
    "full": "full",
}
SOURCE = "rebuttal(paper Fig5)"
COLORS = {name: f"C{place}" for place, name in enumerate(STRATEGIES)}
WITHIN = (5, 10, 15, 20)


def published_curves(folder: Path | None) -> dict[tuple[int, float, int], dict[str, Curve]]:
    """Return by parameters, noise and bound the published shares of each strategy over the budget, in %."""
    found: dict[tuple[int, float, int], dict[str, Curve]] = defaultdict(lambda: defaultdict(list))
    if folder is None:
        return found
    with gzip.open(folder / "published_synthetic_results.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["source"] == SOURCE:
                key = int(row["m"]), float(row["noise"]), int(row["bucket"])
                place = float(row["budget_percent"]), float(row["accuracy_percent"])
                found[key][PUBLISHED[row["strategy"]]].append(place)
    return found


def curves(errors: Errors, parameters: int, noise: float, within: int) -> dict[str, Curve]:
    """Return the shares of each strategy over the budget, in %."""
    found: dict[str, Curve] = defaultdict(list)
    start = f"m{parameters}_n{noise:g}_b"
    for case, strategies in errors.items():
        if case.startswith(start):
            for strategy, values in strategies.items():
                share = 100.0 * float(np.mean(np.array(values) <= within / 100))
                found[strategy].append((float(case.removeprefix(start)), share))
    return {strategy: sorted(curve) for strategy, curve in found.items()}


def draw(errors: Errors, extrap: Errors, options: Any, noises: Mapping[str, Floats]) -> None:
    """Write figure5.png, figure6.png and figure8.png, and the first two for models of Extra-P if there are such.

    noises: ranges of repetitions in % of their means, by name of the measurements.
    """
    options.figures.mkdir(parents=True, exist_ok=True)
    published = published_curves(options.published)
    for name, found in (("", errors), ("_extrap", extrap)):
        if not found:
            continue
        cases = sorted({tuple(case.split("_")[:2]) for case in found})
        rows = sorted({case[0] for case in cases})
        columns = sorted({case[1] for case in cases}, key=lambda text: float(text[1:]))

        def panel(axes: Axes, row: str, column: str, within: int, found: Errors = found) -> None:
            parameters, noise = int(row[1:]), float(column[1:])
            _panel(axes, curves(found, parameters, noise, within), published.get((parameters, noise, within), {}))
            axes.set_title(f"m = {parameters}, ±{noise:g} % noise, within ±{within} %", fontsize=8)

        _figure(
            [[(row, column, 5) for column in columns] for row in rows], panel, options.figures / f"figure5{name}.png"
        )
        if any(case.startswith("m3_n10_") for case in found):
            wide = [[("m3", "n10", within) for within in WITHIN]]
            _figure(wide, panel, options.figures / f"figure6{name}.png")
    _violins(noises, options.figures / "figure8.png")


def _figure(places: list[list[tuple[str, str, int]]], panel: Callable[..., None], file: Path) -> None:
    figure = Figure(figsize=(3.4 * len(places[0]), 2.9 * len(places) + 0.5), layout="constrained")
    every = figure.subplots(len(places), len(places[0]), squeeze=False)
    handles: dict[str, Any] = {}
    for row, line in zip(every, places, strict=True):
        for axes, place in zip(row, line, strict=True):
            panel(axes, *place)
            handles |= {label: own for own, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.supxlabel("budget in % of all points with all repetitions")
    figure.supylabel("% of models")
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=6, fontsize=8)
    figure.savefig(file, dpi=110)


def _panel(axes: Axes, found: Mapping[str, Curve], published: Mapping[str, Curve]) -> None:
    for name, curve in published.items():
        label = f"{name}, published"
        axes.plot(*zip(*sorted(curve), strict=True), "--", color=COLORS[name], linewidth=0.8, alpha=0.7, label=label)
    for name, curve in found.items():
        axes.plot(*zip(*curve, strict=True), "-o", color=COLORS[name], markersize=3, linewidth=1.2, label=name)
    axes.set_xscale("log")
    axes.set_ylim(0, 102)
    axes.grid(alpha=0.3)


def _violins(noises: Mapping[str, Floats], file: Path) -> None:
    figure = Figure(figsize=(1.3 * len(noises) + 2.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    axes.violinplot([own.tolist() for own in noises.values()], showmeans=True, showmedians=True)
    axes.set_xticks(range(1, len(noises) + 1), list(noises), fontsize=8)
    axes.set_ylabel("range of repetitions in % of their mean")
    axes.grid(alpha=0.3, axis="y")
    figure.savefig(file, dpi=110)


def planted_noise(levels: Sequence[float], kind: str) -> dict[str, Floats]:
    """Return the ranges of repetitions of planted functions in % of their means, by level of noise."""
    values = np.ones(len(grid(4)[0]))
    return {f"±{level:g} %": ranges(noisy(values, level / 100, kind, (1, round(level)))) for level in levels}


def ranges(values: Floats) -> Floats:
    """Return the ranges of repetitions (N, R) in % of their means, (N,)."""
    result: Floats = 100.0 * np.ptp(values, axis=1) / values.mean(axis=1)
    return result
