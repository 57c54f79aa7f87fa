# SPDX-License-Identifier: Apache-2.0
"""Threads: their work hangs under the call path that started them, by thread and summed; waiting is told apart."""

from __future__ import annotations

import errno
import os
import subprocess
from collections import defaultdict

import pytest
from quipu.agent.installation import native_file
from quipu.modeling.experiment import RegionKind

from .conftest import PROGRAMS, Measured, Workshop, clock_library, effort

Path = tuple[str, ...]


def visits_by_thread(run: Measured, name: str) -> dict[Path, list[int]]:
    """Visits of call paths that end in the region, for each thread, sorted."""
    names: list[Path] = []
    found: dict[Path, list[int]] = defaultdict(list)
    profile = run.profile
    for node, (parent, region) in enumerate(zip(profile.parent, profile.region, strict=True)):
        above = names[int(parent)] if parent >= 0 else ()
        names.append((*above, profile.regions[int(region)].display) if region else above)
        visits = int(profile.values["visits"][node])
        if names[-1] and names[-1][-1] == name and visits:
            found[names[-1]].append(visits)
    return {path: sorted(numbers) for path, numbers in found.items()}


@pytest.fixture
def openmp(workshop: Workshop):
    """The OpenMP program, measured with four threads."""
    program = workshop.build("openmp.c", "-O2", "-fopenmp")
    return lambda **environment: workshop.run(program, "20", OMP_NUM_THREADS="4", OMP_DYNAMIC="false", **environment)


def test_teams_and_tasks_count_as_one_step_per_block(workshop: Workshop, openmp) -> None:
    run = openmp()
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "762 381 81681 55 1268 84\n"
    assert effort(openmp()) == effort(run)
    exact = workshop.build("openmp.c", "-O2", "-fopenmp", "--quipu-naive", name="exact")
    assert effort(workshop.run(exact, "20", OMP_NUM_THREADS="4", OMP_DYNAMIC="false")) == effort(run)


def test_work_of_a_team_is_under_its_parallel_region(openmp) -> None:
    run = openmp()
    loop = ("main", "loop", "omp parallel", "loop (omp line 17)", "work")
    assert visits_by_thread(run, "work")[loop] == [7, 7, 8, 8]  # 5 of 20, and 2 or 3 of 10
    assert run.tree[("main", "loop")]["visits"] == 2
    assert visits_by_thread(run, "omp parallel")[("main", "loop", "omp parallel")] == [2, 2, 2, 2]
    inner = ("main", "nested", "omp parallel", "nested (omp line 70)", "omp parallel level 2", "nested (omp line 72)")
    assert run.tree[inner]["visits"] == 4
    assert run.tree[(*inner, "work")]["visits"] == 4


NESTED = """#include <omp.h>
__attribute__((noinline)) static void leaf(void) { __asm__ volatile("" ::: "memory"); }
int main(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3)
    for (int i = 0; i < 20000; i++) {
#pragma omp parallel num_threads(2)
        leaf();
    }
    return 0;
}
"""


def test_nested_teams_that_end_at_once_keep_their_call_paths(workshop: Workshop) -> None:
    """LLVM's library gives a nested team the next region before it reports the end of the former."""
    source = workshop.folder / "nested.c"
    source.write_text(NESTED)
    run = workshop.run(workshop.build(source, "-O2", "-fopenmp"))
    leaf = {path: values["visits"] for path, values in run.tree.items() if path and path[-1] == "leaf"}
    assert [(path[0], visits) for path, visits in leaf.items()] == [("main", 120000)]


def test_tasks_are_under_the_region_that_created_them(openmp) -> None:
    tree = openmp().tree
    body = ("main", "tasks", "omp parallel", "tasks (omp line 40)")
    assert tree[(*body, "tasks (omp task line 44)")]["visits"] == 20
    assert tree[(*body, "tasks (omp task line 44)", "work")]["visits"] == 20
    calls = ("main", "omp parallel", "main (omp line 84)", "fibonacci")
    assert tree[calls]["visits"] == 177  # recursion through tasks folds as calls do
    assert tree[(*calls, "omp taskwait")]["visits"] == 88


