# SPDX-License-Identifier: Apache-2.0
"""Which call paths of which rank the others wait for, in one run.

At collective operations ranks find out during the run which rank came last, and in which call paths it spent its excess
since they were synchronized before (`RunTimes.delays`). What is left of the waiting is charged from the profile of each
rank. It goes to the late rank, and there to the call paths in which it spent its excess over the whole run:

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
"""A rank counts as one that waits least if it waits longer by this part of the range of the waiting, or by less."""
_MOST_LATE = 4  # ranks that are late at one operation
_LEFT = 0.01  # part of the waiting that may be left
_LITTLE = 0.1  # of the effort of the thread with most: too little to say how long effort takes
_HARDLY = 0.2  # of the longest waiting of a thread, and of the waiting that is left
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
    """Return what ranks and threads of a run waited for.

    None where neither the times of single ranks are known nor what ranks found out during the run.
    """
    if run.time.values is None or run.wait.values is None:
        return None if run.delays is None else _as_told(run)
    effort = None if run.effort is None else run.effort.values
    times = np.where(run.mpi[:, None], 0.0, run.time.values)
    causes = []
    waiting = {path: waits for path in np.flatnonzero(run.mpi).tolist() if (waits := _waits(run, path)).any()}
    known = _told(run, waiting, times, effort)
    for path, waits in waiting.items():
        told, part = known.get(path, ([], 0.0))
        charges, left = _charges(waits * (1.0 - part), times, effort)
        causes.append(_cause(path, float(waits.mean()), _joined([*told, *charges]), left))
    if run.of_threads is not None:
        causes += _of_openmp(run, run.of_threads)
    return _root_causes(run, causes)


def _as_told(run: RunTimes) -> RootCauses:
    """Return what ranks found out during the run, where the times of single ranks are not known."""
    mean = run.wait.mean
    waiting = {path: np.array([mean[path] * run.ranks]) for path in np.flatnonzero(run.mpi & (mean > 0.0)).tolist()}
    known = _told(run, waiting, None, None)
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


def _told(
    run: RunTimes, waiting: Mapping[int, FloatArray], times: FloatArray | None, effort: FloatArray | None
) -> dict[int, tuple[list[Charge], float]]:
    """Return for operations what ranks found out during the run, and which part of the waiting that is.

    waiting: of each rank at each operation, or of all together. times: None where single ranks are not known. The late
    rank may have come to the operation on another call path than those that waited. So what its operation is charged
    beyond the waiting there goes to other calls of the function.
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
    """Return what `_by_work` does, None where the late rank is not late in the whole run, as effort is known of that.

    seconds: that others waited, mean over ranks.
    """
    others = waited & (np.arange(waited.size) != late)
    if not others.any():
        return None
    excess = float(times[path, late] - times[path, others].mean())
    if excess * others.sum() < _BY_WORK * seconds * waited.size:
        return None
    return _by_work(path, late, others, times, effort)


def _joined(charges: list[Charge]) -> list[Charge]:
    """Return the charges of the same call path, rank and thread as one."""
    found: dict[tuple[int, int, int | None], Charge] = {}
    for one in charges:
        key = one.path, one.rank, one.thread
        found[key] = replace(found[key], seconds=found[key].seconds + one.seconds) if key in found else one
    return list(found.values())


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
    """Return what `_charged` returns, and the mean of the rest."""
    found, left = _charged(waits, times, effort)
    return found, float(left.mean())


