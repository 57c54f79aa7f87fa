# SPDX-License-Identifier: Apache-2.0
"""Which call paths of which rank the others wait for, from the profile of each rank of one run.

The waiting at each operation is charged to the late rank, and there to the call paths in which it spent its excess:

- The late rank of an operation waits there for least, or nearly so, and is busy longest of the ranks that do.
- Each other rank waited because of the call paths in which the late rank took longer, in proportion to how much longer.
- If more waiting is left, another rank is late there, too: that which waits for least of the rest. And so on.
- What is still left is unexplained, as in the start of a pipeline, or where another rank is late each time: a profile
  has no order of events.

Charges and what is unexplained add up to the waiting. Threads that wait in OpenMP are treated alike, rank by rank. With
a dynamic schedule another thread is late each time. There, a thread can wait for a call path if one visit of the call
path takes as long as the waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .experiment import FloatArray, Metric
from .run_times import RunTimes

DELAY_CAUSED = Metric(
    "delay_caused", "s", "cost", "sum", "time that others waited because of the call path, mean over ranks"
)

NEAR = 0.1
"""A rank counts as one that waits least if it waits longer by this part of the range of the waiting, or by less."""
_MOST_LATE = 4  # ranks that are late at one operation
_LEFT = 0.01  # part of the waiting that may be left
_BY_WORK = 0.5  # part of the excess of time that more work has to explain


@dataclass(frozen=True)
class Charge:
    """What others waited because of one call path of a late rank: seconds, mean over ranks (or over threads).

    thread: the late thread of the rank; None in MPI, and where another thread is late each time. more_work: whether the
    excess is more effort than that of the others, False: the same effort takes it longer, None: no effort is known.
    """

    path: int
    rank: int
    thread: int | None
    seconds: float
    more_work: bool | None = None


@dataclass(frozen=True)
class Cause:
    """Waiting at one call path, an operation of MPI or OpenMP, and what caused it.

    waiting: seconds, mean over ranks; in OpenMP mean over all threads. charges: the largest first. unexplained: s.
    """

    path: int
    waiting: float
    charges: tuple[Charge, ...]
    unexplained: float


@dataclass(frozen=True, eq=False)
class RootCauses:
    """The causes of the waiting in a run, the longest waiting first.

    delay_caused: seconds that others waited because of each call path, mean over ranks, shape (call paths,). elapsed:
    seconds of the run.
    """

    causes: tuple[Cause, ...]
    delay_caused: FloatArray
    elapsed: float

    @property
    def waiting(self) -> float:
        """Seconds of waiting, mean over ranks: the sum of `delay_caused` and of what is unexplained."""
        return sum(cause.waiting for cause in self.causes)

    @property
    def unexplained(self) -> float:
        """Seconds of waiting, mean over ranks, without a cause."""
        return sum(cause.unexplained for cause in self.causes)

    @property
    def ranked(self) -> list[tuple[int, int, float]]:
        """(call path, rank, seconds) that others waited for it at all operations together, the most first."""
        found: dict[tuple[int, int], float] = {}
        for charge in (charge for cause in self.causes for charge in cause.charges):
            key = charge.path, charge.rank
            found[key] = found.get(key, 0.0) + charge.seconds
        return [(path, rank, seconds) for (path, rank), seconds in sorted(found.items(), key=lambda own: -own[1])]


def root_causes(run: RunTimes) -> RootCauses | None:
    """Return what ranks and threads of a run waited for; None where the times of single ranks are not known."""
    if run.time.values is None or run.wait.values is None:
        return None
    effort = None if run.effort is None else run.effort.values
    times = np.where(run.mpi[:, None], 0.0, run.time.values)
    causes = []
    for path in np.flatnonzero(run.mpi).tolist():
        waits = _waits(run, path)
        if waits.max(initial=0.0) > 0.0:
            charges, left = _charges(waits, times, effort)
            causes.append(_cause(path, float(waits.mean()), charges, left))
    if run.of_threads is not None:
        causes += _of_openmp(run, run.of_threads)
    causes.sort(key=lambda cause: -cause.waiting)
    caused = np.zeros(len(run.tree))
    for charge in (charge for cause in causes for charge in cause.charges):
        caused[charge.path] += charge.seconds
    return RootCauses(tuple(causes), caused, float(run.elapsed.low[-1]))


def _cause(path: int, waiting: float, charges: list[Charge], left: float) -> Cause:
    return Cause(path, waiting, tuple(sorted(charges, key=lambda charge: -charge.seconds)), left)


def _waits(run: RunTimes, path: int) -> FloatArray:
    """Return the waiting of each rank at an operation of MPI.

    Where waiting in collective operations was not measured, it is the time beyond that of the fastest rank.
    """
    assert run.time.values is not None and run.wait.values is not None
    if run.waits_separated or not run.collective[path]:
        return np.asarray(run.wait.values[path])
    times = run.time.values[path]
    return np.asarray(np.where(times > 0.0, times - times.min(initial=np.inf, where=times > 0.0), 0.0))


def _charges(waits: FloatArray, times: FloatArray, effort: FloatArray | None) -> tuple[list[Charge], float]:
    """Return what caused the waiting at an operation, where the rank is the number of the column, and the rest.

    waits: shape (ranks,); times, effort: outside of operations that wait, shape (call paths, ranks).
    """
    found: list[Charge] = []
    left = waits.astype(np.float64)
    busy = times.sum(axis=0)
    late: list[int] = []
    while len(late) < _MOST_LATE and left.sum() > _LEFT * waits.sum():
        rest = np.delete(left, late)
        if not rest.size:
            break
        candidates = left <= rest.min() + NEAR * (left.max() - rest.min())
        candidates[late] = False
        one = int(np.where(candidates, busy, -np.inf).argmax())
        late.append(one)
        excess = np.maximum(times[:, [one]] - times, 0.0)
        whole = excess.sum(axis=0)
        explained = np.minimum(left, whole)
        seconds = (excess * np.divide(explained, whole, out=np.zeros(whole.size), where=whole > 0.0)).mean(axis=1)
        left = left - explained
        found += [
            Charge(int(path), one, None, float(seconds[path]), _by_work(int(path), one, left < waits, times, effort))
            for path in np.flatnonzero(seconds > 0.0)
        ]
    return found, float(left.mean())


def _by_work(
    path: int, late: int, waited: NDArray[np.bool_], times: FloatArray, effort: FloatArray | None
) -> bool | None:
    """Return whether the excess of the late rank in a call path is more effort than that of the ranks that waited."""
    if effort is None or not effort[path, late] > 0.0:
        return None
    others, usual = (float(one[path, waited].mean()) for one in (effort, times))
    if not (others > 0.0 and usual > 0.0):
        return True
    return bool(effort[path, late] / others - 1.0 >= _BY_WORK * (times[path, late] / usual - 1.0))


def _of_openmp(run: RunTimes, seconds: FloatArray) -> list[Cause]:
    """Return the waiting of threads in OpenMP. seconds: of each thread, shape (call paths, ranks, threads)."""
    useful = np.where(run.useful_paths[:, None, None], seconds, 0.0)
    causes = []
    for path in np.flatnonzero(~run.mpi & ~run.useful_paths).tolist():
        if run.tree.name(path).startswith("omp parallel") or not seconds[path].any():
            continue  # the time of a parallel region itself is that of its start
        able = _able(run, path, useful, float(seconds[path].sum()))
        charges: list[Charge] = []
        rest = 0.0
        for rank, waits in enumerate(seconds[path]):
            if waits.any():
                own, left = _of_rank(rank, waits, useful[:, rank], able)
                charges += [replace(one, seconds=one.seconds / run.ranks) for one in own]
                rest += left / run.ranks
        causes.append(_cause(path, float(seconds[path].mean()), charges, rest))
    return causes


def _of_rank(rank: int, waits: FloatArray, times: FloatArray, able: NDArray[np.bool_]) -> tuple[list[Charge], float]:
    """Return what the threads of a rank waited for at one call path, mean over its threads, and the rest.

    waits: shape (threads,); times: useful, shape (call paths, threads); able: call paths of which one visit is as
    long as the waiting. Where there are such, only these are causes: of the thread that has more of them, then in turn.
    """
    own = np.where(able[:, None], times, 0.0)
    turns = own.sum(axis=1)
    found, left = _charges(waits, own if turns.any() else times, None)
    charges = [Charge(one.path, rank, one.rank, one.seconds) for one in found]
    if left > 0.0 and turns.any():
        shares = left * turns / turns.sum()
        charges += [Charge(int(one), rank, None, float(shares[one])) for one in np.flatnonzero(shares)]
        left = 0.0
    return charges, left


def _able(run: RunTimes, path: int, useful: FloatArray, waiting: float) -> NDArray[np.bool_]:
    """Return the call paths in the bodies of a construct of which one visit takes as long as a thread waits once.

    useful: seconds of each thread, shape (call paths, ranks, threads). waiting: of all threads at the call path.
    """
    found = np.zeros(len(run.tree), dtype=bool)
    visits, threads = run.sums.get("visits", np.zeros(len(run.tree))), useful.shape[2]
    parent = int(run.tree.parent[path])
    if not (visits[path] > 0.0 and threads > 1 and parent >= 0):
        return found
    bodies = [parent] if run.useful_paths[parent] else [one for one in run.tree.children[parent] if one != path]
    each = run.tree.inclusive(useful.sum(axis=(1, 2))) / np.maximum(visits, 1.0)
    once = waiting / visits[path] * threads / (threads - 1)  # one thread of the team does not wait
    for body in bodies:
        for one in run.tree.below(body)[1:]:
            found[one] = each[one] >= once or found[run.tree.parent[one]]
    return found