def test_waiting_is_time_of_its_own(openmp) -> None:
    run = openmp()
    waiting = {"omp barrier", "omp implicit barrier", "omp taskwait", "omp critical"}
    assert {path[-1] for path, values in run.tree.items() if path and values["wait_time"] > 0} <= waiting
    for path, values in run.tree.items():
        if path and path[-1] in waiting:
            assert values["wait_time"] == pytest.approx(values["time"])
            assert values["blocks"] == 0
    body = ("main", "phases", "omp parallel", "phases (omp line 25)")
    assert {path[-1]: values["visits"] for path, values in run.tree.items() if path[:-1] == body} == {
        "omp barrier": 3,
        "omp critical": 3,
        "omp implicit barrier": 3,
        "work": 23,
    }
    assert run.tree[("main", "phases", "omp parallel", "omp implicit barrier")]["visits"] == 3


def test_a_team_without_work_takes_no_time(workshop: Workshop) -> None:
    """The root has the time before main, but not the time of threads that wait for a team."""
    clock = clock_library(workshop)
    program = workshop.build("idle_team.cpp", "-O2", "-fopenmp", str(clock))
    run = workshop.run(program, QUIPU_CLOCK="monotonic")
    assert run.returncode == 0
    assert run.tree[()]["blocks"] > 0
    assert run.tree[()]["time"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("clock", ["none", "monotonic"])
def test_other_clocks(openmp, clock: str) -> None:
    run = openmp(QUIPU_CLOCK=clock)
    assert effort(run) == effort(openmp())
    assert any(values["wait_time"] > 0 for values in run.tree.values()) == (clock == "monotonic")


def test_the_tool_interface_can_be_left_to_others(openmp) -> None:
    run = openmp(QUIPU_OPENMP="0")
    functions = [path for path in run.tree if any(name.startswith("omp ") and "task" not in name for name in path)]
    assert functions == []
    whole = openmp()
    for metric in ("blocks", "instructions", "loads"):
        assert sum(v[metric] for v in run.tree.values()) == sum(v[metric] for v in whole.tree.values())


@pytest.mark.parametrize("link", [(), ("-static",)], ids=["shared", "static"])
def test_posix_threads(workshop: Workshop, link: tuple[str, ...]) -> None:
    run = workshop.run(workshop.build("pthreads.c", "-O2", *link), "4")
    assert run.returncode == 0
    for start in (("main", "start"), ("main", "again", "start")):
        assert run.tree[start]["visits"] == 1
        assert run.tree[(*start, "branch")]["visits"] == 3
        assert run.tree[(*start, "branch", "leaf")]["visits"] == 3
        assert run.tree[(*start, "branch", "leaf", "work")]["visits"] == 3
    assert {path[0] for path in run.tree if path} == {"main"}
    assert len(set(run.profile.location.tolist())) <= 7
    exact = workshop.run(workshop.build("pthreads.c", "-O2", "--quipu-naive", *link, name="exact"), "4")
    assert effort(exact) == effort(run)


REFUSED = """#include <pthread.h>
#include <stdio.h>
static volatile int ran;
__attribute__((noinline)) void work(void) { ran++; }
static void *start(void *argument) {
    work();
    return argument;
}
__attribute__((noinline)) int refused(const pthread_attr_t *attributes) {
    pthread_t thread;
    return pthread_create(&thread, attributes, start, 0);
}
int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    int failure = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 48); /* more than there is address space */
    for (int i = 0; i < 1000; i++)
        failure = refused(&attributes);
    if (pthread_create(&thread, 0, start, 0) != 0 || pthread_join(thread, 0) != 0)
        return 1;
    printf("%d %d\\n", failure, ran);
    return 0;
}
"""


@pytest.mark.parametrize("link", [(), ("-static",)], ids=["shared", "static"])
def test_threads_that_cannot_be_created(workshop: Workshop, link: tuple[str, ...]) -> None:
    """The program receives the error, and the next thread begins below the call path that created it."""
    source = workshop.folder / "refused.c"
    source.write_text(REFUSED)
    run = workshop.run(workshop.build(source, "-O2", *link))
    assert (run.stdout, run.stderr) == (f"{errno.EAGAIN} 1\n", "")
    visits = {path: values["visits"] for path, values in run.tree.items() if values["visits"]}
    assert visits[("main", "refused")] == 1000
    assert visits[("main", "start", "work")] == 1
    assert ("main", "refused", "start") not in visits
    assert run.profile.problems == ()


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_fortran_names_and_teams(workshop: Workshop, level: str) -> None:
    options = (level, "-fopenmp", "-L/usr/lib/llvm-19/lib")
    run = workshop.run(workshop.build("teams.f90", *options, wrapper="quipu-fc"), OMP_NUM_THREADS="3")
    assert (run.returncode, run.stderr) == (0, "")
    visits = {path: values["visits"] for path, values in run.tree.items() if values["visits"]}
    program = ("main", "main program")
    (body,) = [path for path in visits if path[-1].startswith("grid::sweep (omp line ")]
    assert visits[body] == 3
    if level == "-O0":
        assert body[:-1] == (*program, "grid::sweep", "omp parallel")
        assert visits[(*body, "grid::sweep::weight")] == 40
        assert visits[(*program, "main program::show")] == 1
        assert visits[(*program, "main program::show", "my_sum")] == 1
    exact = workshop.build("teams.f90", *options, "--quipu-naive", wrapper="quipu-fc", name="exact")
    assert effort(workshop.run(exact, OMP_NUM_THREADS="3")) == effort(run)


def test_fortran_names_under_mpi(workshop: Workshop) -> None:
    run = workshop.run(workshop.build("ring.f90", "-O0", wrapper="quipu-mpifort"))
    assert (run.returncode, run.stdout) == (0, "0\n")
    program = ("main", "main program")
    assert run.tree[(*program, "set_up")]["visits"] == 1
    assert run.tree[(*program, "ring::total")]["visits"] == 1


@pytest.mark.parametrize("when", ["compile", "run"])
def test_filters_of_a_function_hold_for_its_constructs(workshop: Workshop, when: str) -> None:
    rules = {
        "out": "EXCLUDE MANGLED tasks",
        "in": "EXCLUDE *\nINCLUDE main tasks",
        "body": "EXCLUDE tasks\nINCLUDE tasks\\ (omp\\ task*",
    }
    found = {}
    for name, text in rules.items():
        file = workshop.folder / f"{when}-{name}.filter"
        file.write_text(f"SCOREP_REGION_NAMES_BEGIN\n{text}\nSCOREP_REGION_NAMES_END\n")
        chosen = {"QUIPU_FILTER": str(file)}
        compiled = chosen if when == "compile" else {}
        program = workshop.folder / f"{when}-{name}"
        words = ["-O2", "-fopenmp", str(PROGRAMS / "openmp.c"), "-pthread", "-o", str(program)]
        command = [str(native_file("quipu-cc")), *words]
        subprocess.run(command, check=True, env={**os.environ, **compiled})
        environment = {"OMP_NUM_THREADS": "2", **({} if compiled else chosen)}
        run = workshop.run(program, "20", ends_with=0, **environment)
        shown = {region.display for region in run.profile.regions.values() if region.name.startswith("tasks")}
        visited = {path[-1] for path, values in run.tree.items() if path and values["visits"]}
        found[name] = shown & visited
        assert run.stdout == "762 381 81681 55 1268 84\n"
    everything = {"tasks", "tasks (omp line 40)", "tasks (omp task line 44)"}
    assert found == {"out": set(), "in": everything, "body": {"tasks (omp task line 44)"}}


def test_threads_find_out_who_is_late_at_barriers(workshop: Workshop) -> None:
    """Both threads have nearly equal total times; the late one differs from barrier to barrier."""
    profile = workshop.run(workshop.build("late_thread_work.c", "-O1", "-fopenmp"), OMP_NUM_THREADS="2").profile
    found: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for record in profile.delays:
        operation, cause = ([profile.regions[number] for number in path] for path in (record.operation, record.cause))
        if cause and cause[-1].kind is not RegionKind.OPENMP:
            name = next(
                (one.display for one in cause if one.display in ("even", "before_barrier", "before_end", "in_task")),
                "elsewhere",
            )
            found[operation[1].display, operation[-1].display][name] += record.ticks
    for place, late in {
        ("phases", "omp barrier"): "before_barrier",
        ("phases", "omp implicit barrier"): "before_end",
        ("tasks", "omp implicit barrier"): "in_task",
    }.items():
        assert max(found[place], key=lambda name: found[place][name]) == late, found
