# SPDX-License-Identifier: Apache-2.0
"""The times of one run, from which efficiencies and causes of waiting are computed.

If the archive contains the times of each rank, these are used. Otherwise, statistics over the ranks are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .experiment import CallTree, FloatArray, IntArray, RegionKind
from .mpi_operations import operation_of

EFFORTS = ("instructions", "blocks")
"""Metrics of effort that are used in place of counted instructions of the processor, the best first."""
INSTRUCTIONS = ("cpu_instructions", *EFFORTS)
"""Metrics that count or replace executed instructions, the best first."""
CYCLES = "cpu_cycles"


@dataclass(frozen=True, eq=False)
class RankColumns:
    """An exclusive value of each call path, such as its time in seconds, over the ranks.

    - values: the value of each rank, shape (call paths, ranks); None if only statistics are known.
    - mean, least, most: mean, minimum and maximum over the ranks, shape (call paths,).
    - most_rank: the rank with the maximum, shape (call paths,); -1 if unknown.
    """

    values: FloatArray | None
    mean: FloatArray
    least: FloatArray
    most: FloatArray
    most_rank: IntArray

    @classmethod
    def of_ranks(cls, values: FloatArray) -> RankColumns:
        """Return the values (call paths, ranks) with their statistics."""
        return cls(values, values.mean(axis=1), values.min(axis=1), values.max(axis=1), values.argmax(axis=1))

    def only(self, paths: NDArray[np.bool_]) -> RankColumns:
        """Return the values with 0 at all call paths that are not in the mask."""
        values = None if self.values is None else np.asarray(np.where(paths[:, None], self.values, 0.0))
        mean, least, most = (np.where(paths, one, 0.0) for one in (self.mean, self.least, self.most))
        return RankColumns(values, mean, least, most, np.where(paths, self.most_rank, -1))

    def combined(self, other: RankColumns, paths: NDArray[np.bool_]) -> RankColumns:
        """Return the values of `other` at the call paths in the mask, and these values at the others."""
        values = None
        if self.values is not None and other.values is not None:
            values = np.asarray(np.where(paths[:, None], other.values, self.values))
        pairs = ((other.mean, self.mean), (other.least, self.least), (other.most, self.most))
        mean, least, most = (np.where(paths, one, two) for one, two in pairs)
        return RankColumns(values, mean, least, most, np.where(paths, other.most_rank, self.most_rank))


@dataclass(frozen=True, eq=False)
class Scopes:
    """A time of each scope (seconds, shape (call paths + 1,)).

    The scopes are each call path with all call paths below it, and, as last scope, the whole program.

    mean: mean over the ranks. low, high: bounds of the time of the rank with the most time; the bounds are equal if the
    time of each rank is known.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        """Return the time of the rank with the most time, as the middle of its bounds."""
        return (self.low + self.high) / 2.0


@dataclass(frozen=True, eq=False)
class Delays:
    """Causes of waiting in MPI operations and OpenMP barriers that the measured program found during the run.

    Each array has the shape (rows,). operation: call path with the waiting. cause: call path that caused the waiting;
    -1 if there is none. rank, thread: the late rank and thread. seconds: the waiting, summed over the waiting ranks or
    threads.
    """

    operation: IntArray
    cause: IntArray
    rank: IntArray
    thread: IntArray
    seconds: FloatArray


