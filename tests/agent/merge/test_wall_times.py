# SPDX-License-Identifier: Apache-2.0
"""Wall times of call paths from the times of threads: they add up to the time of the main thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RankStatistics
from quipu.agent.merge.concurrency import threads_at_once
from quipu.agent.merge.native import wall_times
from quipu.modeling.experiment import CallTree, Region, RegionKind
from quipu.modeling.measurement_quality import quality_line

# main > parallel > body, barrier (a wait), task
MAIN, PARALLEL, BODY, BARRIER, TASK = range(5)
PARENT = np.array([-1, MAIN, PARALLEL, PARALLEL, BODY])


def walls(*rows: tuple[int, int, float, float]) -> dict[tuple[int, int], tuple[float, float, int]]:
    """Return wall time, waiting and threads by (call path, thread), from rows with times and waiting."""
    path, thread, time, wait = (np.array(column) for column in zip(*rows, strict=True))
    wall, waiting, threads = wall_times(path, thread, PARENT, np.ones(path.size), time, wait)
    found = zip(path.tolist(), thread.tolist(), wall.tolist(), waiting.tolist(), threads.tolist(), strict=True)
    return {(p, t): (round(a, 9), round(b, 9), int(n)) for p, t, a, b, n in found}


def test_the_time_of_a_team_is_that_of_the_main_thread() -> None:
    rows = [(MAIN, 0, 1.0, 0.0), (PARALLEL, 0, 0.0, 0.0)]
    rows += [(BODY, thread, 2.0, 0.0) for thread in range(4)] + [(BARRIER, thread, 0.5, 0.5) for thread in range(4)]
    found = walls(*rows)
    assert found[MAIN, 0] == (1.0, 0.0, 1)
    assert found[BODY, 0] == (2.0, 0.0, 4)
    assert found[BARRIER, 0] == (0.5, 0.5, 4)
    assert all(found[path, thread][:2] == (0.0, 0.0) for path in (BODY, BARRIER) for thread in (1, 2, 3))


def test_what_other_threads_do_has_the_time_in_which_the_main_thread_waits() -> None:
    rows = [(MAIN, 0, 1.0, 0.0), (PARALLEL, 0, 0.1, 0.0), (BODY, 0, 0.2, 0.0), (BARRIER, 0, 3.0, 3.0)]
    rows += [(TASK, 1, 1.0, 0.0), (TASK, 2, 2.5, 0.5)]  # thread 2 has more time in the task than thread 1
    found = walls(*rows)
    assert found[TASK, 1] == (0.0, 0.0, 2)
    assert found[TASK, 2] == (2.5, 0.5, 2)
    assert found[BODY, 0] == (0.0, 0.0, 1)
    assert found[BARRIER, 0] == (0.7, 0.7, 1)
    assert sum(wall for wall, _, _ in found.values()) == pytest.approx(4.3)


def test_threads_that_run_beside_the_main_thread_take_no_more_than_there_is() -> None:
    rows = [(MAIN, 0, 0.5, 0.0), (PARALLEL, 1, 1.0, 0.0), (PARALLEL, 2, 2.0, 0.0), (BODY, 2, 2.0, 0.0)]
    found = walls(*rows)
    assert found[MAIN, 0][0] == 0.0
    assert found[PARALLEL, 2][0] + found[BODY, 2][0] == pytest.approx(0.5)
    assert found[PARALLEL, 1][0] == 0.0


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.floats(0, 1e6), st.floats(0, 1)), min_size=1, max_size=30
    )
)
def test_wall_times_add_up_to_the_time_of_the_main_thread(rows: list[tuple[int, int, float, float]]) -> None:
    path, thread, time, part = (np.array(column) for column in zip(*rows, strict=True))
    wall, waiting, threads = wall_times(path, thread, PARENT, np.ones(path.size), time, time * part)
    main = thread == thread.min()
    assert wall.sum() == pytest.approx(time[main].sum(), rel=1e-9, abs=1e-9)
    assert (wall >= 0).all() and (waiting >= 0).all() and (threads >= 1).all()
    of_path, waits = (np.bincount(path, values) for values in (wall, waiting))
    assert (waits <= of_path * (1 + 1e-9) + 1e-9).all()


def test_rows_that_name_what_does_not_exist_are_refused() -> None:
    nothing = np.zeros(1)
    with pytest.raises(ValueError, match="do not exist"):
        wall_times(np.array([9]), np.array([0]), PARENT, nothing, nothing, nothing)
    with pytest.raises(ValueError, match="do not exist"):
        wall_times(np.array([0]), np.array([-1]), PARENT, nothing, nothing, nothing)


def statistics_of(values: list[float]) -> RankStatistics:
    array, whole = np.array(values), np.zeros(len(values), dtype=np.int64)
    return RankStatistics(whole + 1, array, array, array, array, 0 * array, whole, whole)


def test_threads_at_once_are_those_that_need_a_processor_each() -> None:
    regions = tuple(Region(name, name, RegionKind.USER) for name in ("main", "team", "short"))
    tree = CallTree(regions, np.array([0, 1, 2]), np.array([-1, 0, 0]))
    wall, threads = statistics_of([1.0, 2.0, 0.01]), statistics_of([1.0, 4.0, 8.0])
    busy = {"time": wall, "thread_time": statistics_of([1.0, 7.9, 0.08]), "threads": threads}
    assert threads_at_once(tree, busy) == 4
    one_by_one = {**busy, "thread_time": statistics_of([1.0, 2.0, 0.08])}  # threads that ran one after the other
    assert threads_at_once(tree, one_by_one) == 1
    assert threads_at_once(tree, {"time": wall}) == 1


def test_threads_count_for_processors_and_for_the_quality() -> None:
    node = {"host": "a", "cpus": 4, "ranks": [{}, {}]}
    run = RunMetadata(nodes=(node,), exit_code=0)
    assert not run.oversubscribed and not replace(run, threads=2).oversubscribed
    crowded = replace(run, threads=3)
    assert crowded.oversubscribed and crowded.processors == (6, 4)
    assert quality_line([crowded.quality]).startswith("2 ranks × 3 threads on 4 processors")
