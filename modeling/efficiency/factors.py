# SPDX-License-Identifier: Apache-2.0
"""The factors of the efficiency of each scope of a run.

Sources: POP (Performance Optimisation and Productivity), "Metrics for MPI programs" and the multiplicative model of
hybrid programs. Per scope, with T the elapsed time of the slowest rank:

    parallel efficiency = load balance · communication efficiency = mean useful / T
    load balance = mean useful / maximum of useful,  communication efficiency = maximum of useful / T
    communication efficiency = serialization · transfer = (max useful / T ideal) · (T ideal / T)

For hybrid programs, parallel efficiency = MPI efficiency · OpenMP efficiency. MPI efficiency and its factors count all
time outside of MPI as useful. OpenMP efficiency and its factors are the quotients of the factors of all threads and the
factors of MPI.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..experiment import FloatArray
from ..run_times import RunTimes
from .bounds import exact, product, ratio


@dataclass(frozen=True)
class Factor:
    """A factor of the hierarchy. parent: the factor above it."""

    name: str
    title: str
    parent: str | None = None


HIERARCHY = (
    Factor("global", "global efficiency"),
    Factor("parallel", "parallel efficiency", "global"),
    Factor("load_balance", "load balance", "parallel"),
    Factor("work_balance", "of effort, without noise", "load_balance"),
    Factor("communication", "communication efficiency", "parallel"),
    Factor("mpi_parallel", "MPI parallel efficiency", "parallel"),
    Factor("mpi_load_balance", "MPI load balance", "mpi_parallel"),
    Factor("mpi_communication", "MPI communication efficiency", "mpi_parallel"),
    Factor("serialization", "serialization", "communication"),
    Factor("transfer", "transfer", "communication"),
    Factor("omp_parallel", "OpenMP parallel efficiency", "parallel"),
    Factor("omp_load_balance", "OpenMP load balance", "omp_parallel"),
    Factor("omp_communication", "OpenMP communication efficiency", "omp_parallel"),
    Factor("computation", "computation scalability", "global"),
    Factor("instruction", "instruction scaling", "computation"),
    Factor("ipc", "IPC scaling", "computation"),
    Factor("frequency", "frequency scaling", "computation"),
    Factor("rate", "instructions per second", "computation"),
)
"""All factors in the order of a table. In hybrid programs serialization and transfer belong to MPI communication."""

NOT_SEPARATED = "not separated"
"""Reason for missing serialization and transfer: the waiting in collective operations was not measured."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of scopes by name: value, lower end and upper end, shape (3, scopes); NaN: not determined.

    The ends differ from the value if the times of single ranks are unknown or predicted. missing: reasons for missing
    factors, by factor.
    """

    values: Mapping[str, FloatArray]
    missing: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, scope: int = -1) -> tuple[float, float, float]:
        """Return value, lower and upper end of a factor; NaN if it is missing. Scope -1: the program."""
        if name not in self.values:
            return math.nan, math.nan, math.nan
        value, low, high = self.values[name][:, scope].tolist()
        return value, low, high

    def joined(self, other: Mapping[str, FloatArray]) -> Factors:
        """Return these factors with the factors of the computation, and with the global efficiency if possible."""
        found = {**self.values, **other}
        if "computation" in other:
            found["global"] = product(found["parallel"], other["computation"])
        return Factors(found, self.missing)


def parallel_factors(run: RunTimes, ideal: FloatArray | None = None) -> Factors:
    """Return the parallel efficiency of each scope of a run, and its factors.

    ideal: elapsed seconds of each scope on a simulated ideal network. Without it they are computed from the measured
    waiting, if waiting was measured in all operations of the scope.
    """
    elapsed = run.elapsed.low
    mean, most = run.useful_sum / run.processors, run.most_useful
    values = {"parallel": ratio(exact(mean), exact(elapsed)), **_balance("", mean, most, elapsed)}
    if run.ranks > 1 and run.threads > 1:
        wall = run.outside
        values["mpi_parallel"] = ratio(exact(wall.mean), exact(elapsed))
        values |= _balance("mpi_", wall.mean, (wall.low, wall.high), elapsed)
        values |= openmp_factors(values)
    if run.effort is not None and run.ranks > 1:
        work = run.scopes_of(run.effort.only(run.useful_paths))
        values["work_balance"] = ratio(exact(work.mean), np.stack([work.middle, work.low, work.high]))
    if not run.mpi.any():
        return Factors(values)
    outside = np.minimum(_bounds((run.outside.low, run.outside.high), elapsed), elapsed)
    known = np.ones(elapsed.size, dtype=bool)
    if ideal is None:
        ideal = np.minimum(run.without_transfer.middle, elapsed)
        known = np.full(elapsed.size, run.waits_separated) | (run.in_collectives <= 0.0)
    ideal = np.where(known, np.maximum(ideal, outside[0]), np.nan)
    values["serialization"] = ratio(outside, exact(ideal))
    values["transfer"] = ratio(exact(ideal), exact(elapsed))
    missing = {} if known[-1] else dict.fromkeys(("serialization", "transfer"), NOT_SEPARATED)
    return Factors(values, missing)


def openmp_factors(values: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the factors of OpenMP: factors of all threads divided by factors of MPI."""
    return {f"omp_{name}": ratio(values[name], values[f"mpi_{name}"]) for name in _OF_BOTH if name in values}


_OF_BOTH = ("parallel", "load_balance", "communication")


def _balance(
    prefix: str, mean: FloatArray, most: tuple[FloatArray, FloatArray], elapsed: FloatArray
) -> dict[str, FloatArray]:
    """Return load balance and communication efficiency from the mean and the bounds of the largest time."""
    bounds = _bounds(most, elapsed)
    return {
        f"{prefix}load_balance": ratio(exact(mean), bounds),
        f"{prefix}communication": ratio(np.minimum(bounds, elapsed), exact(elapsed)),
    }


def _bounds(most: tuple[FloatArray, FloatArray], elapsed: FloatArray) -> FloatArray:
    """Return the largest time of a rank: the middle of its bounds, limited to the elapsed time."""
    low, high = most
    return np.stack([(np.minimum(low, elapsed) + np.minimum(high, elapsed)) / 2.0, low, high])
