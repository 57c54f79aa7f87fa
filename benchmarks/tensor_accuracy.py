# SPDX-License-Identifier: Apache-2.0
"""Compare tensor-completion models of many parameters with machine learning, on measured execution times.

    make bench-tensor_accuracy ARGS="--data DIR --models quipu,histogram,trees --curves out"

The data were published by the authors of "Application performance modeling via tensor completion" (SC '23,
github.com/huttered40/app_ed), as Parquet files SET_train.parquet and SET_test.parquet. They are not in this repository:
name their folder with --data. Errors are MLogQ, the mean |log(predicted / measured)|. All models are chosen without the
test set. Sets without a test set (exafmm, kripke) are cross-validated in four parts. Each model uses one thread.

The benchmark prints a line per measurement. With --state, an interrupted run continues. --curves draws Figures 3 to 8
of the paper. The last line is one JSON object:

- `mlogq` {set: {model}}: errors. `bytes` {set: {model}}: size of the model.
- `fit_seconds`, `fit_cpu_seconds` {set: {model}}: time of the fit. `predict_us` {set: {model}}: processor time of a
  prediction (µs per row).
- `covered`: share of test rows in the 90 % intervals.
- the same names with `_all`: for all rows of the training file, of Quipu and of the best other models (--rows).
- `extrapolation` {cell: {quipu, best}}: errors of Quipu and of the best other model.
- `error_by_rows` {set: {rows}}: errors of Quipu by the number of rows.
- `error_by_grid` {set: {"cells" or "rank" and rows: {cells or rank}}} (--grids): errors by the grid.
- the peak memory of a fit to many rows (--memory).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensor_peers import PEERS, available
from tensor_pieces import Piece, measured
from tensor_sets import EXTRAPOLATIONS, FOLDS, SETS

CELLS, CURVE_RANKS, GRID_ROWS = (4, 8, 16, 32, 64), (1, 2, 4, 8, 16), (1024, 8192)
"""Grids, ranks and training rows of the curves over them."""
GRID_RANK, GRID_CELLS = 8, 32
CURVE_ROWS = (256, 1024, 4096, 16384, 65536)
DIGITS = {"mlogq": 4, "bytes": 0, "fit_seconds": 2, "fit_cpu_seconds": 2, "predict_us": 2, "covered": 3}
Results = dict[Piece, dict[str, Any]]


def folds_of(name: str, most: int) -> range:
    """Return the held-out parts of a set, one for a set with a test file."""
    return range(1 if SETS[name].tested else min(most, FOLDS))


def best_others(found: Results, name: str, rows: int, count: int) -> list[str]:
    """Return the models with the least error, the best first."""
    errors: dict[str, list[float]] = {}
    for piece, result in found.items():
        if (piece.what, piece.name, piece.rows) == ("accuracy", name, rows) and piece.model != "quipu":
            errors.setdefault(piece.model, []).append(result["mlogq"])
    return sorted(errors, key=lambda model: float(np.mean(errors[model])))[:count]


def averages(found: Results, sets: Sequence[str], models: Sequence[str], rows: int, folds: int) -> dict[str, Any]:
    """Return quantities by set and model over the parts: means, the largest sizes, the fastest predictions."""
    result: dict[str, Any] = {}
    for name in sets:
        for model in models:
            pieces = [Piece("accuracy", name, model, rows, fold) for fold in folds_of(name, folds)]
            parts = [found[piece] for piece in pieces if piece in found]
            for quantity, digits in DIGITS.items():
                values = [one[quantity] for one in parts if quantity in one]
                if len(values) == len(pieces):
                    joined = {"bytes": np.max, "predict_us": np.min}.get(quantity, np.mean)(values)
                    result.setdefault(quantity, {}).setdefault(name, {})[model] = round(float(joined), digits)
    return result


def extrapolated(found: Results) -> dict[str, dict[str, float | str]]:
    """Return the errors beyond the training range, by cell: of Quipu, and of the best other model."""
    result: dict[str, dict[str, float | str]] = {}
    cells: dict[str, dict[str, float]] = {}
    for piece, one in found.items():
        if piece.what == "extrapolation":
            cells.setdefault(f"{piece.name} {piece.place}", {})[piece.model] = one["mlogq"]
    for label, _, limit in cells_of_figure_8():
        errors = dict(cells.get(f"{label} {limit}", {}))
        cell: dict[str, float | str] = {"quipu": round(errors.pop("quipu"), 3)} if "quipu" in errors else {}
        if errors:
            best = min(errors, key=lambda one: errors[one])
            cell |= {"best": round(errors[best], 3), "best_model": best}
        if cell:
            result[f"{label} {limit}"] = cell
    return result


def cells_of_figure_8() -> list[tuple[str, str, int]]:
    """Return the cells: label, set, largest value in training."""
    return [(label, name, limit) for label, (name, _, limits, _) in EXTRAPOLATIONS.items() for limit in limits]


def growth_pieces(name: str, largest: int) -> list[Piece]:
    """Return the measurements of the curve over training rows."""
    return [Piece("accuracy", name, "quipu", rows) for rows in CURVE_ROWS if rows <= largest]


def grid_pieces(name: str) -> dict[str, list[Piece]]:
    """Return the measurements by cells at one rank, and by ranks at one grid, by label of the curve."""
    result: dict[str, list[Piece]] = {}
    for rows in GRID_ROWS:
        cells = [Piece("grid", name, rows=rows, place=f"{size} {GRID_RANK}") for size in CELLS]
        ranks = [Piece("grid", name, rows=rows, place=f"{GRID_CELLS} {rank}") for rank in CURVE_RANKS]
        result |= {f"cells, {rows} rows": cells, f"rank, {rows} rows": ranks}
    return result


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure everything that is requested, and return the object of the last line."""
    sets = arguments.sets.split(",")
    models = [model for model in arguments.models.split(",") if model == "quipu" or available(model)]
    if missing := [model for model in arguments.models.split(",") if model not in models]:
        print(f"left out, since their packages are not installed: {', '.join(missing)}", file=sys.stderr)
    rest = (arguments.data, arguments.budget, arguments.workers, arguments.state)
    found = measured(
        [
            Piece("accuracy", name, model, arguments.rows, fold)
            for name in sets
            for fold in folds_of(name, arguments.folds)
            for model in models
        ],
        *rest,
    )
    result = averages(found, sets, models, arguments.rows, arguments.folds)
    if arguments.all_rows:
        chosen = {name: best_others(found, name, arguments.rows, arguments.all_rows) for name in sets}
        chosen |= {name: ["quipu", *chosen[name]] for name in sets if "quipu" in models}
        all_pieces = [
            Piece("accuracy", name, model, 0, fold)
            for name in sets
            for fold in folds_of(name, arguments.all_folds)
            for model in chosen[name]
        ]
        found = measured(all_pieces, *rest)
        whole = averages(found, sets, models, 0, arguments.all_folds)
        result |= {f"{quantity}_all": values for quantity, values in whole.items()}
    if arguments.growth and "quipu" in models:
        curves = {name: growth_pieces(name, arguments.growth) for name in sets}
        found = measured([piece for pieces in curves.values() for piece in pieces], *rest)
        result["error_by_rows"] = {
            name: {str(int(found[piece]["rows"])): round(found[piece]["mlogq"], 4) for piece in pieces}
            for name, pieces in curves.items()
        }
    if arguments.grids:
        grids = {name: grid_pieces(name) for name in sets}
        found = measured([one for curves in grids.values() for pieces in curves.values() for one in pieces], *rest)
        result["error_by_grid"] = {
            name: {
                label: {
                    piece.place.split()[label.startswith("rank")]: round(found[piece]["mlogq"], 4) for piece in pieces
                }
                for label, pieces in curves.items()
            }
            for name, curves in grids.items()
        }
    if not arguments.no_extrapolation:
        cells = [
            Piece("extrapolation", label, model, place=str(limit))
            for label, name, limit in cells_of_figure_8()
            if name in sets
            for model in models
        ]
        result["extrapolation"] = extrapolated(measured(cells, *rest))
    if arguments.memory:
        piece = Piece("memory", "synthetic", rows=arguments.memory)
        result["memory"] = {"rows": arguments.memory, **measured([piece], *rest)[piece]}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the Parquet files")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets, with commas")
    parser.add_argument(
        "--models", default="quipu," + ",".join(PEERS), help="models, with commas; missing are left out"
    )
    parser.add_argument("--rows", type=int, default=8192, help="training rows; 0: all")
    parser.add_argument("--folds", type=int, default=FOLDS, help="parts of the sets without a test file that are used")
    parser.add_argument("--all-rows", type=int, default=0, help="so many of the best other models on all rows, too")
    parser.add_argument("--all-folds", type=int, default=1, help="as --folds, with all rows")
    parser.add_argument("--budget", type=float, default=8.0, help="time_budget of Quipu")
    parser.add_argument("--growth", type=int, default=16384, help="most rows of the curve over rows; 0: no curve")
    parser.add_argument("--grids", action="store_true", help="errors by cells and by rank, too")
    parser.add_argument("--no-extrapolation", action="store_true")
    parser.add_argument("--memory", type=int, default=0, help="fit to so many synthetic rows in 8 GiB, too")
    parser.add_argument("--workers", type=int, default=1, help="measurements at a time")
    parser.add_argument("--state", type=Path, help="file of finished measurements, of the same code: not done again")
    parser.add_argument("--curves", type=Path, help="folder for curves as PNG (needs matplotlib)")
    arguments = parser.parse_args()
    result = run(arguments)
    if arguments.curves:
        from tensor_curves import draw

        draw(result, arguments.curves)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
