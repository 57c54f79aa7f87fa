# SPDX-License-Identifier: Apache-2.0
"""The factors of the efficiency of each scope (call path with everything below it) of a run.

Sources: POP (Performance Optimisation and Productivity), "Metrics for MPI programs" and the multiplicative model of
hybrid programs. Useful time is computation outside of MPI and OpenMP operations. Per scope, with T the elapsed time of
the slowest rank, T ideal the elapsed time on a network without transfer times, and mean and maximum over the
processors:

    parallel efficiency = load balance · communication efficiency = mean useful / T
    load balance = mean useful / maximum of useful,  communication efficiency = maximum of useful / T
    communication efficiency = serialization · transfer = (max useful / T ideal) · (T ideal / T)

For hybrid programs (MPI and threads), parallel efficiency = MPI efficiency · OpenMP efficiency. MPI efficiency and its
factors count all time outside of MPI as useful. OpenMP efficiency and its factors are the factors of all threads
divided by the factors of MPI.
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
    """A factor of the hierarchy. parent: name of the factor of which it is a factor; None: it is not part of one."""

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
"""Reason for missing serialization and transfer: waiting in collective operations was not separated from transfer."""


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of all scopes, by name.

    values: arrays (3, scopes) of value, lower end and upper end; NaN: not determined. The ends differ from the value if
    the times of single ranks are unknown or predicted. missing: for some missing factors, the reason.
    """

    values: Mapping[str, FloatArray]
    missing: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, scope: int = -1) -> tuple[float, float, float]:
        """Return value, lower and upper end of a factor in a scope; NaN if it is missing. Scope -1 is the program."""
        if name not in self.values:
            return math.nan, math.nan, math.nan
        value, low, high = self.values[name][:, scope].tolist()
        return value, low, high

    def joined(self, other: Mapping[str, FloatArray]) -> Factors:
        """Return these factors together with `other` factors of the same scopes.

        The global efficiency is added if the computation scalability is known.
        """
        found = {**self.values, **other}
        if "computation" in other:
            found["global"] = product(found["parallel"], other["computation"])
        return Factors(found, self.missing)


def parallel_factors(run: RunTimes, ideal: FloatArray | None = None) -> Factors:
    """Return the parallel efficiency of each scope of a run, and its factors.

    ideal: (scopes,), elapsed seconds in a simulation without latency and with infinite bandwidth. None: computed from
    the measured waiting. Without waiting in collective operations, serialization and transfer are then missing for
    scopes with such operations.
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
    """Return the factors of OpenMP: the factors of all threads divided by the factors of MPI."""
    return {f"omp_{name}": ratio(values[name], values[f"mpi_{name}"]) for name in _OF_BOTH if name in values}


_OF_BOTH = ("parallel", "load_balance", "communication")


def _balance(
    prefix: str, mean: FloatArray, most: tuple[FloatArray, FloatArray], elapsed: FloatArray
) -> dict[str, FloatArray]:
    """Return load balance and communication efficiency, with names that begin with `prefix`.

    mean: (scopes,), mean useful seconds; most: lower and upper bounds of the largest useful seconds of a rank; elapsed:
    (scopes,), seconds.
    """
    bounds = _bounds(most, elapsed)
    return {
        f"{prefix}load_balance": ratio(exact(mean), bounds),
        f"{prefix}communication": ratio(np.minimum(bounds, elapsed), exact(elapsed)),
    }


def _bounds(most: tuple[FloatArray, FloatArray], elapsed: FloatArray) -> FloatArray:
    """Return the largest time of a rank as an interval (3, scopes). Its value is the middle of its bounds.

    For the value, the bounds are limited to the elapsed time.
    """
    low, high = most
    return np.stack([(np.minimum(low, elapsed) + np.minimum(high, elapsed)) / 2.0, low, high])
