# SPDX-License-Identifier: Apache-2.0
"""Who is waited for: planted delays are charged to their call path and rank, and charges add up to the waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.experiment import CallTree, FloatArray, Region, RegionKind
from quipu.modeling.root_causes import RootCauses, root_causes
from quipu.modeling.run_times import Delays, RankColumns, RunTimes

MPI, OPENMP = RegionKind.MPI, RegionKind.OPENMP
REGIONS = (
    Region("main", "main"),
    Region("work", "work"),
    Region("sort", "sort"),
    Region("MPI_Bcast", "MPI_Bcast", MPI),
    Region("MPI_Allreduce", "MPI_Allreduce", MPI),
    Region("MPI_Recv", "MPI_Recv", MPI),
    Region("team", "omp parallel", OPENMP),
    Region("body", "main (omp line 5)"),
    Region("barrier", "omp implicit barrier", OPENMP),
    Region("long", "long_item"),
    Region("short", "short_item"),
)
TREE = CallTree(REGIONS, np.arange(11), np.array([-1, 0, 0, 0, 0, 0, 0, 6, 6, 7, 7]))
MAIN, WORK, SORT, BCAST, ALLREDUCE, RECV, TEAM, BODY, BARRIER, LONG, SHORT = range(11)
Rows = Mapping[int, Sequence[float]]


def table(rows: Rows, ranks: int) -> FloatArray:
    values = np.zeros((len(TREE), ranks))
    for path, own in rows.items():
        values[path] = own
    return values


def run_of(times: Rows, waits: Rows, effort: Rows | None = None, **changes: object) -> RunTimes:
    ranks = len(next(iter(times.values())))
    time, wait = (RankColumns.of_ranks(table(rows, ranks)) for rows in ({**waits, **times}, waits))
    counted = None if effort is None else RankColumns.of_ranks(table(effort, ranks))
    found = RunTimes("r", {"p": ranks}, 1, ranks, 1, TREE, time, wait, counted, waits_separated=True)
    return replace(found, **changes)  # type: ignore[arg-type]


def found(run: RunTimes) -> RootCauses:
    causes = root_causes(run)
    assert causes is not None
    return causes


def test_the_late_root_of_a_broadcast() -> None:
    times = {WORK: [1.0, 1.0, 1.0], SORT: [2.0, 0.0, 0.0]}
    run = run_of(times, {BCAST: [0.0, 2.0, 2.0]}, {WORK: [5, 5, 5], SORT: [9, 0, 0]})
    (cause,) = found(run).causes
    assert cause.path == BCAST
    assert cause.waiting == pytest.approx(4.0 / 3.0)
    (charge,) = cause.charges
    assert (charge.path, charge.rank, charge.thread, charge.more_work) == (SORT, 0, None, True)
    assert charge.seconds == pytest.approx(cause.waiting)
    assert cause.unexplained == pytest.approx(0.0)
    assert found(run).delay_caused[SORT] == pytest.approx(4.0 / 3.0)


def test_each_operation_has_its_late_rank() -> None:
    """Rank 0 sorts before the broadcast, rank 2 works longest before the reduction."""
    times = {SORT: [3.0, 0.0, 0.0], WORK: [1.0, 1.0, 5.0]}
    causes = found(run_of(times, {BCAST: [0.0, 3.0, 3.0], ALLREDUCE: [4.0, 4.0, 0.0]}))
    assert causes.ranked[0][:2] == (WORK, 2)
    assert causes.ranked[1][:2] == (SORT, 0)
    assert causes.unexplained == pytest.approx(0.0)


def test_two_ranks_are_late_at_the_same_operation() -> None:
    times = {SORT: [4.0, 0.0, 0.0, 0.0], WORK: [0.0, 1.0, 0.0, 0.0]}
    causes = found(run_of(times, {ALLREDUCE: [1.0, 4.0, 5.0, 5.0]}))
    assert [(path, rank) for path, rank, _ in causes.ranked] == [(SORT, 0), (WORK, 1)]
    assert causes.delay_caused[[SORT, WORK]] == pytest.approx([3.0, 0.75])
    assert causes.unexplained == pytest.approx(0.0)


def test_a_slow_rank_does_the_same_work() -> None:
    run = run_of({WORK: [1.0, 2.0, 1.0]}, {ALLREDUCE: [1.0, 0.0, 1.0]}, {WORK: [7, 7, 7]})
    (charge,) = found(run).causes[0].charges
    assert (charge.path, charge.rank, charge.more_work) == (WORK, 1, False)


def test_waiting_that_no_rank_explains_is_said() -> None:
    """In a pipeline, later ranks wait for the first item although all ranks have equal work."""
    causes = found(run_of({WORK: [2.0, 2.0, 2.0]}, {RECV: [0.0, 1.0, 2.0]}))
    assert causes.unexplained == pytest.approx(causes.waiting)
    assert causes.ranked == []


def test_waiting_in_collectives_that_was_not_separated() -> None:
    times = {WORK: [1.0, 3.0], ALLREDUCE: [2.5, 0.5]}
    causes = found(run_of(times, {}, waits_separated=False))
    assert causes.ranked == [(WORK, 1, pytest.approx(1.0))]
    assert found(run_of(times, {})).causes == ()  # it was, and there was none


def test_statistics_know_no_ranks() -> None:
    run = run_of({WORK: [1.0, 2.0]}, {ALLREDUCE: [1.0, 0.0]})
    assert root_causes(replace(run, time=replace(run.time, values=None))) is None


def threads_of(rows: Mapping[int, Sequence[float]]) -> FloatArray:
    return table(rows, 2)[:, None, :]


def test_threads_that_wait_for_one() -> None:
    threads = threads_of({SHORT: [1.0, 1.0], LONG: [0.0, 2.0], BARRIER: [2.0, 0.0]})
    (cause,) = found(run_of({WORK: [0.0]}, {}, threads=2, of_threads=threads)).causes
    assert (cause.path, cause.waiting) == (BARRIER, 1.0)
    assert [(one.path, one.rank, one.thread) for one in cause.charges] == [(LONG, 0, 1)]


def test_threads_of_a_dynamic_schedule_wait_in_turn() -> None:
    """Both threads had the long item equally often; delays are known for half of the barriers."""
    threads = threads_of({SHORT: [10.0, 10.0], LONG: [20.0, 20.0], BARRIER: [10.0, 10.0]})
    long = (BARRIER, LONG, 0, 4.0, 0), (BARRIER, LONG, 0, 4.0, 1)
    told = delays(*long, (BARRIER, TEAM, 0, 1.5, 1), (BARRIER, -1, 0, 0.5, 0))
    causes = found(run_of({WORK: [0.0]}, {}, threads=2, of_threads=threads, delays=told))
    (cause,) = causes.causes
    assert [(one.path, one.thread, one.not_running) for one in cause.charges] == [(LONG, None, False), (TEAM, 1, True)]
    assert [one.seconds for one in cause.charges] == pytest.approx([8.0, 1.5])
    assert cause.unexplained == pytest.approx(0.5)
    assert causes.ranked == [(LONG, 0, pytest.approx(8.0))]


def test_a_late_thread_executes_more_or_is_slower() -> None:
    threads = threads_of({SHORT: [6.0, 1.0], LONG: [2.0, 6.0], BARRIER: [1.0, 3.0]})
    effort = threads_of({SHORT: [100, 100], LONG: [100, 300]})
    told = delays((BARRIER, SHORT, 0, 1.0, 0), (BARRIER, LONG, 0, 3.0, 1))
    run = run_of({WORK: [0.0]}, {}, threads=2, of_threads=threads, effort_of_threads=effort, delays=told)
    (cause,) = found(run).causes
    assert [(one.path, one.more_work) for one in cause.charges] == [(LONG, True), (SHORT, False)]


def delays(*rows: tuple[int, int, int, float] | tuple[int, int, int, float, int]) -> Delays:
    operation, cause, rank = (np.array([row[place] for row in rows]) for place in range(3))
    thread = np.array([row[4] if len(row) > 4 else 0 for row in rows])
    return Delays(operation, cause, rank, thread, np.array([row[3] for row in rows]))


def test_what_ranks_found_out_is_charged_although_the_totals_are_the_same() -> None:
    """Rank 0 is late at the broadcast, rank 1 at the reduction; both have equal total work."""
    waits = {BCAST: [0.0, 2.0], ALLREDUCE: [2.0, 0.0]}
    told = delays((BCAST, WORK, 0, 2.0), (ALLREDUCE, WORK, 1, 1.5), (ALLREDUCE, -1, 1, 0.5))
    causes = found(run_of({WORK: [5.0, 5.0]}, waits, {WORK: [9, 9]}, delays=told))
    assert causes.ranked == [(WORK, 0, pytest.approx(1.0)), (WORK, 1, pytest.approx(0.75))]
    assert causes.unexplained == pytest.approx(0.25)
    assert causes.delay_caused[WORK] == pytest.approx(1.75)
    assert {charge.more_work for cause in causes.causes for charge in cause.charges} == {None}  # not known of phases


def test_what_ranks_found_out_needs_no_times_of_single_ranks() -> None:
    run = run_of({WORK: [5.0, 3.0]}, {BCAST: [0.0, 2.0]}, delays=delays((BCAST, WORK, 0, 1.5)))
    run = replace(run, time=replace(run.time, values=None), wait=replace(run.wait, values=None))
    (cause,) = found(run).causes
    assert (cause.path, cause.waiting, cause.unexplained) == (BCAST, 1.0, pytest.approx(0.25))
    assert [(one.path, one.rank, one.seconds) for one in cause.charges] == [(WORK, 0, pytest.approx(0.75))]


def test_what_ranks_found_out_is_more_work_if_the_totals_say_so() -> None:
    run = run_of({WORK: [5.0, 3.0]}, {BCAST: [0.0, 2.0]}, {WORK: [10, 6]}, delays=delays((BCAST, WORK, 0, 2.0)))
    assert [charge.more_work for charge in found(run).causes[0].charges] == [True]


def test_the_late_rank_came_to_the_operation_on_another_call_path() -> None:
    """The late root and the waiting ranks have different call paths of MPI_Bcast."""
    regions = (*REGIONS, Region("send_all", "send_all"))
    tree = CallTree(regions, np.append(np.arange(11), [11, BCAST]), np.append(TREE.parent, [MAIN, 11]))
    sending = len(tree) - 1
    time, wait = np.zeros((len(tree), 3)), np.zeros((len(tree), 3))
    wait[BCAST] = [0.0, 2.0, 2.0]
    columns = RankColumns.of_ranks(time + wait), RankColumns.of_ranks(wait)
    run = RunTimes("r", {}, 1, 3, 1, tree, *columns, waits_separated=True, delays=delays((sending, WORK, 0, 4.0)))
    (cause,) = found(run).causes
    assert (cause.path, cause.unexplained) == (BCAST, pytest.approx(0.0))
    assert [(one.path, one.rank) for one in cause.charges] == [(WORK, 0)]


SECONDS = st.lists(st.floats(0.0, 100.0), min_size=4, max_size=4)


@given(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS)
def test_charges_add_up(
    main: list[float], work: list[float], sort: list[float], bcast: list[float], reduce: list[float]
) -> None:
    run = run_of({MAIN: main, WORK: work, SORT: sort}, {BCAST: bcast, ALLREDUCE: reduce})
    causes = found(run)
    assert causes.waiting == pytest.approx((sum(bcast) + sum(reduce)) / 4, abs=1e-9)
    assert float(causes.delay_caused.sum()) + causes.unexplained == pytest.approx(causes.waiting, abs=1e-9)
    assert all(cause.unexplained >= -1e-9 for cause in causes.causes)
    assert (causes.delay_caused >= 0.0).all()
