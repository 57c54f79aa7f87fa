# SPDX-License-Identifier: Apache-2.0
"""Write run archives of a heat equation without measuring it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RankRecord, RunArchive, RunValues
from quipu.agent.archive.write import write_archive
from quipu.agent.merge.statistics import cells_of, statistics_of
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind

METRICS = (
    Metric("visits", "1", "effort", "sum", "times the region was entered"),
    Metric("time", "s", "cost", "sum", "wall-clock time"),
    Metric("blocks", "1", "effort", "sum", "executed basic blocks"),
    Metric("bytes_sent", "B", "effort", "sum", "payload given to MPI"),
    Metric("comm_size", "1", "effort", "max", "processes in the communicator"),
)
REGIONS = (
    Region("main", "main", file="heat.c", line=120),
    Region("sweep", "sweep", file="heat.c", line=40),
    Region("exchange", "exchange", file="heat.c", line=70),
    Region("MPI_Sendrecv", "MPI_Sendrecv", RegionKind.MPI),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
)
TREE = CallTree(REGIONS, np.array([0, 1, 2, 3, 4]), np.array([-1, 0, 0, 2, 0]))
# The run with many ranks has one more call path, which is not the last one.
WITH_BARRIER = CallTree(
    (REGIONS[0], Region("MPI_Barrier", "MPI_Barrier", RegionKind.MPI), *REGIONS[1:]),
    np.array([0, 1, 2, 3, 4, 5]),
    np.array([-1, 0, 0, 0, 3, 0]),
)


def rank_values(p: int, n: int, repetition: int, rank: int) -> dict[str, list[float]]:
    """Return the values of all call paths on one rank: sweep n^3/p, halo n^2, reduction log2 p."""
    noise = 1.0 + 0.01 * ((repetition * 7 + rank * 3) % 5 - 2)
    times = [1e-3, 2e-8 * n**3 / p, 1e-5, 1e-9 * n**2 + 1e-5, 1e-5 + 2e-5 * float(np.log2(p))]
    return {
        "visits": [1, 10, 10, 20, 10],
        "time": [value * noise for value in times],
        "blocks": [12, 30 * n**3 // p, 40, 0, 0],
        "bytes_sent": [0, 0, 0, 160 * n**2, 80],
        "comm_size": [0, 0, 0, p, p],
    }


def _column(rows: list[dict[str, list[float]]], metric: Metric) -> NDArray[np.int64] | NDArray[np.float64]:
    values = [row[metric.name][path] for path in range(len(TREE)) for row in rows]
    return np.array(values, dtype=np.float64) if metric.unit == "s" else np.array(values, dtype=np.int64)


def write_run(
    folder: Path,
    p: int,
    n: int,
    repetition: int = 1,
    slower: float = 1.0,
    blocks: float = 1.0,
    first: float = 0.0,
    **changes: object,
) -> RunArchive:
    """Write one run archive into an experiment folder.

    slower: factor of all times; blocks: factor of the blocks of sweep; first: additional seconds of rank 0 in main.
    """
    rows = [rank_values(p, n, repetition, rank) for rank in range(p)]
    for row in rows:
        row["time"] = [slower * time for time in row["time"]]
        row["time"][0] += first if row is rows[0] else 0.0
        row["blocks"][1] = round(blocks * row["blocks"][1])
    values = RunValues(
        callpath=np.repeat(np.arange(len(TREE)), p),
        rank=np.tile(np.arange(p), len(TREE)),
        thread=np.zeros(len(TREE) * p, dtype=np.int64),
        metrics={metric.name: _column(rows, metric) for metric in METRICS},
    )
    metadata = RunMetadata(
        parameters={"p": p, "n": n},
        repetition=repetition,
        command=("mpirun", "-n", str(p), "./heat", str(n)),
        started="2026-01-02T03:04:05.000+00:00",
        seconds=0.5,
        exit_code=0,
        ranks=p,
        metrics=METRICS,
        **changes,  # type: ignore[arg-type]
    )
    ranks = tuple(RankRecord(rank, "node1", 100 + rank) for rank in range(p))
    statistics = statistics_of(cells_of(values, METRICS, np.arange(p), len(TREE)).cells, METRICS)
    return write_archive(RunArchive(metadata, TREE, values, statistics, ranks), folder)


def write_experiment(folder: Path, repetitions: int = 2) -> Path:
    """Write runs at p = 1, 2, 4, 8, 16 and n = 32 … 160."""
    for p in (1, 2, 4, 8, 16):
        for n in (32, 64, 96, 128, 160):
            for repetition in range(1, repetitions + 1):
                write_run(folder, p, n, repetition)
    return folder


def write_counts(folder: Path, p: int, n: int, repetition: int = 1) -> RunArchive:
    """Write a count-only run of p ranks (`quipu run --counts`), with a barrier that other runs do not have."""
    metrics = tuple(metric for metric in METRICS if metric.is_effort)
    rows = [rank_values(p, n, repetition, rank) for rank in range(p)]
    for row in rows:
        row.update({name: [column[0], 1 if name == "visits" else 0, *column[1:]] for name, column in row.items()})
    paths = len(WITH_BARRIER)
    values = RunValues(
        callpath=np.repeat(np.arange(paths), p),
        rank=np.tile(np.arange(p), paths),
        thread=np.zeros(paths * p, dtype=np.int64),
        metrics={
            metric.name: np.array([row[metric.name][path] for path in range(paths) for row in rows], dtype=np.int64)
            for metric in metrics
        },
    )
    metadata = RunMetadata(
        parameters={"p": p, "n": n},
        repetition=repetition,
        command=("mpirun", "-n", str(p), "./heat", str(n)),
        started="2026-01-02T03:04:05.000+00:00",
        seconds=0.5,
        exit_code=0,
        ranks=p,
        metrics=metrics,
        counts_only=True,
    )
    ranks = tuple(RankRecord(rank, "node1", 100 + rank) for rank in range(p))
    statistics = statistics_of(cells_of(values, metrics, np.arange(p), paths).cells, metrics)
    return write_archive(RunArchive(metadata, WITH_BARRIER, values, statistics, ranks), folder)
