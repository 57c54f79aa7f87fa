"""Curves of `tensor_accuracy.py` as PNG files: errors by rows, errors by size of the model, errors beyond the range."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure


def draw(results: Mapping[str, Any], folder: Path) -> None:
    """Write rows.png, size.png and extrapolation.png, as far as they were measured."""
    folder.mkdir(parents=True, exist_ok=True)
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
