# SPDX-License-Identifier: Apache-2.0
"""`quipu efficiency` of ranks with threads: planted efficiencies of MPI and OpenMP, measured and predicted."""

from __future__ import annotations

import csv
import json
import math
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from quipu.agent.archive.fingerprint import Fingerprint
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RankRecord, RunArchive, RunValues
from quipu.agent.archive.write import write_archive
from quipu.agent.merge.statistics import cells_of, statistics_of
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind

from .conftest import Quipu

METRICS = (
    Metric("visits", "1", "effort", "sum", ""),
    Metric("time", "s", "cost", "sum", ""),
    Metric("instructions", "1", "effort", "sum", ""),
    Metric("comm_size", "1", "effort", "max", ""),
    Metric("thread_time", "s", "cost", "sum", ""),
    Metric("threads", "1", "cost", "max", ""),
)
REGIONS = (
    Region("main", "main"),
    Region("serial", "serial"),
    Region("team", "omp parallel", RegionKind.OPENMP),
    Region("body", "main (omp line 7)"),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
)
TREE = CallTree(REGIONS, np.arange(5), np.array([-1, 0, 0, 2, 0]))
RATE, SERIAL, ALL = 1e-9, 5_000_000, 3_200_000_000


def planted(p: int, t: int) -> dict[str, float]:
    """Return the efficiencies: each rank works alone on SERIAL instructions, and ALL are divided among all threads."""
    alone, team = RATE * SERIAL, RATE * ALL / (p * t)
    elapsed = alone + team + 1e-2 * math.log2(p)
    found = {"parallel": (alone + t * team) / (t * elapsed), "mpi_parallel": (alone + team) / elapsed}
    return {
        **found,
        "omp_parallel": found["parallel"] / found["mpi_parallel"],
        "mpi_load_balance": 1.0,
        "mpi_communication": (alone + team) / elapsed,
    }


def write(folder: Path, p: int, t: int) -> None:
    alone, team, wait = RATE * SERIAL, RATE * ALL / (p * t), 1e-2 * math.log2(p)
    seconds = np.zeros((5, p, t))
    seconds[1, :, 0], seconds[3], seconds[4, :, 0] = alone, team, wait
    wall = np.zeros((5, p, t))
    wall[:, :, 0] = seconds[:, :, 0]
    work = np.zeros((5, p, t), dtype=np.int64)
    work[1, :, 0], work[3] = SERIAL, ALL // (p * t)
    visits = np.zeros((5, p, t), dtype=np.int64)
    visits[[0, 1, 4], :, 0], visits[[2, 3]] = 1, 1
    size = np.zeros((5, p, t), dtype=np.int64)
    size[4, :, 0] = p
    threads = np.zeros((5, p, t), dtype=np.int64)
    threads[:, :, 0], threads[[2, 3], :, 0] = 1, t
    counts = {"visits": visits, "instructions": work, "comm_size": size, "threads": threads}
    times = {"time": wall, "thread_time": seconds}
    path, rank, thread = (axis.ravel() for axis in np.indices((5, p, t)))
    columns: dict[str, NDArray[np.int64] | NDArray[np.float64]] = {name: one.ravel() for name, one in counts.items()}
    columns |= {name: one.ravel() for name, one in times.items()}
    values = RunValues(path, rank, thread, columns)
    metadata = RunMetadata(
        parameters={"p": p, "t": t},
        command=("mpirun", "-n", str(p), "./app"),
        seconds=1.0,
        exit_code=0,
        ranks=p,
        metrics=METRICS,
        threads=t,
        fingerprint=Fingerprint({"--mpi-wait": "local"}),
    )
    records = tuple(RankRecord(number, "node", 100 + number) for number in range(p))
    statistics = statistics_of(cells_of(values, METRICS, np.arange(p), 5).cells, METRICS)
    write_archive(RunArchive(metadata, TREE, values, statistics, records), folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("threads") / "hybrid"
    for p in (2, 4, 8, 16):
        for t in (1, 2, 4, 8):
            write(folder, p, t)
    return folder


def test_measured_efficiencies_are_the_planted_ones(quipu_here: Quipu, runs: Path) -> None:
    document = json.loads(quipu_here("efficiency", runs, "--json").out)
    for column in document["configurations"]:
        p, t = column["ranks"], column["threads"]
        assert column["point"] == {"p": p, "t": t}
        factors = {name: factor["value"] for name, factor in column["factors"].items()}
        if t == 1:
            assert factors["parallel"] == pytest.approx(planted(p, t)["parallel"])
            continue
        for name, value in planted(p, t).items():
            assert factors[name] == pytest.approx(value), (p, t, name)
        for name in ("load_balance", "communication", "parallel"):
            product = factors[f"mpi_{name}"] * factors[f"omp_{name}"]
            assert product == pytest.approx(factors[name])
        assert column["scaling"] == "strong"
    losses = document["losses"]
    lost = sum(one["total"] for one in losses["call_paths"])
    gained = losses["rest"]
    shown = document["configurations"][losses["configuration"]]["factors"]["global"]["value"]
    assert (lost + gained) / losses["elapsed"] == pytest.approx(1.0 - shown, abs=1e-6)


@pytest.mark.parametrize(("p", "t"), [(64, 8), (16, 16), (8, 6)])
def test_predicted_efficiencies_are_the_planted_ones(quipu_here: Quipu, runs: Path, p: int, t: int) -> None:
    document = json.loads(quipu_here("efficiency", runs, "--at", f"p={p},t={t}", "--json").out)
    column = document["configurations"][-1]
    assert (column["ranks"], column["threads"], column["predicted"]) == (p, t, True)
    for name, value in planted(p, t).items():
        assert column["factors"][name]["value"] == pytest.approx(value, rel=0.01), name


def test_the_table_and_the_layout_of_talp(quipu_here: Quipu, runs: Path) -> None:
    out = quipu_here("efficiency", runs).out
    assert out.index("  MPI parallel efficiency") < out.index("  OpenMP parallel efficiency")
    assert "16 ranks × 8" in out
    rows = {
        (row["numMpiRanks"], row["numCpus"]): row
        for row in csv.DictReader(StringIO(quipu_here("efficiency", runs, "--csv").out))
    }
    row = rows["4", "16"]
    assert float(row["ompParallelEfficiency"]) == pytest.approx(planted(4, 4)["omp_parallel"], abs=1e-4)
    assert float(row["mpiParallelEfficiency"]) == pytest.approx(planted(4, 4)["mpi_parallel"], abs=1e-4)
    assert float(row["mpiWorkerIdleTime"]) == pytest.approx(1e9 * 3 * 4 * 2e-2, rel=1e-6)
    assert float(row["ompSerializationTime"]) == pytest.approx(1e9 * 4 * 3 * RATE * SERIAL, rel=1e-6)
    assert (row["numOmpParallels"], row["ompLoadImbalanceTime"]) == ("4", "0")
