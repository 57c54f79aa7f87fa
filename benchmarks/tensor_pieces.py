# SPDX-License-Identifier: Apache-2.0
"""Make single measurements of `tensor_accuracy.py`, each in a process with one thread, and store each in a file."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.columns import ColumnModel
from quipu.modeling.tensor.storage import stored
from tensor_peers import Peer, peer
from tensor_sets import SETS, Array, cut, part
from threadpoolctl import threadpool_limits

TEST_ROWS, REPEATED = 12_000, 5
"""Rows for the time of predictions, and number of repetitions: the minimum is used."""
SLOW = 20.0
"""Predictions that take longer than this number of seconds are measured once."""
MEMORY = 8 << 30
"""Bytes of address space that the fit of many rows may use."""


@dataclass(frozen=True)
class Piece:
    """One measurement. what: accuracy, grid, extrapolation or memory; rows 0: all; place: the cell of a curve."""

    what: str
    name: str
    model: str = "quipu"
    rows: int = 0
    fold: int = 0
    place: str = ""


def mlogq(predicted: Array, measured: Array) -> float:
    """Return the mean |log(predicted / measured)|."""
    return float(np.abs(np.log(np.clip(predicted, 1e-300, 1e300) / measured)).mean())


def fit_quipu(name: str, x: Array, y: Array, budget: float) -> tuple[TensorModel, int]:
    """Return a model and the bytes of its two files."""
    one = SETS[name]
    model = TensorModel(categorical=one.unordered, time_budget=budget).fit(x, y)
    document, content = stored(ColumnModel(one.columns, {}, one.target, model))
    return model, len(json.dumps(document).encode()) + len(content)


def _accuracy(piece: Piece, folder: Path, budget: float) -> dict[str, Any]:
    x, y, x_test, y_test = part(folder, piece.name, piece.rows or None, piece.fold)
    started, worked = time.perf_counter(), time.process_time()
    fitted: TensorModel | Peer
    if piece.model == "quipu":
        fitted, size = fit_quipu(piece.name, x, y, budget)
    else:
        fitted, size = peer(piece.model, x, y, SETS[piece.name].unordered)
    result: dict[str, Any] = {"rows": len(x), "bytes": size, "fit_seconds": time.perf_counter() - started}
    result["fit_cpu_seconds"] = time.process_time() - worked
    shown = np.tile(x_test, (TEST_ROWS // len(x_test) + 1, 1))[:TEST_ROWS]
    micro: list[float] = []
    while len(micro) < REPEATED and sum(micro) * TEST_ROWS < SLOW * 1e6:
        worked = time.process_time()
        fitted.predict(shown)
        micro.append((time.process_time() - worked) / len(shown) * 1e6)
    result |= {"predict_us": min(micro), "mlogq": mlogq(fitted.predict(x_test), y_test)}
    if isinstance(fitted, TensorModel):
        _, low, high = fitted.predict_interval(x_test)
        result["covered"] = float(np.mean((y_test >= low) & (y_test <= high)))
    return result


def _grid(piece: Piece, folder: Path, _: float) -> dict[str, Any]:
    """Return the error with this number of cells of each numeric mode and this rank."""
    cells, rank = (int(one) for one in piece.place.split())
    unordered = SETS[piece.name].unordered
    x, y, x_test, y_test = part(folder, piece.name, piece.rows, 0)
    knots = [
        np.geomspace(column.min(), column.max(), cells + 1).tolist()
        if number not in unordered and column.min() > 0 and len(np.unique(column)) > cells
        else None
        for number, column in enumerate(x.T)
    ]
    model = TensorModel(
        categorical=unordered,
        knots=knots,
        rank=rank,
        smoothness=1e-6,
        ridge=1e-4,
        derive=False,
        extrapolation="hold",
        time_budget=0.01,
    )
    return {"mlogq": mlogq(model.fit(x, y).predict(x_test), y_test)}


def _extrapolation(piece: Piece, folder: Path, _: float) -> dict[str, Any]:
    x, y, x_test, y_test = cut(folder, piece.name, int(piece.place))
    if piece.model == "quipu":
        fitted: Any = TensorModel(time_budget=3.0).fit(x, y)
    else:
        fitted, _ = peer(piece.model, x, y, [])
    with np.errstate(over="ignore"):
        return {"mlogq": mlogq(fitted.predict(x_test), y_test)}


def _memory(piece: Piece, _: Path, budget: float) -> dict[str, Any]:
    """Fit to this number of rows with a limit on the address space; raise MemoryError if it does not fit."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    random = np.random.default_rng(0)
    x = np.empty((piece.rows, 3))
    x[:, :2] = np.exp(random.uniform(3, 8, (piece.rows, 2)))
    x[:, 2] = 2.0 ** random.integers(0, 7, piece.rows)
    noise = random.standard_normal(piece.rows, dtype=np.float32)
    y = 1e-6 * x[:, 0] * x[:, 1] ** 1.1 / x[:, 2] ** 0.9 * np.exp(0.05 * noise)
    started, worked = time.perf_counter(), time.process_time()
    model = TensorModel(time_budget=budget).fit(x, y)
    seconds, processor = time.perf_counter() - started, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    shown = slice(0, 10_000)
    return {
        "limit_gib": MEMORY / 2**30,
        "peak_gib": peak,
        "fit_seconds": seconds,
        "fit_cpu_seconds": processor,
        "mlogq": mlogq(model.predict(x[shown]), y[shown]),
    }


MEASURE: dict[str, Callable[[Piece, Path, float], dict[str, Any]]] = {
    "accuracy": _accuracy,
    "grid": _grid,
    "extrapolation": _extrapolation,
    "memory": _memory,
}


def measure(piece: Piece, folder: Path, budget: float) -> dict[str, Any]:
    """Return a measurement, with the load of the machine during it."""
    with threadpool_limits(1):
        result = MEASURE[piece.what](piece, folder, budget)
    return {**{name: float(f"{value:.6g}") for name, value in result.items()}, "load": round(os.getloadavg()[0], 1)}


def known(state: Path | None) -> dict[Piece, dict[str, Any]]:
    """Return the finished measurements of a file; the last one of a piece counts."""
    if state is None or not state.exists():
        return {}
    lines = [json.loads(line) for line in state.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return {Piece(**line["piece"]): line["result"] for line in lines}


def measured(
    pieces: Iterable[Piece], folder: Path, budget: float, workers: int, state: Path | None
) -> dict[Piece, dict[str, Any]]:
    """Return the results of all pieces: those in the file of finished ones, others are measured and added to it."""
    found = known(state)
    open_ones = [piece for piece in dict.fromkeys(pieces) if piece not in found]
    # Peak memory and its limit are properties of a process.
    tasks = 1 if any(piece.what == "memory" for piece in open_ones) else None
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), max_tasks_per_child=tasks) as pool:
        waiting = {pool.submit(measure, piece, folder, budget): piece for piece in open_ones}
        for future in as_completed(waiting):
            piece = waiting[future]
            found[piece] = future.result()
            print(f"{' '.join(str(value) for value in asdict(piece).values())}: {found[piece]}", flush=True)
            if state is not None:
                with state.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"piece": asdict(piece), "result": found[piece]}) + "\n")
    return found
