# SPDX-License-Identifier: Apache-2.0
"""Divide the lost time of a run (elapsed time minus ideal time) among its call paths. The parts add up exactly.

T is the elapsed time. The ideal time is the useful time of the reference run (scaling.py) per processor. r is the rank
with the most time outside of MPI. Useful time is computation outside of MPI and OpenMP; means are over all ranks:

    T - ideal = sum over call paths of
        load balance     time of r minus the mean over ranks, outside of MPI
        communication    time of r in MPI (the time between the end of r and the end of the last rank has no call path)
        threads          mean wall time outside of MPI minus the useful time of a thread
        computation      useful time minus the useful time of the reference, per processor
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from ..run_times import RunTimes
from .scaling import Scaling, weight


@dataclass(frozen=True, eq=False)
class Losses:
    """Exclusive seconds that each call path loses, shape (call paths,), by cause (see above).

    rank: the rank with the most time outside of MPI. elapsed: seconds of the run. rest: lost seconds that belong to no
    call path, because this rank ends before the last one.
    """

    rank: int
    elapsed: float
    load_balance: FloatArray
    communication: FloatArray
    threads: FloatArray
    computation: FloatArray
    rest: float

    @property
    def total(self) -> FloatArray:
        """Return the seconds that each call path loses in total, shape (call paths,). Negative: it is faster."""
        return self.load_balance + self.communication + self.threads + self.computation

    @property
    def lost(self) -> float:
        """Return the lost share of the elapsed time: 1 minus the global efficiency."""
        return (float(self.total.sum()) + self.rest) / self.elapsed if self.elapsed > 0.0 else 0.0

    @property
    def largest(self) -> list[int]:
        """Return the numbers of the call paths that lose time, the largest loss first."""
        total = self.total
        return [int(path) for path in np.argsort(-total, kind="stable") if total[path] > 0.0]


def losses(run: RunTimes, scaling: Scaling) -> Losses | None:
    """Return the losses of a run relative to its reference; None if the times of single ranks are unknown."""
    rank = run.slowest
    if rank is None or run.time.values is None:
        return None
    own, mean = run.time.values[:, rank], run.time.mean
    wall = np.where(run.mpi, 0.0, mean)
    useful = np.where(run.useful_paths, mean if run.thread_time is None else run.thread_time, 0.0) / run.threads
    reference = scaling.reference
    before = reference.time.mean if reference.thread_time is None else reference.thread_time
    before = np.where(reference.useful_paths, before, 0.0) * reference.ranks
    expected = weight(scaling.kind, run.processors) / weight(scaling.kind, reference.processors)
    ideal = before * expected / run.processors
    elapsed = float(run.elapsed.low[-1])
    return Losses(
        rank,
        elapsed,
        np.where(run.mpi, 0.0, own - mean),
        np.where(run.mpi, own, 0.0),
        wall - useful,
        useful - ideal,
        elapsed - float(own.sum()),
    )
