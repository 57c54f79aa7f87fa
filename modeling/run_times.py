# SPDX-License-Identifier: Apache-2.0
"""The times of one run that efficiencies are made of: of each rank where the archive has them, else statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .experiment import CallTree, FloatArray, IntArray, RegionKind
from .mpi_operations import operation_of

EFFORTS = ("instructions", "blocks")
"""Effort that stands for executed instructions where the processor did not count them, the best first."""
INSTRUCTIONS = ("cpu_instructions", *EFFORTS)
"""Metrics that count instructions or stand for them, the best first."""
CYCLES = "cpu_cycles"


@dataclass(frozen=True, eq=False)
class RankColumns:
    """A time of each call path, exclusive, in seconds.

    values: of each rank, shape (call paths, ranks); or None, and then statistics over the ranks, each of shape (call
    paths,): mean, least, most and the rank that has most (-1: not known).
    """

    values: FloatArray | None
    mean: FloatArray
    least: FloatArray
    most: FloatArray
    most_rank: IntArray

    @classmethod
    def of_ranks(cls, values: FloatArray) -> RankColumns:
        """Return the columns of values of each rank."""
        return cls(values, values.mean(axis=1), values.min(axis=1), values.max(axis=1), values.argmax(axis=1))

    def only(self, paths: NDArray[np.bool_]) -> RankColumns:
        """Return the same with 0 at all other call paths."""
        values = None if self.values is None else np.asarray(np.where(paths[:, None], self.values, 0.0))
        mean, least, most = (np.where(paths, one, 0.0) for one in (self.mean, self.least, self.most))
        return RankColumns(values, mean, least, most, np.where(paths, self.most_rank, -1))

    def combined(self, other: RankColumns, paths: NDArray[np.bool_]) -> RankColumns:
        """Return the columns of `other` at these call paths, and these columns at the others."""
        values = None
        if self.values is not None and other.values is not None:
            values = np.asarray(np.where(paths[:, None], other.values, self.values))
        pairs = ((other.mean, self.mean), (other.least, self.least), (other.most, self.most))
        mean, least, most = (np.where(paths, one, two) for one, two in pairs)
        return RankColumns(values, mean, least, most, np.where(paths, other.most_rank, self.most_rank))


@dataclass(frozen=True, eq=False)
class Scopes:
    """A time of each scope: of each call path with what it calls, and last of the whole program.

    mean: over the ranks. low, high: of the rank that has most, at least and at most; equal where each rank is known.
    Shape (call paths + 1,).
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        """The time of the rank that has most, in the middle of its bounds."""
        return (self.low + self.high) / 2.0


@dataclass(frozen=True, eq=False)
class Delays:
    """What was waited for in operations of MPI and in barriers of OpenMP, as the late ones found out during the run.

    operation, cause (call paths; cause -1: no cause was found), rank and thread (the late one), seconds (summed over
    the ranks or threads that waited): shape (rows,).
    """

    operation: IntArray
    cause: IntArray
    rank: IntArray
    thread: IntArray
    seconds: FloatArray


@dataclass(frozen=True, eq=False)
class RunTimes:
    """One run.

    name: of its folder. point: by parameter. threads: of a rank. tree: of the experiment, whose call paths all arrays
    have. time: wall time; wait: the part of it that waited. effort: the effort that stands for instructions, None
    without one. of_threads: seconds of each thread, shape (call paths, ranks, threads), where ranks have several
    threads and each is known; effort_of_threads: the same of the effort. thread_time: the sum over the threads of a
    rank, mean over ranks, shape (call paths,); None where a rank has one thread. sums: metric → sum
    over ranks and threads, shape (call paths,). node: number of the node of each rank, shape (ranks,). waits_separated:
    waiting in collective operations is in `wait`, too. delays: None where the ranks did not find out during the run.
    What is no part of the program is 0 everywhere.
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
        """How many processors the run holds: one for each thread."""
        return self.ranks * self.threads

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """The kind of the region of each call path, as a number of RegionKind."""
        return np.array([region.kind.value for region in self.tree.regions], dtype=np.int64)[self.tree.region]

    @cached_property
    def mpi(self) -> NDArray[np.bool_]:
        """Call paths that are operations of MPI."""
        return np.asarray(self.kinds == RegionKind.MPI.value)

    @cached_property
    def useful_paths(self) -> NDArray[np.bool_]:
        """Call paths whose time is useful: neither MPI nor OpenMP."""
        return np.asarray(~self.mpi & (self.kinds != RegionKind.OPENMP.value))

    @cached_property
    def collective(self) -> NDArray[np.bool_]:
        """Call paths that are operations in which all ranks of a communicator may wait."""
        found = [operation_of(region.name) for region in self.tree.regions]
        flags = [one is not None and one.kind == "collective" and one.waits_for_others for one in found]
        return np.array(flags, dtype=bool)[self.tree.region]

    @cached_property
    def elapsed(self) -> Scopes:
        """Wall time of all."""
        return self.scopes_of(self.time)

    @cached_property
    def outside(self) -> Scopes:
        """Wall time outside of MPI."""
        return self.scopes_of(self.time.only(~self.mpi))

    @cached_property
    def without_transfer(self) -> Scopes:
        """Wall time without transfers, as on an ideal network: outside of MPI, and waiting in MPI."""
        return self.scopes_of(self.time.combined(self.wait, self.mpi))

    @cached_property
    def in_collectives(self) -> FloatArray:
        """Mean wall time in collective operations, of each scope."""
        return self.sums_of(np.where(self.collective, self.time.mean, 0.0))

    @cached_property
    def useful_sum(self) -> FloatArray:
        """Useful seconds of all ranks and threads of each scope, shape (call paths + 1,)."""
        if self.thread_time is None:
            return self.ranks * self.sums_of(np.where(self.useful_paths, self.time.mean, 0.0))
        return self.ranks * self.sums_of(np.where(self.useful_paths, self.thread_time, 0.0))

    @cached_property
    def most_useful(self) -> tuple[FloatArray, FloatArray]:
        """Useful seconds of the thread that has most, at least and at most, of each scope; NaN if not known."""
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
        """The rank with most time outside of MPI; None if single ranks are not known."""
        if self.time.values is None:
            return None
        return int(np.where(self.mpi[:, None], 0.0, self.time.values).sum(axis=0).argmax())

    def sums_of(self, exclusive: FloatArray) -> FloatArray:
        """Return the sum over each scope of exclusive values of shape (call paths,)."""
        return np.append(self.tree.inclusive(exclusive), exclusive.sum())

    def _of_ranks(self, exclusive: FloatArray) -> FloatArray:
        return np.vstack([self.tree.inclusive(exclusive), exclusive.sum(axis=0)])

    def scopes_of(self, columns: RankColumns) -> Scopes:
        """Return the mean over ranks and the rank with most of each scope, or bounds from statistics of call paths.

        A rank has at least its own maxima and the minima of the other call paths.
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
