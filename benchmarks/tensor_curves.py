# SPDX-License-Identifier: Apache-2.0
"""Draw curves of `tensor_accuracy.py` as PNG files, like Figures 3 to 8 of Hutter and Solomonik (SC '23)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """Write cells.png (Figures 3, 5), rank.png (4), rows.png (6), size.png (7), extrapolation.png (8)."""
    folder.mkdir(parents=True, exist_ok=True)
    for quantity in ("cells", "rank") if results.get("error_by_grid") else ():
        figure = Figure(figsize=(12, 7), layout="constrained")
        for place, (name, series) in enumerate(results["error_by_grid"].items(), start=1):
            axes = figure.add_subplot(2, 3, place)
            for label, errors in series.items():
                if label.startswith(quantity):
                    axes.loglog([int(one) for one in errors], list(errors.values()), marker="o", label=label)
            axes.set_title(name)
            axes.set_xlabel("cells of each numeric mode" if quantity == "cells" else "rank")
            axes.set_ylabel("MLogQ")
            axes.legend(fontsize=7)
        figure.savefig(folder / f"{quantity}.png", dpi=130)
    if growth := results.get("error_by_rows"):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot()
        for name, errors in growth.items():
            axes.loglog([int(rows) for rows in errors], list(errors.values()), marker="o", label=name)
        axes.set_xlabel("training rows")
        axes.set_ylabel("MLogQ")
        axes.legend()
        figure.savefig(folder / "rows.png", dpi=130)
    figure = Figure(figsize=(12, 7), layout="constrained")
    for place, (name, errors) in enumerate(results.get("mlogq", {}).items(), start=1):
        axes = figure.add_subplot(2, 3, place)
        for model, error in errors.items():
            axes.loglog(results["bytes"][name][model], error, marker="o")
            axes.annotate(model, (results["bytes"][name][model], error), fontsize=7)
        axes.set_title(name)
        axes.set_xlabel("bytes")
        axes.set_ylabel("MLogQ")
    figure.savefig(folder / "size.png", dpi=130)
    if cells := results.get("extrapolation"):
        figure = Figure(figsize=(9, 4), layout="constrained")
        axes = figure.add_subplot()
        for model in ("quipu", "best"):
            points = [(place, cell[model]) for place, cell in enumerate(cells.values()) if model in cell]
            axes.semilogy(*zip(*points, strict=True), marker="o", linestyle="", label=model)
        axes.set_xticks(range(len(cells)), list(cells), rotation=70, fontsize=7)
        axes.set_ylabel("MLogQ")
        axes.legend()
        figure.savefig(folder / "extrapolation.png", dpi=130)