def _charged(
    waits: FloatArray, times: FloatArray, effort: FloatArray | None = None, net: bool = False
) -> tuple[list[Charge], FloatArray]:
    """Return what caused the waiting at an operation, where the rank is the number of the column, and the rest of each.

    waits: shape (ranks,); times, effort: outside of operations that wait, shape (call paths, ranks). net: nobody waits
    for a rank longer than its times exceed the own ones in all.
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
        if net:
            explained = np.minimum(explained, np.maximum(busy[one] - busy, 0.0))
        seconds = (excess * np.divide(explained, whole, out=np.zeros(whole.size), where=whole > 0.0)).mean(axis=1)
        left = left - explained
        found += [
            Charge(int(path), one, None, float(seconds[path]), _by_work(int(path), one, left < waits, times, effort))
            for path in np.flatnonzero(seconds > 0.0)
        ]
    return found, left


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
    by_effort = _by_effort(useful, run.effort_of_threads)
    causes = []
    for path in np.flatnonzero(~run.mpi & ~run.useful_paths).tolist():
        if run.tree.name(path).startswith("omp parallel") or not seconds[path].any():
            continue  # the time of a parallel region itself is that of its start
        inside = _inside(run, path)
        visited = useful if by_effort is None else by_effort
        able = _able(run, path, inside, visited, float(seconds[path].sum()), by_effort is not None)
        own = None if by_effort is None else np.where(inside[:, None, None], by_effort, 0.0)
        charges: list[Charge] = []
        rest = 0.0
        for rank, waits in enumerate(seconds[path]):
            if waits.any():
                found, left = _of_rank(rank, waits, useful[:, rank], None if own is None else own[:, rank], able)
                charges += [replace(one, seconds=one.seconds / run.ranks) for one in found]
                rest += left / run.ranks
        causes.append(_cause(path, float(seconds[path].mean()), _joined(charges), rest))
    return causes


def _by_effort(useful: FloatArray, effort: FloatArray | None) -> FloatArray | None:
    """Return the useful seconds that each thread would take for its effort alone, None where no effort is known.

    Effort takes as long everywhere as in the thread that takes least for it. So a thread that had to wait for a
    processor, or ran on a slow one, looks like the others. Call paths without effort keep their seconds.
    """
    if effort is None:
        return None
    most = effort.max(axis=(1, 2), keepdims=True)
    counts = (effort > _LITTLE * most) & (useful > 0.0)
    rates = np.divide(useful, effort, out=np.full(useful.shape, np.inf), where=counts)
    least = rates.min(axis=(1, 2), keepdims=True)
    return np.where(np.isfinite(least), effort * np.where(np.isfinite(least), least, 0.0), useful)


def _of_rank(
    rank: int, waits: FloatArray, times: FloatArray, by_effort: FloatArray | None, able: NDArray[np.bool_]
) -> tuple[list[Charge], float]:
    """Return what the threads of a rank waited for at one call path, mean over its threads, and the rest.

    waits: shape (threads,); times: useful, shape (call paths, threads); by_effort: the same as the effort of threads
    says in what the construct calls, which no other program disturbs. able: call paths of which one visit is as long as
    the waiting. Where a thread hardly waits and its effort explains the waiting of the others, it is the late one. Else
    only able call paths are causes, where there are such: of the thread that has more of them, then in turn.
    """
    found: list[Charge] = []
    left = waits
    if by_effort is not None and waits.min() <= _HARDLY * waits.max():
        charges, rest_of_each = _charged(waits, by_effort, net=True)
        if rest_of_each.sum() <= _HARDLY * waits.sum():
            found, left = charges, rest_of_each
    own = np.where(able[:, None], times if by_effort is None else by_effort, 0.0)
    turns = own.sum(axis=1)
    if not found:
        found, left = _charged(left, own if turns.any() else times)
    rest = float(left.mean())
    found = [Charge(one.path, rank, one.rank, one.seconds, one.more_work) for one in found]
    if rest > 0.0 and turns.any():
        shares = rest * turns / turns.sum()
        found += [Charge(int(one), rank, None, float(shares[one])) for one in np.flatnonzero(shares)]
        rest = 0.0
    return found, rest


def _inside(run: RunTimes, path: int) -> NDArray[np.bool_]:
    """Return the call paths that a construct of OpenMP, whose threads wait at `path`, executes in its bodies."""
    found = np.zeros(len(run.tree), dtype=bool)
    parent = int(run.tree.parent[path])
    if parent >= 0:
        bodies = [parent] if run.useful_paths[parent] else [one for one in run.tree.children[parent] if one != path]
        for body in bodies:
            found[list(run.tree.below(body))] = True
    return found


def _able(
    run: RunTimes, path: int, inside: NDArray[np.bool_], useful: FloatArray, waiting: float, longest_can: bool
) -> NDArray[np.bool_]:
    """Return the call paths inside of a construct of which one visit takes as long as a thread waits once.

    inside: as `_inside` returns it; bodies themselves are no such call paths. useful: seconds of each thread, shape
    (call paths, ranks, threads). waiting: of all threads at the call path. longest_can: the call path with the longest
    visits can be waited for, also if it is shorter: threads that other programs interrupt wait longer.
    """
    found = np.zeros(len(run.tree), dtype=bool)
    visits, threads = run.sums.get("visits", np.zeros(len(run.tree))), useful.shape[2]
    if not (visits[path] > 0.0 and threads > 1):
        return found
    called = [one for one in np.flatnonzero(inside).tolist() if inside[run.tree.parent[one]]]
    each = run.tree.inclusive(useful.sum(axis=(1, 2))) / np.maximum(visits, 1.0)
    once = waiting / visits[path] * threads / (threads - 1)  # one thread of the team does not wait
    if longest_can and called:
        once = min(once, float(each[called].max()))
    for one in called:
        found[one] = each[one] >= once or found[run.tree.parent[one]]
    return found
