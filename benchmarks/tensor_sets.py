# SPDX-License-Identifier: Apache-2.0
"""Provide the data sets of `tensor_accuracy.py`: measured times of six programs, and parts of their ranges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

Array = NDArray[np.float64]
FOLDS = 4
"""Parts of a set without a test file, each of which is held out once."""


@dataclass(frozen=True)
class Set:
    """A data set: the columns that are parameters, those without an order, the target."""

    columns: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    target: str = "time_s"
    tested: bool = True

    @property
    def unordered(self) -> list[int]:
        """Numbers of the columns without an order."""
        return [self.columns.index(column) for column in self.categorical]


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
EXTRAPOLATION_ROWS = 4096


def read(folder: Path, name: str, part: str) -> tuple[Array, Array]:
    """Return the rows and times of a part, train or test, of a set."""
    table = pq.read_table(folder / f"{name}_{part}.parquet")
    one = SETS[name]
    x = np.column_stack([table[column].to_numpy().astype(float) for column in one.columns])
    target = one.target if one.target in table.column_names else "time_s"
    return x, table[target].to_numpy().astype(float)


def part(folder: Path, name: str, rows: int | None, fold: int) -> tuple[Array, Array, Array, Array]:
    """Return training rows, at most `rows`, and test rows: those of the test file, or of one of four parts."""
    x, y = read(folder, name, "train")
    if SETS[name].tested:
        return x[:rows], y[:rows], *read(folder, name, "test")
    fold_of = np.arange(len(x)) % FOLDS
    train, test = np.flatnonzero(fold_of != fold)[:rows], np.flatnonzero(fold_of == fold)
    return x[train], y[train], x[test], y[test]


def cut(folder: Path, label: str, limit: int) -> tuple[Array, Array, Array, Array]:
    """Return rows within the limit, and those of the test range, of one cell of Figure 8."""
    name, columns, _, (low, high) = EXTRAPOLATIONS[label]
    x, y = read(folder, name, "train")
    numbers = [SETS[name].columns.index(column) for column in columns]
    test = ((x[:, numbers] >= low) & (x[:, numbers] <= high)).all(axis=1)
    train = np.flatnonzero((x[:, numbers] <= limit).all(axis=1))[:EXTRAPOLATION_ROWS]
    return x[train], y[train], x[test], y[test]
