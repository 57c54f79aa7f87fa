# SPDX-License-Identifier: Apache-2.0
"""Find the call paths and ranks that cause the waiting of one run.

At collective operations, the ranks find the late rank during the run, and the call paths of its excess since their
previous synchronization (`RunTimes.delays`). The rest of the waiting is charged from the profile of each rank, to the
call paths of the excess over the whole run:

- The late rank of an operation has (nearly) the shortest waiting there, and among such ranks the most time outside of
  MPI.
- Each other rank waited for the call paths in which the late rank took longer, in proportion to the difference.
- If waiting is left, these steps are repeated with the rest.
- The remaining waiting is unexplained. A profile has no order of events, so the start of a pipeline is unexplained, and
  so is an operation where the late rank changes each time.

Charges and unexplained waiting add up to the waiting. At barriers of OpenMP, the threads also find the late thread
during the run. These charges are scaled to all waiting there. Other waiting of threads is charged from the profile of
each thread, rank by rank.
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
"""A rank has nearly the shortest waiting if its waiting exceeds the shortest by at most this part of the range."""
_MOST_LATE = 4  # most late ranks of one operation
_BY_WORK = 0.25  # part of the excess of time that more effort has to explain


@dataclass(frozen=True)
class Charge:
    """The waiting of others that one call path of a late rank caused: seconds, mean over ranks (or threads).

    - thread: the thread that is late most often; None in MPI, and without such a thread.
    - more_work: True: the late rank has more effort; False: the same effort takes longer; None: the effort is unknown.
    - not_running: the thread left the OpenMP construct `path` late, or had no processor after it.
    """

    path: int
    rank: int
    thread: int | None
    seconds: float
    more_work: bool | None = None
    not_running: bool = False


@dataclass(frozen=True)
class Cause:
    """The waiting at one call path (an operation of MPI or OpenMP), and its causes."""

    path: int
    waiting: float
    charges: tuple[Charge, ...]
    unexplained: float


@dataclass(frozen=True, eq=False)
class RootCauses:
    """The causes of the waiting in a run, longest waiting first.

    delay_caused: seconds that others waited because of each call path, mean over ranks, shape (call paths,); elapsed:
    seconds of the run.
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
        """Return (call path, rank, seconds): the waiting that each caused at all operations, largest first.

        Threads that did not run are left out, because no change of a call path would balance them.
        """
        found: dict[tuple[int, int], float] = {}
        for charge in (one for cause in self.causes for one in cause.charges if not one.not_running):
            key = charge.path, charge.rank
            found[key] = found.get(key, 0.0) + charge.seconds
        return [(path, rank, seconds) for (path, rank), seconds in sorted(found.items(), key=lambda own: -own[1])]


def root_causes(run: RunTimes) -> RootCauses | None:
    """Return the causes of the waiting of ranks and threads of a run.

    None if neither the times of single ranks nor charges from the run are known.
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
    """Return the charges that were found during the run, if the times of single ranks are unknown."""
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
    """Return the charges from the run for each operation, and the part of the waiting that they explain.

    waiting: of each rank at each operation, or of all together; times: None if single ranks are unknown. The late rank
    may reach the operation on another call path than the waiting ranks. Charges of an operation beyond its waiting
    therefore go to other calls of the function.
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
    """Return the result of `_by_work`; None if the late rank is not late in the whole run, because effort is known only
    there.

    seconds: waiting of the others, mean over ranks.
    """
    others = waited & (np.arange(waited.size) != late)
    if not others.any():
        return None
    excess = float(times[path, late] - times[path, others].mean())
    if excess * others.sum() < _BY_WORK * seconds * waited.size:
        return None
    return _by_work(path, late, others, times, effort)


def _joined(charges: list[Charge]) -> list[Charge]:
    """Return the charges with equal call path, rank and thread merged."""
    found: dict[tuple[int, int, int | None], Charge] = {}
    for one in charges:
        key = one.path, one.rank, one.thread
        found[key] = replace(found[key], seconds=found[key].seconds + one.seconds) if key in found else one
    return list(found.values())


def _waits(run: RunTimes, path: int) -> FloatArray:
    """Return the waiting of each rank at an operation of MPI.

    If waiting in collective operations was not measured, it is the time beyond the fastest rank.
    """
    assert run.time.values is not None and run.wait.values is not None
    if run.waits_separated or not run.collective[path]:
        return np.asarray(run.wait.values[path])
    times = run.time.values[path]
    return np.asarray(np.where(times > 0.0, times - times.min(initial=np.inf, where=times > 0.0), 0.0))


def _charges(waits: FloatArray, times: FloatArray, effort: FloatArray | None) -> tuple[list[Charge], float]:
    """Return the causes of the waiting at an operation, and the unexplained rest, mean over ranks.

    The rank is the number of the column. waits: shape (ranks,); times, effort: outside of operations that wait, shape
    (call paths, ranks).
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
    """Return whether the late rank has more effort in a call path than the waiting ranks."""
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
            continue  # the time of a parallel region itself is the time of its start
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
    """Return the charges of the threads of a rank at a barrier, mean over threads, and the rest.

    waits: shape (threads,); times, effort: shape (call paths, threads). None if there are no charges from the run.
    Barriers without accounting are treated like the others.
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
