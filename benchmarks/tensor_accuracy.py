"""Tensor-completion models of many parameters beside models of machine learning, on measured execution times.

The data are those that the authors of "Application performance modeling via tensor completion" (SC '23) published
(github.com/huttered40/app_ed), as Parquet files SET_train.parquet and SET_test.parquet, which are not in this
repository: name their folder with --data. Errors are MLogQ, the mean |log(predicted / measured)|. All models are chosen
without the test set; sets without one (exafmm, kripke) are cross-validated in four parts.

    make bench-tensor_accuracy ARGS="--data DIR --models quipu,histogram,trees --curves out"

Prints a line per model, and as the last line one JSON object: `mlogq` {set: {model: value}}, `bytes` {set: {model:
value}}, `fit_seconds` and `fit_cpu_seconds` {set: {model: value}}, `predict_us` {set: {model: value}} per row, and
`covered`, the share of test rows in the 90 % intervals, `extrapolation` {cell: {quipu, best}} with the best of the
other models at hand, `error_by_rows` {set: {rows: value}} of Quipu, and with --grids `error_by_grid` {set: {"cells" or
"rank" and rows: {cells or rank: value}}}. --curves draws them as Figures 3 to 8 of the paper are. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.columns import ColumnModel
from quipu.modeling.tensor.storage import stored
from tensor_peers import PEERS, Peer, available, peer
from threadpoolctl import threadpool_limits

Array = NDArray[np.float64]
TEST_ROWS, REPEATED = 12_000, 5
"""Rows that the time of predictions is measured with, and how often: the least counts."""
CELLS, CURVE_RANKS, GRID_ROWS = (4, 8, 16, 32, 64), (1, 2, 4, 8, 16), (1024, 8192)
"""Grids, ranks and training rows of the curves over them."""


@dataclass(frozen=True)
class Set:
    """A data set: the columns that are parameters, those without an order, the target."""

    columns: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    target: str = "time_s"
    tested: bool = True


SETS = {
    "geqrf": Set(("m", "n")),
    "gemm": Set(("m", "n", "k")),
    "bcast": Set(("msgsize", "ppn", "nnodes")),
    "exafmm": Set(("ppn", "tpp", "nbodies", "ncrit", "level", "order"), tested=False),
    "amg": Set(
        ("nx", "ny", "nz", "coarsen_type", "relax_type", "interp_type", "tpp", "ppn"),
        ("coarsen_type", "relax_type", "interp_type"),
    ),
    "kripke": Set(
        ("ppn", "tpp", "layout", "dset", "gset", "groups", "quad", "legendre", "solver"),
        ("layout", "solver"),
        "time_sweepsubdomain_s",
        tested=False,
    ),
}
# The extrapolations of Figure 8: set, columns that are cut, largest values in training, test range.
EXTRAPOLATIONS = {
    "gemm m": ("gemm", ("m",), (2048, 1024, 512, 256), (2048, 4096)),
    "gemm m,n,k": ("gemm", ("m", "n", "k"), (2048, 1024, 512, 256), (2048, 4096)),
    "bcast nodes": ("bcast", ("nnodes",), (64, 32, 16, 8), (128, 128)),
    "bcast message": ("bcast", ("msgsize",), (2**25, 2**23, 2**21, 2**19), (2**25, 2**26)),
}


def read(folder: Path, name: str, part: str) -> tuple[Array, Array]:
    """Return the rows and times of a part, train or test, of a set."""
    path = folder / f"{name}_{part}.parquet"
    table = pq.read_table(path)
    one = SETS[name]
    x = np.column_stack([table[column].to_numpy().astype(float) for column in one.columns])
    target = one.target if one.target in table.column_names else "time_s"
    return x, table[target].to_numpy().astype(float)


def mlogq(predicted: Array, measured: Array) -> float:
    return float(np.abs(np.log(predicted / measured)).mean())


def parts(folder: Path, name: str, rows: int | None) -> list[tuple[Array, Array, Array, Array]]:
    """Return training and test rows: those of the test file, or of four parts; `rows` of them train."""
    x, y = read(folder, name, "train")
    if SETS[name].tested:
        return [(x[:rows], y[:rows], *read(folder, name, "test"))]
    fold = np.arange(len(x)) % 4
    result = []
    for part in range(4):
        train, test = np.flatnonzero(fold != part)[:rows], np.flatnonzero(fold == part)
        result.append((x[train], y[train], x[test], y[test]))
    return result


def fit_quipu(name: str, x: Array, y: Array, budget: float) -> tuple[TensorModel, int]:
    """Return a model and the bytes of its two files."""
    one = SETS[name]
    categorical = [one.columns.index(column) for column in one.categorical]
    model = TensorModel(categorical=categorical, time_budget=budget).fit(x, y)
    document, content = stored(ColumnModel(one.columns, {}, one.target, model))
    return model, len(json.dumps(document).encode()) + len(content)


class Results:
    """What was measured, by quantity, set and model."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, quantity: str, name: str, model: str, value: float, digits: int = 4) -> None:
        self.values.setdefault(quantity, {}).setdefault(name, {})[model] = round(value, digits)


