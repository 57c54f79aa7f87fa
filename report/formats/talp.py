# SPDX-License-Identifier: Apache-2.0
"""Write efficiencies as CSV in the layout of TALP (module of DLB, `--talp-output-file=FILE.csv`), times in nanoseconds.

A row is a region of a run; the whole program is called Global. Columns of GPUs and of counters that were not measured
are 0. For programs with MPI and OpenMP, the parallel efficiency is the product of the efficiencies of MPI and OpenMP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.efficiency import Factors, RunTimes
from quipu.modeling.experiment import FloatArray, RegionKind

COLUMNS = (
    *("name", "numCpus", "numOmpThreads", "numMpiRanks", "numNodes", "avgCpus", "numGpus", "cycles", "instructions"),
    *("numMeasurements", "numMpiCalls", "numOmpParallels", "numOmpTasks", "numGpuRuntimeCalls", "elapsedTime"),
    *("usefulTime", "mpiTime", "mpiWorkerIdleTime", "ompLoadImbalanceTime", "ompSchedulingTime"),
    *("ompSerializationTime", "gpuRuntimeTime", "minMpiNormdProc", "minMpiNormdNode", "gpuUsefulTime"),
    *("gpuCommunicationTime", "gpuInactiveTime", "maxGpuUsefulTime", "maxGpuActiveTime", "parallelEfficiency"),
    *("mpiParallelEfficiency", "mpiCommunicationEfficiency", "mpiLoadBalance", "mpiLoadBalanceIn"),
    *("mpiLoadBalanceOut", "ompParallelEfficiency", "ompLoadBalance", "ompSchedulingEfficiency"),
    *("ompSerializationEfficiency", "deviceOffloadEfficiency", "gpuParallelEfficiency", "gpuLoadBalance"),
    *("gpuCommunicationEfficiency", "gpuOrchestrationEfficiency"),
)
_FORKS = "omp parallel"
_RATIOS = ("Efficiency", "Balance")


def talp_csv(runs: Iterable[tuple[RunTimes, Factors]], scopes: Sequence[int] = (-1,)) -> str:
    """Return a header row, and a row for each scope of each run. scopes: indices of call paths; -1: the program."""
    lines = [",".join(COLUMNS)]
    for run, factors in runs:
        lines += [",".join(_row(run, factors, scope)) for scope in scopes]
    return "\n".join(lines) + "\n"


def _row(run: RunTimes, factors: Factors, scope: int) -> list[str]:
    """Return the cells of a scope of a run."""
    elapsed, outside = float(run.elapsed.low[scope]), run.outside
    mpi = run.ranks * float(run.elapsed.mean[scope] - outside.mean[scope])
    imbalance, forking, serial = _openmp_times(run, scope)
    most, node = float(outside.low[scope]), _of_nodes(run, scope)
    busy = float(run.useful_sum[scope]) + mpi
    hybrid = "mpi_" if "mpi_parallel" in factors.values else ""
    seconds = {
        "elapsedTime": elapsed,
        "usefulTime": float(run.useful_sum[scope]),
        "mpiTime": mpi,
        "mpiWorkerIdleTime": mpi * (run.threads - 1),
        "ompLoadImbalanceTime": imbalance,
        "ompSchedulingTime": forking,
        "ompSerializationTime": serial,
        "minMpiNormdProc": max(0.0, elapsed - most),
        "minMpiNormdNode": max(0.0, elapsed - node),
    }
    efficiencies = {
        "parallelEfficiency": factors.of("parallel", scope)[0],
        "mpiParallelEfficiency": factors.of(f"{hybrid}parallel", scope)[0],
        "mpiCommunicationEfficiency": factors.of(f"{hybrid}communication", scope)[0],
        "mpiLoadBalance": factors.of(f"{hybrid}load_balance", scope)[0],
        "mpiLoadBalanceIn": _over(node, most),
        "mpiLoadBalanceOut": _over(float(outside.mean[scope]), node),
        "ompParallelEfficiency": factors.of("omp_parallel", scope)[0] if hybrid else 1.0,
        "ompLoadBalance": _over(busy + serial, busy + serial + imbalance),
        "ompSchedulingEfficiency": _over(busy + serial + imbalance, busy + serial + imbalance + forking),
        "ompSerializationEfficiency": _over(busy, busy + serial),
        "deviceOffloadEfficiency": 1.0,
    }
    name = "Global" if scope < 0 else run.tree.label(scope).replace('"', '""')
    cells = {"name": f'"{name}"', "avgCpus": f"{run.processors:.1f}", **_counts(run, scope)}
    cells |= {key: f"{1e9 * value:.0f}" for key, value in seconds.items()}
    cells |= {key: f"{0.0 if math.isnan(value) else value:.4f}" for key, value in efficiencies.items()}
    return [cells.get(column, "0.0000" if column.endswith(_RATIOS) else "0") for column in COLUMNS]


def _counts(run: RunTimes, scope: int) -> dict[str, str]:
    """Return the size of a run, and the counters of a scope, summed over all ranks and threads."""
    visits = run.sums.get("visits", np.zeros(len(run.tree)))
    tasks = np.array([name.startswith("omp task line") for name in _names(run)], dtype=bool)
    nothing = np.zeros(len(run.tree))
    of_paths = {
        "numMpiCalls": np.where(run.mpi, visits, 0.0),
        "numOmpParallels": np.where(_forks(run), visits / run.threads, 0.0),
        "numOmpTasks": np.where(tasks, visits, 0.0),
        "cycles": np.where(run.useful_paths, run.sums.get("cpu_cycles", nothing), 0.0),
        "instructions": np.where(run.useful_paths, run.sums.get("cpu_instructions", nothing), 0.0),
    }
    size = {
        "numCpus": run.processors,
        "numOmpThreads": run.processors if run.threads > 1 else 0,
        "numMpiRanks": run.ranks,
        "numNodes": max(1, np.unique(run.node).size),
        "numMeasurements": run.ranks if scope < 0 else visits[scope],
    }
    found = {**size, **{name: float(run.sums_of(values)[scope]) for name, values in of_paths.items()}}
    return {name: f"{value:.0f}" for name, value in found.items()}


def _names(run: RunTimes) -> list[str]:
    return [run.tree.name(path) for path in range(len(run.tree))]


def _forks(run: RunTimes) -> NDArray[np.bool_]:
    """Return whether each call path is a parallel region of OpenMP, shape (call paths,)."""
    forks = np.array([name.startswith(_FORKS) for name in _names(run)], dtype=bool)
    return np.asarray(forks & (run.kinds == RegionKind.OPENMP.value))


def _openmp_times(run: RunTimes, scope: int) -> tuple[float, float, float]:
    """Return the seconds, summed over threads, that are not useful work.

    They are (1) waiting in OpenMP constructs, (2) starting teams of threads, (3) idle threads outside of teams.
    """
    if run.thread_time is None:
        return 0.0, 0.0, 0.0
    openmp, forks = run.kinds == RegionKind.OPENMP.value, _forks(run)
    forking, imbalance = (
        run.ranks * float(run.sums_of(np.where(which, run.thread_time, 0.0))[scope])
        for which in (forks, openmp & ~forks)
    )
    whole = run.processors * float(run.outside.mean[scope])
    return imbalance, forking, max(0.0, whole - float(run.useful_sum[scope]) - imbalance - forking)


def _of_nodes(run: RunTimes, scope: int) -> float:
    """Return the time outside of MPI of the node on which it is largest (seconds, mean over the ranks of the node).

    If the values of single ranks are unknown, return the mean over all ranks.
    """
    columns = run.time.only(~run.mpi).values
    if columns is None or not run.node.size:
        return float(run.outside.mean[scope])
    own: FloatArray = columns.sum(axis=0) if scope < 0 else run.tree.inclusive(columns)[scope]
    return float((np.bincount(run.node, own) / np.maximum(np.bincount(run.node), 1)).max())


def _over(one: float, other: float) -> float:
    return one / other if other > 0.0 else math.nan
