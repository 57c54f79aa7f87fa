# SPDX-License-Identifier: Apache-2.0
"""A synthetic MPI program whose effort and time are known functions of p and n."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind

MakeProgram = Callable[..., Experiment]

# region, kind, parent
_TREE = (
    ("main", RegionKind.FUNCTION, -1),
    ("solve", RegionKind.FUNCTION, 0),
    ("sweep", RegionKind.FUNCTION, 1),
    ("sort", RegionKind.FUNCTION, 0),
    ("tiny", RegionKind.FUNCTION, 2),
    ("MPI_Allreduce", RegionKind.MPI, 1),
    ("MPI_Bcast", RegionKind.MPI, 0),
    ("MPI_Alltoallv", RegionKind.MPI, 3),
    ("MPI_Barrier", RegionKind.MPI, 1),
    ("MPI_Isend", RegionKind.MPI, 1),
    ("MPI_Waitall", RegionKind.MPI, 1),
    ("MPI_Comm_rank", RegionKind.MPI, 0),
    ("interpreter", RegionKind.PYTHON, 0),
)
NAMES = [name for name, _, _ in _TREE]


def exact(p: FloatArray, n: FloatArray) -> dict[str, dict[str, FloatArray]]:
    """Return visits, blocks, bytes sent and received, and time of each region."""
    one, log = np.ones_like(p), np.log2
    share = 8 * n * (p - 1) / p
    sort = 9 * n * log(n) + 5 * n
    sweep = 50 * (3 * n**2 + 2 * n + 7)
    return {
        "main": {"visits": one, "blocks": 12 * one, "time": 1e-4 * one},
        "solve": {"visits": one, "blocks": 80 * one, "time": 2e-5 * one},
        "sweep": {"visits": 50 * one, "blocks": sweep, "time": 1e-9 * sweep},
        "sort": {"visits": one, "blocks": sort, "time": 2e-9 * sort},
        "tiny": {"visits": 50 * n**2, "blocks": 100 * n**2, "time": 5e-8 * n**2},
        "MPI_Allreduce": {"visits": 50 * one, "bytes_sent": 400 * one, "time": 1e-4 * log(p)},
        "MPI_Bcast": {"visits": one, "bytes_received": share, "time": 3e-6 * log(p) + 1e-9 * share},
        "MPI_Alltoallv": {"visits": one, "bytes_sent": share, "time": 1e-6 * (p - 1) + 5e-10 * share},
        "MPI_Barrier": {"visits": 3 * one, "time": 3e-6 * log(p)},
        "MPI_Isend": {"visits": 100 * one, "bytes_sent": 800 * n, "time": 5e-5 + 8e-8 * n},
        "MPI_Waitall": {"visits": 50 * one, "time": 1.5e-4 * one},
        "MPI_Comm_rank": {"visits": one, "time": 1e-7 * one},
        "interpreter": {"visits": one, "time": 1e-5 * n},
    }


@pytest.fixture
def make_program() -> MakeProgram:
    """Return a function that measures the program: noise of time, repetitions, values of p and n."""

    def make(
        noise: float = 0.05,
        repetitions: int = 3,
        p: Sequence[float] = (2, 4, 8, 16, 32),
        n: Sequence[float] = (100, 200, 400, 800, 1600),
        seed: int = 0,
    ) -> Experiment:
        random = np.random.default_rng(seed)
        grid = np.array([(a, b) for a in p for b in n], dtype=np.float64)
        truth = exact(grid[:, 0], grid[:, 1])
        metrics = [Metric(m, "1", "effort") for m in ("visits", "blocks", "bytes_sent", "bytes_received")]
        metrics += [Metric("comm_size", "1", "effort", "max"), Metric("time", "s", "cost")]
        nothing = np.zeros(len(grid))
        values = {}
        for metric in metrics:
            table = np.stack([truth[name].get(metric.name, nothing) for name in NAMES])
            if metric.name == "comm_size":
                table = np.stack([grid[:, 0] if kind is RegionKind.MPI else nothing for _, kind, _ in _TREE])
            repeated = np.repeat(table[:, :, None], repetitions, axis=2)
            if metric.name == "time":
                repeated = repeated * (1 + noise * random.uniform(-1, 1, repeated.shape))
            values[metric.name] = repeated
        tree = CallTree(
            tuple(Region(name, name, kind) for name, kind, _ in _TREE),
            np.arange(len(_TREE)),
            np.array([parent for _, _, parent in _TREE]),
        )
        return Experiment("demo", ("p", "n"), grid, tree, {m.name: m for m in metrics}, values)

    return make