@dataclass(frozen=True, eq=False)
class RunTimes:
    """One run. All arrays use the call paths of the tree of the experiment, and are 0 outside of the program.

    - name: name of the folder of the run. point: value of each parameter. ranks: number of ranks. threads: number of
      threads per rank.
    - time: wall time. wait: waiting, which is a part of the wall time. waits_separated: whether `wait` contains waiting
      in collective operations.
    - effort: the effort that replaces instructions (EFFORTS), None without any.
    - of_threads: seconds of each thread, shape (call paths, ranks, threads); None with one thread per rank, or if times
      of single threads are unknown. effort_of_threads: the effort of each thread.
    - thread_time: sum over the threads of a rank, mean over ranks, shape (call paths,); None for one thread per rank.
    - sums: by metric, sums over ranks and threads, shape (call paths,).
    - node: number of the node of each rank, shape (ranks,).
    - delays: causes of waiting; None if they were not recorded during the run.
    """

    name: str
    point: Mapping[str, float]
    repetition: int
    ranks: int
    threads: int
    tree: CallTree
    time: RankColumns
    wait: RankColumns
    effort: RankColumns | None = None
    of_threads: FloatArray | None = None
    effort_of_threads: FloatArray | None = None
    thread_time: FloatArray | None = None
    sums: Mapping[str, FloatArray] = field(default_factory=dict)
    node: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    waits_separated: bool = False
    delays: Delays | None = None

    @property
    def processors(self) -> int:
        """Return the number of processors of the run, one for each thread of each rank."""
        return self.ranks * self.threads

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """Return the kind of the region of each call path, as a number of RegionKind."""
        return np.array([region.kind.value for region in self.tree.regions], dtype=np.int64)[self.tree.region]

    @cached_property
    def mpi(self) -> NDArray[np.bool_]:
        """Return a mask of the call paths that are operations of MPI."""
        return np.asarray(self.kinds == RegionKind.MPI.value)

    @cached_property
    def useful_paths(self) -> NDArray[np.bool_]:
        """Return a mask of the call paths whose time is useful: neither operations of MPI nor OpenMP constructs."""
        return np.asarray(~self.mpi & (self.kinds != RegionKind.OPENMP.value))

    @cached_property
    def collective(self) -> NDArray[np.bool_]:
        """Return a mask of the call paths that are collective operations in which ranks wait for others."""
        found = [operation_of(region.name) for region in self.tree.regions]
        flags = [one is not None and one.kind == "collective" and one.waits_for_others for one in found]
        return np.array(flags, dtype=bool)[self.tree.region]

    @cached_property
    def elapsed(self) -> Scopes:
        """Return the wall time of each scope."""
        return self.scopes_of(self.time)

    @cached_property
    def outside(self) -> Scopes:
        """Return the wall time of each scope outside of MPI."""
        return self.scopes_of(self.time.only(~self.mpi))

    @cached_property
    def without_transfer(self) -> Scopes:
        """Return the wall time of each scope on an ideal network without transfer times.

        It is the time outside of MPI plus the waiting in MPI.
        """
        return self.scopes_of(self.time.combined(self.wait, self.mpi))

    @cached_property
    def in_collectives(self) -> FloatArray:
        """Return the wall time (s) of each scope in collective operations, mean over ranks."""
        return self.sums_of(np.where(self.collective, self.time.mean, 0.0))

    @cached_property
    def useful_sum(self) -> FloatArray:
        """Return the useful seconds of all ranks and threads of each scope, shape (call paths + 1,)."""
        if self.thread_time is None:
            return self.ranks * self.sums_of(np.where(self.useful_paths, self.time.mean, 0.0))
        return self.ranks * self.sums_of(np.where(self.useful_paths, self.thread_time, 0.0))

    @cached_property
    def most_useful(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper bounds of the useful seconds of the thread with the most, in each scope.

        NaN if ranks have several threads, and single threads are unknown.
        """
        if self.thread_time is None:
            found = self.scopes_of(self.time.only(self.useful_paths))
            return found.low, found.high
        if self.of_threads is None:
            return np.full(len(self.tree) + 1, np.nan), np.full(len(self.tree) + 1, np.nan)
        threads = self.of_threads.reshape(len(self.tree), -1)
        most = self._of_ranks(np.where(self.useful_paths[:, None], threads, 0.0)).max(axis=1)
        return most, most

    @property
    def slowest(self) -> int | None:
        """Return the rank with the most time outside of MPI; None if single ranks are unknown."""
        if self.time.values is None:
            return None
        return int(np.where(self.mpi[:, None], 0.0, self.time.values).sum(axis=0).argmax())

    def sums_of(self, exclusive: FloatArray) -> FloatArray:
        """Return the sums over each scope, shape (call paths + 1,), of exclusive values (call paths,)."""
        return np.append(self.tree.inclusive(exclusive), exclusive.sum())

    def _of_ranks(self, exclusive: FloatArray) -> FloatArray:
        return np.vstack([self.tree.inclusive(exclusive), exclusive.sum(axis=0)])

    def scopes_of(self, columns: RankColumns) -> Scopes:
        """Return the time of each scope, with bounds for the rank with the most time.

        If only statistics are known, the upper bound is the sum of the maxima of the call paths. The lower bound
        follows from the call paths in which a rank has the maximum: the rank takes at least these maxima, and the
        minima of all other call paths.
        """
        if columns.values is not None:
            found = self._of_ranks(columns.values)
            most = found.max(axis=1)
            return Scopes(found.mean(axis=1), most, most)
        mean, least, high = (self.sums_of(one) for one in (columns.mean, columns.least, columns.most))
        beyond = columns.most - columns.least
        low = mean.copy()
        for rank in np.unique(columns.most_rank[columns.most_rank >= 0]):
            low = np.maximum(low, least + self.sums_of(np.where(columns.most_rank == rank, beyond, 0.0)))
        return Scopes(mean, np.minimum(low, high), high)
