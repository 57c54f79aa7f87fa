# SPDX-License-Identifier: Apache-2.0
"""Measure the coverage of the 90 % intervals of tensor models: few and many rows, repeated configurations.

    make bench-tensor_intervals ARGS="--data DIR"

The data are several kinds of synthetic times (noise that depends on the place, heavy tails, categories, twelve
parameters, steps, repeated configurations) and, with --data, the sets of `tensor_accuracy.py`. A model of some rows is
tested on other rows within the measured range. Models of repeated configurations are tested on configurations that were
not measured.

The benchmark prints a line per kind. The last line is one JSON object: `covered` {rows: {kind}}, the share of rows
inside of their intervals, mean over draws; `width` {rows: {kind}}, the median of upper end / lower end; `outside`, the
number of shares that are not within 85 to 95 %.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from quipu.modeling.tensor import TensorModel
from tensor_sets import SETS, Array, read
from threadpoolctl import threadpool_limits

ROWS, DRAWS, TESTED = (30, 60, 100, 300, 1000), 8, 2000
LOWEST, HIGHEST = 0.85, 0.95
REPETITIONS = 5
Data = tuple[Array, Array, list[int]]
Random = np.random.Generator


def _product(random: Random, count: int, noise: float) -> Data:
    x = np.exp(random.uniform(0, 7, (count, 3)))
    times = 1e-3 * x[:, 0] * x[:, 1] ** 0.5 * (1 + x[:, 2] / 50)
    return x, times * np.exp(noise * random.standard_normal(count)), []


def _grid(random: Random, count: int) -> Data:
    x = np.exp2(random.integers(0, 6, (count, 3)).astype(float))
    return x, (x[:, 0] * x[:, 1] / x[:, 2] + 5) * np.exp(0.05 * random.standard_normal(count)), []


def _twelve(random: Random, count: int) -> Data:
    x = random.integers(1, 9, (count, 12)).astype(float)
    times = np.exp(0.1 * x[:, :6].sum(axis=1)) * (1 + x[:, 6] * x[:, 7] / 10) / x[:, 8] ** 0.7
    return x, times * np.exp(0.1 * random.standard_normal(count)), [11]


def _categories(random: Random, count: int) -> Data:
    x = random.integers(0, 6, (count, 5)).astype(float)
    planted = np.random.default_rng(7)
    alone, together = planted.normal(size=(5, 6)), planted.normal(size=(6, 6))
    codes = x.astype(int)
    logs = alone[np.arange(5), codes].sum(axis=1) + 0.5 * together[codes[:, 0], codes[:, 1]]
    return x, np.exp(logs + 0.1 * random.standard_normal(count)), [0, 1, 2, 3, 4]


def _uneven(random: Random, count: int) -> Data:
    x = np.exp(random.uniform(0, 6, (count, 3)))
    noise = random.standard_normal(count) * (0.02 + 0.3 * (x[:, 1] > 50))
    return x, (1 + x[:, 0] * x[:, 2]) * np.exp(noise), []


def _tails(random: Random, count: int) -> Data:
    x = np.exp(random.uniform(0, 6, (count, 3)))
    return x, (1 + x[:, 0] * x[:, 2] / x[:, 1]) * np.exp(0.03 * np.abs(random.standard_t(1.5, count))), []


def _largest(random: Random, count: int) -> Data:
    x = np.exp(random.uniform(0, 8, (count, 4)))
    times = np.maximum(x[:, 0] * x[:, 1] / x[:, 2], x[:, 3] * 5)
    return x, times * np.exp(0.03 * random.standard_normal(count)), []


def _waves(random: Random, count: int) -> Data:
    x = random.uniform(-5, 5, (count, 3))
    logs = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 10
    return x, np.exp(logs + 0.05 * random.standard_normal(count)), []


def _steps(random: Random, count: int) -> Data:
    x = np.exp(random.uniform(0, 8, (count, 2)))
    times = np.where(x[:, 0] > 300, 8, 1) * x[:, 0] * (1 + x[:, 1] / 100)
    return x, times * np.exp(0.03 * random.standard_normal(count)), []


def _repeated(make: Callable[[Random, int], Data]) -> Callable[[Random, int], Data]:
    """Return a kind whose configurations are repeated, each with a separate error plus noise."""

    def made(random: Random, count: int) -> Data:
        x, times, categorical = make(random, -(-count // REPETITIONS))
        x, times = np.repeat(x, REPETITIONS, axis=0)[:count], np.repeat(times, REPETITIONS)[:count]
        return x, times * np.exp(0.02 * random.standard_normal(count)), categorical

    return made


KINDS: dict[str, Callable[[Random, int], Data]] = {
    "product": lambda random, count: _product(random, count, 0.05),
    "noisy": lambda random, count: _product(random, count, 0.6),
    "grid": _grid,
    "twelve": _twelve,
    "categories": _categories,
    "uneven": _uneven,
    "tails": _tails,
    "largest": _largest,
    "waves": _waves,
    "steps": _steps,
    "product repeated": _repeated(lambda random, count: _product(random, count, 0.2)),
    "largest repeated": _repeated(_largest),
    "waves repeated": _repeated(_waves),
}


def synthetic(kind: str, rows: int, draws: int) -> Iterator[tuple[Data, Data]]:
    """Yield training and test data of a kind."""
    for draw in range(draws):
        random = np.random.default_rng([draw, rows, list(KINDS).index(kind)])
        yield KINDS[kind](random, rows), KINDS[kind](random, TESTED)


def measured(folder: Path, name: str, rows: int, draws: int) -> Iterator[tuple[Data, Data]]:
    """Yield training rows of a training file, and other rows for tests."""
    x, times = read(folder, name, "train")
    for draw in range(draws):
        order = np.random.default_rng([draw, rows]).permutation(len(x))
        train, test = order[:rows], order[rows : rows + TESTED]
        yield (x[train], times[train], SETS[name].unordered), (x[test], times[test], [])


def coverage(data: Iterator[tuple[Data, Data]], budget: float) -> tuple[float, float]:
    """Return the share of test rows in their intervals, and the median ratio of the ends."""
    shares, widths = [], []
    for (x, times, categorical), (x_test, y_test, _) in data:
        model = TensorModel(categorical=categorical, time_budget=budget).fit(x, times)
        inside = ~model.extrapolated(x_test).any(axis=1)
        _, low, high = model.predict_interval(x_test[inside])
        shares.append(float(np.mean((y_test[inside] >= low) & (y_test[inside] <= high))))
        widths.append(float(np.median(high / low)))
    return float(np.mean(shares)), float(np.mean(widths))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the Parquet files of tensor_accuracy.py")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="training rows, with commas")
    parser.add_argument("--kinds", default="", help="kinds or sets, with commas; default: all")
    parser.add_argument("--draws", type=int, default=DRAWS, help="models per kind and number of rows")
    parser.add_argument("--budget", type=float, default=1.0, help="time_budget of the models")
    arguments = parser.parse_args()
    kinds = [*KINDS, *(SETS if arguments.data else ())]
    if arguments.kinds:
        if wrong := [kind for kind in arguments.kinds.split(",") if kind not in kinds]:
            parser.error(f"--kinds {wrong[0]}: choose of {', '.join(kinds)}; sets need --data")
        kinds = arguments.kinds.split(",")
    covered: dict[str, dict[str, float]] = {}
    widths: dict[str, dict[str, float]] = {}
    with threadpool_limits(1):
        for rows in (int(one) for one in arguments.rows.split(",")):
            for kind in kinds:
                made = (
                    synthetic(kind, rows, arguments.draws)
                    if kind in KINDS
                    else measured(arguments.data, kind, rows, arguments.draws)
                )
                share, width = coverage(made, arguments.budget)
                covered.setdefault(str(rows), {})[kind] = round(share, 3)
                widths.setdefault(str(rows), {})[kind] = round(width, 2)
                print(f"{rows} rows, {kind}: {share:.3f} covered, upper end {width:.2f} times the lower", flush=True)
    shares = [share for one in covered.values() for share in one.values()]
    outside = sum(not LOWEST <= share <= HIGHEST for share in shares)
    print(json.dumps({"covered": covered, "width": widths, "outside": outside, "of": len(shares)}))


if __name__ == "__main__":
    main()
