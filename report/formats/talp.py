# SPDX-License-Identifier: Apache-2.0
"""Efficiencies as a table in the layout that TALP writes (DLB, `--talp-output-file=FILE.csv`): times in nanoseconds.

A row is a region of a run; the whole program is called Global. Columns of GPUs are 0, and so are counters that were not
measured. Of hybrid programs the efficiencies of MPI and OpenMP are the multiplicative ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from quipu.modeling.efficiency import Factors, RunTimes
from quipu.modeling.experiment import FloatArray, RegionKind

COLUMNS = (
    *("name", "numCpus", "numMpiRanks", "numNodes", "avgCpus", "cycles", "instructions", "numMeasurements"),
    *("numMpiCalls", "numOmpParallels", "numOmpTasks", "numGpuCalls", "elapsedTime", "usefulTime", "mpiTime"),
    *("ompLoadImbalanceTime", "ompSchedulingTime", "ompSerializationTime", "gpuRuntimeTime", "minMpiNormdProc"),
    *("minMpiNormdNode", "parallelEfficiency", "mpiParallelEfficiency", "mpiCommunicationEfficiency"),
    *("mpiLoadBalance", "mpiLoadBalanceIn", "mpiLoadBalanceOut", "ompParallelEfficiency", "ompLoadBalance"),
    *("ompSchedulingEfficiency", "ompSerializationEfficiency", "deviceOffloadEfficiency", "gpuParallelEfficiency"),
    *("gpuLoadBalance", "gpuCommunicationEfficiency", "gpuOrchestrationEfficiency"),
)
_FORKS = "omp parallel"


def talp_csv(runs: Iterable[tuple[RunTimes, Factors]], scopes: Sequence[int] = (-1,)) -> str:
    """Return rows for these scopes of runs, below a row of headings. Scope -1: the program."""
    lines = [",".join(COLUMNS)]
    for run, factors in runs:
        lines += [",".join(_row(run, factors, scope)) for scope in scopes]
    return "\n".join(lines) + "\n"


def _row(run: RunTimes, factors: Factors, scope: int) -> Iterator[str]:
    """Yield the cells of a scope of a run."""
    name = "Global" if scope < 0 else run.tree.label(scope)
    elapsed, outside = float(run.elapsed.low[scope]), run.outside
    mpi = run.ranks * float(run.elapsed.mean[scope] - outside.mean[scope])
    counts = _counts(run, scope)
    imbalance, forking, serial = _openmp_times(run, scope)
    useful = float(run.useful_sum[scope])
    node = _of_nodes(run, scope)
    most = float(outside.low[scope])
    nodes = max(1, np.unique(run.node).size)
    yield '"' + name.replace('"', '""') + '"'
    yield from map(str, (run.processors, run.ranks, nodes))
    yield f"{run.processors:.1f}"
    yield from (f"{counts[key]:.0f}" for key in ("cycles", "instructions", "measurements", "mpi", "parallels", "tasks"))
    yield "0"
    yield from (f"{1e9 * one:.0f}" for one in (elapsed, useful, mpi, imbalance, forking, serial))
    yield "0"
    yield from (f"{1e9 * max(0.0, elapsed - one):.0f}" for one in (most, node))
    prefix = "mpi_" if "mpi_parallel" in factors.values else ""
    names = ("parallel", f"{prefix}parallel", f"{prefix}communication", f"{prefix}load_balance")
    yield from (_ratio(factors.of(one, scope)[0]) for one in names)
    yield from (_ratio(_over(one, other)) for one, other in ((node, most), (float(outside.mean[scope]), node)))
    busy = useful + mpi
    yield _ratio(factors.of("omp_parallel", scope)[0] if prefix else 1.0)
    yield _ratio(_over(busy + serial, busy + serial + imbalance))
    yield _ratio(_over(busy + serial + imbalance, busy + serial + imbalance + forking))
    yield _ratio(_over(busy, busy + serial))
    yield from ("1.0000", *("0.0000",) * 4)


def _counts(run: RunTimes, scope: int) -> dict[str, float]:
    """Return what a scope counted, on all ranks and threads."""
    visits = run.sums.get("visits", np.zeros(len(run.tree)))
    names = np.array([region.display for region in run.tree.regions], dtype=object)[run.tree.region]
    openmp = run.kinds == RegionKind.OPENMP.value
    forks = np.array([str(name).startswith(_FORKS) for name in names], dtype=bool) & openmp
    tasks = np.array([str(name).startswith("omp task line") for name in names], dtype=bool)
    found = {
        "mpi": np.where(run.mpi, visits, 0.0),
        "parallels": np.where(forks, visits / run.threads, 0.0),
        "tasks": np.where(tasks, visits, 0.0),
    }
    for name, metric in (("cycles", "cpu_cycles"), ("instructions", "cpu_instructions")):
        found[name] = np.where(run.useful_paths, run.sums.get(metric, np.zeros(len(run.tree))), 0.0)
    sums = {name: float(run.sums_of(values)[scope]) for name, values in found.items()}
    return {**sums, "measurements": float(run.ranks if scope < 0 else visits[scope])}


def _openmp_times(run: RunTimes, scope: int) -> tuple[float, float, float]:
    """Return seconds of all threads that are not useful: waiting in OpenMP, the start of teams, outside of teams."""
    if run.thread_time is None:
        return 0.0, 0.0, 0.0
    names = np.array([region.display for region in run.tree.regions], dtype=object)[run.tree.region]
    openmp = run.kinds == RegionKind.OPENMP.value
    forks = np.array([str(name).startswith(_FORKS) for name in names], dtype=bool) & openmp
    forking, imbalance = (
        run.ranks * float(run.sums_of(np.where(which, run.thread_time, 0.0))[scope])
        for which in (forks, openmp & ~forks)
    )
    whole = run.processors * float(run.outside.mean[scope])
    return imbalance, forking, max(0.0, whole - float(run.useful_sum[scope]) - imbalance - forking)


def _of_nodes(run: RunTimes, scope: int) -> float:
    """Return the time outside of MPI of the node with most, mean over its ranks; the mean where ranks are not known."""
    columns = run.time.only(~run.mpi).values
    if columns is None or not run.node.size:
        return float(run.outside.mean[scope])
    own: FloatArray = columns.sum(axis=0) if scope < 0 else run.tree.inclusive(columns)[scope]
    return float((np.bincount(run.node, own) / np.maximum(np.bincount(run.node), 1)).max())


def _over(one: float, other: float) -> float:
    return one / other if other > 0.0 else math.nan


def _ratio(value: float) -> str:
    return f"{0.0 if math.isnan(value) else value:.4f}"
