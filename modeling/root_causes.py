# SPDX-License-Identifier: Apache-2.0
"""Find the call paths and ranks that cause the waiting of one run.

The waiting that is assigned to a call path of a late rank is called a charge. Charges and unexplained waiting add up to
the waiting. There are two sources of charges.

First, the runtime in the measured program finds the late rank of each collective operation, and the call paths in which
this rank took longer than the other ranks since their previous synchronization (`RunTimes.delays`).

Second, the profiles of the ranks assign the rest of the waiting, over the whole run:

- The late rank of an operation is a rank with (nearly) the shortest waiting there. Among such ranks, it is the rank
  with the most time outside of MPI.
- Each other rank waited for the call paths in which the late rank took longer, in proportion to the difference.
- If waiting is left, these steps are repeated with the rest.
- The remaining waiting is unexplained, because a profile does not contain the order of events. Examples: waiting at the
  start of a pipeline, and waiting at an operation where the late rank changes each time.

At barriers of OpenMP, the runtime also finds the late thread. These charges are scaled to all waiting at the barrier.
The profiles of the threads of each rank assign other waiting of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .experiment import FloatArray, Metric
from .run_times import RunTimes

DELAY_CAUSED = Metric(
    "delay_caused", "s", "cost", "sum", "time that others waited because of the call path, mean over ranks"
)

NEAR = 0.1
"""Waiting is nearly the shortest if it exceeds the shortest waiting by at most this part of (longest - shortest)."""
_MOST_LATE = 4  # largest number of late ranks of one operation
_BY_WORK = 0.25  # more effort is the cause if it explains at least this part of the additional time


@dataclass(frozen=True)
class Charge:
    """The waiting of others that one call path of a late rank caused.

    - path, rank: the call path and the late rank. seconds: the waiting, mean over ranks.
    - thread: the late thread that caused more than half of the waiting; None in MPI, and if there is no such thread.
    - more_work: True: the late rank has more effort; False: the same effort takes longer; None: the effort is unknown.
    - not_running: the thread left the OpenMP construct `path` late, or had no processor after this construct.
    """

    path: int
    rank: int
    thread: int | None
    seconds: float
    more_work: bool | None = None
    not_running: bool = False


@dataclass(frozen=True)
class Cause:
    """The waiting at one call path (an operation of MPI or OpenMP), and its causes.

    waiting, unexplained: seconds, mean over ranks. charges: the largest first.
    """

    path: int
    waiting: float
    charges: tuple[Charge, ...]
    unexplained: float


@dataclass(frozen=True, eq=False)
class RootCauses:
    """The causes of the waiting in a run.

    causes: one entry per operation, the longest waiting first. delay_caused: (call paths,), seconds that others waited
    because of each call path, mean over ranks. elapsed: seconds of the run.
    """

    causes: tuple[Cause, ...]
    delay_caused: FloatArray
    elapsed: float

    @property
    def waiting(self) -> float:
        """Return the waiting (s), mean over ranks: `delay_caused` plus the unexplained waiting."""
        return sum(cause.waiting for cause in self.causes)

    @property
    def unexplained(self) -> float:
        """Return the waiting without a cause (s), mean over ranks."""
        return sum(cause.unexplained for cause in self.causes)

    @property
    def ranked(self) -> list[tuple[int, int, float]]:
        """Return (call path, rank, seconds), largest first: the waiting that each call path of a rank caused in total.

        Threads that did not run are left out, because no change of a call path would help.
        """
        found: dict[tuple[int, int], float] = {}
        for charge in (one for cause in self.causes for one in cause.charges if not one.not_running):
            key = charge.path, charge.rank
            found[key] = found.get(key, 0.0) + charge.seconds
        return [(path, rank, seconds) for (path, rank), seconds in sorted(found.items(), key=lambda own: -own[1])]


def root_causes(run: RunTimes) -> RootCauses | None:
    """Return the causes of the waiting of ranks and threads of a run.

    None if neither the times of single ranks nor causes from the measured program (`delays`) are known.
    """
    if run.time.values is None or run.wait.values is None:
        return None if run.delays is None else _from_charges(run)
    effort = None if run.effort is None else run.effort.values
    times = np.where(run.mpi[:, None], 0.0, run.time.values)
    causes = []
    waiting = {path: waits for path in np.flatnonzero(run.mpi).tolist() if (waits := _waits(run, path)).any()}
    known = _recorded_charges(run, waiting, times, effort)
    for path, waits in waiting.items():
        told, part = known.get(path, ([], 0.0))
        charges, left = _charges(waits * (1.0 - part), times, effort)
        causes.append(_cause(path, float(waits.mean()), _joined([*told, *charges]), left))
    if run.of_threads is not None:
        causes += _of_openmp(run, run.of_threads)
    return _root_causes(run, causes)


def _from_charges(run: RunTimes) -> RootCauses:
    """Return the causes that the measured program found, for runs without times of single ranks."""
    mean = run.wait.mean
    waiting = {path: np.array([mean[path] * run.ranks]) for path in np.flatnonzero(run.mpi & (mean > 0.0)).tolist()}
    known = _recorded_charges(run, waiting, None, None)
    causes = []
    for path in waiting:
        charges, part = known.get(path, ([], 0.0))
        causes.append(_cause(path, float(mean[path]), _joined(charges), float(mean[path]) * (1.0 - part)))
    return _root_causes(run, causes)


def _root_causes(run: RunTimes, causes: list[Cause]) -> RootCauses:
    causes.sort(key=lambda cause: -cause.waiting)
    caused = np.zeros(len(run.tree))
    for charge in (charge for cause in causes for charge in cause.charges):
        caused[charge.path] += charge.seconds
    return RootCauses(tuple(causes), caused, float(run.elapsed.low[-1]))


def _cause(path: int, waiting: float, charges: list[Charge], left: float) -> Cause:
    return Cause(path, waiting, tuple(sorted(charges, key=lambda charge: -charge.seconds)), left)


def _recorded_charges(
    run: RunTimes, waiting: Mapping[int, FloatArray], times: FloatArray | None, effort: FloatArray | None
) -> dict[int, tuple[list[Charge], float]]:
    """Return for each operation the charges that the measured program found, and the explained part of the waiting.

    waiting: for each operation, the waiting (s) of each rank, or the sum over all ranks. times, effort: (call paths,
    ranks), None if unknown. The late rank may reach the operation on another call path than the waiting ranks. If the
    charges of a call path exceed its waiting, the excess is therefore divided among the other calls of the operation.
    """
    if run.delays is None:
        return {}
    found: dict[int, list[Charge]] = {}
    at_path = {path: float(waits.sum()) for path, waits in waiting.items()}
    for function in {run.tree.name(path) for path in waiting}:
        paths = [path for path in waiting if run.tree.name(path) == function]
        rows = [row for row, one in enumerate(run.delays.operation.tolist()) if run.tree.name(one) == function]
        charged = sum(float(run.delays.seconds[row]) for row in rows)
        if charged <= 0.0:
            continue
        scale = min(1.0, sum(at_path[path] for path in paths) / charged)
        own = dict.fromkeys(paths, 0.0)
        for row in rows:
            if (path := int(run.delays.operation[row])) in own:
                own[path] += scale * float(run.delays.seconds[row])
        kept = {path: min(1.0, at_path[path] / own[path]) if own[path] else 0.0 for path in paths}
        room = {path: at_path[path] - kept[path] * own[path] for path in paths}
        whole = sum(room.values())
        for row in rows:
            late, cause = int(run.delays.rank[row]), int(run.delays.cause[row])
            seconds, there = scale * float(run.delays.seconds[row]) / run.ranks, int(run.delays.operation[row])
            parts = {path: (1.0 - kept.get(there, 0.0)) * room[path] / whole if whole else 0.0 for path in paths}
            parts[there] = parts.get(there, 0.0) + kept.get(there, 0.0)
            for path, part in parts.items():
                if cause >= 0 and part > 0.0:
                    by_work = None
                    if times is not None:
                        by_work = _by_work_in_all(cause, late, waiting[path] > 0.0, seconds * part, times, effort)
                    found.setdefault(path, []).append(Charge(cause, late, None, seconds * part, by_work))
    return {
        path: (charges, min(1.0, sum(one.seconds for one in charges) * run.ranks / at_path[path]))
        for path, charges in found.items()
    }


def _by_work_in_all(
    path: int, late: int, waited: NDArray[np.bool_], seconds: float, times: FloatArray, effort: FloatArray | None
) -> bool | None:
    """Return `_by_work` for a charge that the measured program found; None if it cannot be decided.

    Effort is only known for the whole run. If the late rank does not take longer in the whole run, effort explains
    nothing.

    waited: mask of the ranks that waited. seconds: the waiting of these ranks, mean over ranks.
    """
    others = waited & (np.arange(waited.size) != late)
    if not others.any():
        return None
    excess = float(times[path, late] - times[path, others].mean())
    if excess * others.sum() < _BY_WORK * seconds * waited.size:
        return None
    return _by_work(path, late, others, times, effort)


def _joined(charges: list[Charge]) -> list[Charge]:
    """Return the charges, with charges of the same call path, rank and thread added."""
    found: dict[tuple[int, int, int | None], Charge] = {}
    for one in charges:
        key = one.path, one.rank, one.thread
        found[key] = replace(found[key], seconds=found[key].seconds + one.seconds) if key in found else one
    return list(found.values())


def _waits(run: RunTimes, path: int) -> FloatArray:
    """Return the waiting (s) of each rank at an operation of MPI.

    If waiting in collective operations was not measured, it is the time of the rank minus the time of the fastest rank.
    """
    assert run.time.values is not None and run.wait.values is not None
    if run.waits_separated or not run.collective[path]:
        return np.asarray(run.wait.values[path])
    times = run.time.values[path]
    return np.asarray(np.where(times > 0.0, times - times.min(initial=np.inf, where=times > 0.0), 0.0))


def _charges(waits: FloatArray, times: FloatArray, effort: FloatArray | None) -> tuple[list[Charge], float]:
    """Return the charges for the waiting at an operation by profiles, and the unexplained rest (s), mean over ranks.

    waits: (ranks,), seconds; times, effort: (call paths, ranks), without operations that wait. For threads of a rank,
    "rank" is the number of the thread.
    """
    found: list[Charge] = []
    left = waits.astype(np.float64)
    busy = times.sum(axis=0)
    late: list[int] = []
    while len(late) < _MOST_LATE and left.any():
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
    """Return whether more effort explains why the late rank takes longer in a call path than the waiting ranks.

    waited: mask (ranks,) of the waiting ranks. None if the late rank has no effort there.
    """
    if effort is None or not effort[path, late] > 0.0:
        return None
    others, usual = (float(one[path, waited].mean()) for one in (effort, times))
    if not (others > 0.0 and usual > 0.0):
        return True
    return bool(effort[path, late] / others - 1.0 >= _BY_WORK * (times[path, late] / usual - 1.0))


def _of_openmp(run: RunTimes, seconds: FloatArray) -> list[Cause]:
    """Return the causes of the waiting of threads in OpenMP.

    seconds: (call paths, ranks, threads), the time of each thread.
    """
    useful = np.where(run.useful_paths[:, None, None], seconds, 0.0)
    causes = []
    for path in np.flatnonzero(~run.mpi & ~run.useful_paths).tolist():
        if run.tree.name(path).startswith("omp parallel") or not seconds[path].any():
            continue  # the exclusive time of a parallel region is the start of its threads, not waiting
        charges: list[Charge] = []
        rest = 0.0
        for rank, waits in enumerate(seconds[path]):
            effort = None if run.effort_of_threads is None else run.effort_of_threads[:, rank]
            found = _recorded_charges_of_threads(run, path, rank, waits, useful[:, rank], effort)
            if found is None:
                own, left = _charges(waits, useful[:, rank], effort)
                found = [replace(one, rank=rank, thread=one.rank) for one in own], left
            charges += [replace(one, seconds=one.seconds / run.ranks) for one in found[0]]
            rest += found[1] / run.ranks
        causes.append(_cause(path, float(seconds[path].mean()), charges, rest))
    return causes


def _recorded_charges_of_threads(
    run: RunTimes, path: int, rank: int, waits: FloatArray, times: FloatArray, effort: FloatArray | None
) -> tuple[list[Charge], float] | None:
    """Return the charges that the measured program found at a barrier of a rank, and the unexplained rest (s).

    Both are means over threads. Returns None if the program found no charges. The program may have examined only some
    executions of the barrier; the charges are scaled to all waiting.

    waits: seconds, shape (threads,). times, effort: shape (call paths, threads).
    """
    if run.delays is None:
        return None
    rows = np.flatnonzero((run.delays.operation == path) & (run.delays.rank == rank))
    whole = float(run.delays.seconds[rows].sum())
    if whole <= 0.0:
        return None
    by_cause = np.zeros((len(run.tree) + 1, waits.size))  # the last row: without a cause
    np.add.at(by_cause, (run.delays.cause[rows], run.delays.thread[rows]), run.delays.seconds[rows])
    charges = []
    for cause in np.flatnonzero(by_cause[:-1].any(axis=1)).tolist():
        own = by_cause[cause]
        late = int(own.argmax()) if 2.0 * own.max() > own.sum() else None
        share = float(waits.mean()) * float(own.sum()) / whole
        if not run.useful_paths[cause] and not run.mpi[cause]:
            charges.append(Charge(cause, rank, late, share, not_running=True))
        else:
            others = np.arange(waits.size) != late
            more = None if late is None else _by_work(cause, late, others, times, effort)
            charges.append(Charge(cause, rank, late, share, more))
    return charges, float(waits.mean()) * float(by_cause[-1].sum()) / whole