def accuracy(
    folder: Path, name: str, models: Sequence[str], rows: int | None, folds: int, budget: float, results: Results
) -> None:
    """Measure all models on one set."""
    data = parts(folder, name, rows)[:folds]
    for model in models:
        errors, seconds, processor, sizes, micro, covered = [], [], [], [], [], []
        for x, y, x_test, y_test in data:
            started, worked = time.perf_counter(), time.process_time()
            fitted: TensorModel | Peer
            if model == "quipu":
                fitted, size = fit_quipu(name, x, y, budget)
            else:
                one = SETS[name]
                fitted, size = peer(model, x, y, [one.columns.index(column) for column in one.categorical])
            seconds.append(time.perf_counter() - started)
            processor.append(time.process_time() - worked)
            shown = np.tile(x_test, (TEST_ROWS // len(x_test) + 1, 1))[:TEST_ROWS]
            for _ in range(REPEATED):
                begun = time.perf_counter()
                fitted.predict(shown)
                micro.append((time.perf_counter() - begun) / len(shown) * 1e6)
            errors.append(mlogq(fitted.predict(x_test), y_test))
            sizes.append(size)
            if isinstance(fitted, TensorModel):
                _, low, high = fitted.predict_interval(x_test)
                covered.append(float(np.mean((y_test >= low) & (y_test <= high))))
        results.add("mlogq", name, model, float(np.mean(errors)))
        results.add("bytes", name, model, float(np.max(sizes)), 0)
        results.add("fit_seconds", name, model, float(np.mean(seconds)), 2)
        results.add("fit_cpu_seconds", name, model, float(np.mean(processor)), 2)
        results.add("predict_us", name, model, float(np.min(micro)), 2)
        if covered:
            results.add("covered", name, model, float(np.mean(covered)), 3)
        print(
            f"{name:8} {model:12} MLogQ {np.mean(errors):.4f}, {np.max(sizes):.0f} bytes, fit {np.mean(seconds):.1f} s "
            f"({np.mean(processor):.1f} s of the processor), {np.min(micro):.2f} us a row",
            flush=True,
        )


def extrapolation(folder: Path, models: Sequence[str]) -> dict[str, dict[str, float | str]]:
    """Return the errors beyond the training range, by cell: of Quipu, and of the best other model."""
    result: dict[str, dict[str, float | str]] = {}
    for label, (name, columns, limits, (low, high)) in EXTRAPOLATIONS.items():
        x, y = read(folder, name, "train")
        numbers = [SETS[name].columns.index(column) for column in columns]
        test = ((x[:, numbers] >= low) & (x[:, numbers] <= high)).all(axis=1)
        for limit in limits:
            train = np.flatnonzero((x[:, numbers] <= limit).all(axis=1))[:4096]
            errors = {}
            for model in models:
                if model == "quipu":
                    fitted: Any = TensorModel(time_budget=3.0).fit(x[train], y[train])
                else:
                    fitted, _ = peer(model, x[train], y[train], [])
                with np.errstate(over="ignore"):
                    errors[model] = mlogq(np.clip(fitted.predict(x[test]), 1e-300, 1e300), y[test])
            cell: dict[str, float | str] = {"quipu": round(errors.pop("quipu"), 3)}
            if errors:
                best = min(errors, key=lambda one: errors[one])
                cell |= {"best": round(errors[best], 3), "best_model": best}
            result[f"{label} {limit}"] = cell
            print(f"extrapolation {label} from {limit}: {cell}", flush=True)
    return result


def by_rows(folder: Path, name: str, largest: int, budget: float) -> dict[str, float]:
    """Return the error of Quipu for growing numbers of rows."""
    result = {}
    sizes = [rows for rows in (256, 1024, 4096, 16384, 65536) if rows <= largest]
    for rows in sizes:
        x, y, x_test, y_test = parts(folder, name, rows)[0]
        model, _ = fit_quipu(name, x, y, budget)
        result[str(len(x))] = round(mlogq(model.predict(x_test), y_test), 4)
    print(f"{name}: error by rows {result}", flush=True)
    return result


def by_grid(folder: Path, name: str, rows: Sequence[int]) -> dict[str, dict[str, float]]:
    """Return errors by cells of each mode at rank 8, for each number of rows, and by rank at 32 cells."""
    one = SETS[name]
    result: dict[str, dict[str, float]] = {}
    for count in rows:
        x, y, x_test, y_test = parts(folder, name, count)[0]
        fixed: dict[str, Any] = {"smoothness": 1e-6, "ridge": 1e-4, "derive": False, "extrapolation": "hold"}
        fixed["categorical"] = [one.columns.index(column) for column in one.categorical]
        for label, cells, ranks in ((f"cells, {count} rows", CELLS, (8,)), (f"rank, {count} rows", (32,), CURVE_RANKS)):
            for size, rank in product(cells, ranks):
                knots = [
                    np.geomspace(column.min(), column.max(), size + 1).tolist()
                    if number not in fixed["categorical"] and column.min() > 0 and len(np.unique(column)) > size
                    else None
                    for number, column in enumerate(x.T)
                ]
                model = TensorModel(knots=knots, rank=rank, time_budget=0.01, **fixed).fit(x, y)
                error = round(mlogq(model.predict(x_test), y_test), 4)
                result.setdefault(label, {})[str(size if len(cells) > 1 else rank)] = error
    print(f"{name}: error by cells and rank {result}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the Parquet files")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets, with commas")
    parser.add_argument(
        "--models", default="quipu," + ",".join(PEERS), help="models, with commas; missing are left out"
    )
    parser.add_argument("--rows", type=int, default=8192, help="training rows; 0: all")
    parser.add_argument("--folds", type=int, default=4, help="parts of the sets without a test file that are used")
    parser.add_argument("--budget", type=float, default=7.0, help="time_budget of Quipu")
    parser.add_argument("--growth", type=int, default=16384, help="most rows of the curve over rows; 0: no curve")
    parser.add_argument("--grids", action="store_true", help="errors by cells and by rank, too")
    parser.add_argument("--no-extrapolation", action="store_true")
    parser.add_argument("--curves", type=Path, help="folder for curves as PNG (needs matplotlib)")
    arguments = parser.parse_args()
    threadpool_limits(1)
    models = [model for model in arguments.models.split(",") if model == "quipu" or available(model)]
    results = Results()
    growth: dict[str, dict[str, float]] = {}
    grids: dict[str, Any] = {}
    for name in arguments.sets.split(","):
        accuracy(arguments.data, name, models, arguments.rows or None, arguments.folds, arguments.budget, results)
        if arguments.growth:
            growth[name] = by_rows(arguments.data, name, arguments.growth, arguments.budget)
        if arguments.grids:
            grids[name] = by_grid(arguments.data, name, GRID_ROWS)
    printed: dict[str, Any] = dict(results.values)
    if not arguments.no_extrapolation:
        printed["extrapolation"] = extrapolation(arguments.data, models)
    if growth:
        printed["error_by_rows"] = growth
    if grids:
        printed["error_by_grid"] = grids
    if arguments.curves:
        from tensor_curves import draw

        draw(printed, arguments.curves)
    print(json.dumps(printed))


if __name__ == "__main__":
    main()
