# SPDX-License-Identifier: Apache-2.0
"""Provide measured data. The largest configurations are left out, to be predicted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from modeling_layout_sets import Floats, LayoutSet
from quipu.report.formats.detect import read_experiment

RELEARN = "relearn_data.txt"
# Runs of one kernel at random sizes: the columns that are parameters, and the number of runs in a set.
KERNELS: dict[str, tuple[str, ...]] = {"gemm": ("m", "n", "k"), "geqrf": ("m", "n")}
KERNEL_POINTS, KERNEL_SETS, KERNEL_TARGETS = 40, 20, 5


def relearn_sets(folder: Path) -> Iterator[LayoutSet]:
    """Generate sets of RELeARN, its regions over processes and neurons on a grid of 5 × 5."""
    experiment = read_experiment(folder / RELEARN)
    values = experiment.values["time"]
    values = values[(values > 0).all(axis=(1, 2))]  # a value of 0 has no relative error
    points, names = experiment.points, experiment.parameters
    truth, top = np.nanmean(values, axis=2), points.max(axis=0)
    last = (points == top).all(axis=1)
    edge = (points == top).any(axis=1)

    def divided(name: str, use: Floats, left: Floats, columns: list[int]) -> LayoutSet:
        at = points[use][:, columns], values[:, use], points[left][:, columns], truth[:, left]
        return LayoutSet(name, tuple(names[i] for i in columns), *at)

    yield divided("RELeARN without the largest point", ~last, last, [0, 1])
    yield divided("RELeARN without the largest p and n", ~edge, edge, [0, 1])
    for column, name in enumerate(names):
        for other in np.unique(points[:, 1 - column]):
            line = points[:, 1 - column] == other
            largest = points[:, column] == top[column]
            yield divided(f"RELeARN lines in {name}", line & ~largest, line & largest, [column])


def kernel_sets(folder: Path, seed: int) -> Iterator[LayoutSet]:
    """Generate sets of runs of linear algebra at scattered sizes (Parquet files), larger ones left out."""
    from pyarrow import parquet

    for kernel, names in KERNELS.items():
        data = parquet.read_table(folder / f"{kernel}_train.parquet").to_pydict()
        points = np.array([data[name] for name in names], dtype=float).T
        times = np.array(data["time_s"])
        random = np.random.default_rng([seed, 78, len(names)])
        small = np.flatnonzero((points <= np.quantile(points, 0.6, axis=0)).all(axis=1))
        large = np.flatnonzero((points > np.quantile(points, 0.6, axis=0)).all(axis=1))
        for _ in range(KERNEL_SETS):
            own, left = random.permutation(small)[:KERNEL_POINTS], random.permutation(large)[:KERNEL_TARGETS]
            yield LayoutSet(kernel, names, points[own], times[None, own, None], points[left], times[None, left])
