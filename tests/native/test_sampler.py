# SPDX-License-Identifier: Apache-2.0
"""Samples of measured programs: where they go, and programs that have signals, threads and timers of their own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from peers import needs
from quipu.agent.counters.papi import library

from .conftest import PROGRAMS, Measured, Workshop
from .sampled_programs import GUESTS, built

COUNTED = "page_faults=1:2"
"""PERF_COUNT_SW_PAGE_FAULTS of linux/perf_event.h."""


@pytest.fixture(scope="module")
def without_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Start a program that may not open perf events: POSIX timers take the samples."""
    program = tmp_path_factory.mktemp("forbidden") / "without_events"
    subprocess.run(["clang-19", "-O1", PROGRAMS / "without_events.c", "-o", program], check=True)
    return program


def samples_of(run: Measured) -> int:
    return int(run.profile.values["samples"].sum())


def milliseconds_of(run: Measured) -> float:
    return float(run.profile.values["task_clock"].sum()) * 1e-6


def check(run: Measured, milliseconds: float) -> None:
    """Check that no sample is lost and that the samples cover the processor time of the work."""
    assert run.profile.attributes["samples_lost"] == "0"
    assert "sampling_problem" not in run.profile.attributes
    assert milliseconds_of(run) >= milliseconds
    events = run.profile.attributes["sampled_by"] == "perf"
    assert samples_of(run) >= (0.15 * milliseconds if events else 1)  # a POSIX timer goes with the kernel's tick


def test_samples_and_counters_go_to_the_call_path_that_runs(workshop: Workshop, tmp_path: Path) -> None:
    body = """__attribute__((noinline)) void first(void) { work(0.05); }
    __attribute__((noinline)) void second(void) {
        char *memory = mmap(0, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t at = 0; at < 1 << 24; at += 4096)
            memory[at] = 1;
        work(0.15);
    }
    int main(void) { first(); second(); return 0; }
    """
    run = workshop.run(built(workshop, tmp_path, body), QUIPU_SAMPLE="1000", QUIPU_COUNTERS=COUNTED)
    check(run, 200)
    first = run.tree["main", "first", "work"]
    second = run.tree["main", "second", "work"]
    assert first["task_clock"] >= 0.04e9
    assert second["task_clock"] > 2 * first["task_clock"]
    faults = sum(values["page_faults"] for path, values in run.tree.items() if path[:2] == ("main", "second"))
    assert faults >= 4096 * 0.9 or faults >= 8  # 8: where pages are huge ones


def test_time_in_the_kernel_stays_where_it_was_spent(workshop: Workshop, tmp_path: Path) -> None:
    body = """enum { SIZE = 1 << 25 };
    __attribute__((noinline)) void asks(void) {
        const double begin = seconds();
        work(0.02);
        for (int i = 0; i < 8; i++)
            munmap(mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), SIZE);
        printf("%.9f\\n", seconds() - begin);
    }
    __attribute__((noinline)) void after(void) { work(0.02); }
    int main(void) { asks(); after(); return 0; }
    """
    run = workshop.run(built(workshop, tmp_path, body), QUIPU_SAMPLE="1000")
    found = sum(values["task_clock"] for path, values in run.tree.items() if path[:2] == ("main", "asks"))
    assert 0.8 < found * 1e-9 / float(run.stdout) < 1.1


def test_nothing_happens_unless_asked(workshop: Workshop, tmp_path: Path) -> None:
    body = """int main(void) {
        struct sigaction now;
        work(0.02);
        sigaction(SIGURG, 0, &now);
        puts(now.sa_handler == SIG_DFL ? "default" : "taken");
        return 0;
    }
    """
    program = built(workshop, tmp_path, body)
    assert workshop.run(program).stdout == "default\n"
    assert "samples" not in workshop.run(program, QUIPU_SAMPLE="0").profile.values
    assert workshop.run(program, QUIPU_SAMPLE="1000").stdout == "default\n"


@pytest.mark.parametrize(
    ("rate", "counters", "message"),
    [
        ("fast", "", "QUIPU_SAMPLE must be a number"),
        ("20000", "", "10000 at most"),
        ("", COUNTED, "needs QUIPU_SAMPLE"),
        ("100", "page faults=1:2", "NAME=TYPE:CONFIG"),
        ("100", "a=1", "NAME=TYPE:CONFIG"),
        ("100", "a=1:2;;b=1:3", "NAME=TYPE:CONFIG"),
        ("100", ";".join(f"a{i}=1:2" for i in range(17)), "NAME=TYPE:CONFIG"),
    ],
)
def test_mistakes_in_the_variables_end_the_program(
    workshop: Workshop, tmp_path: Path, rate: str, counters: str, message: str
) -> None:
    program = built(workshop, tmp_path, "int main(void) { return 0; }")
    environment = {"QUIPU_DIR": str(tmp_path), "QUIPU_SAMPLE": rate, "QUIPU_COUNTERS": counters}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_counter_that_does_not_exist_is_named(workshop: Workshop, tmp_path: Path) -> None:
    program = built(workshop, tmp_path, "int main(void) { work(0.05); return 0; }")
    run = workshop.run(program, QUIPU_SAMPLE="1000", QUIPU_COUNTERS="nothing=1:999")
    assert "nothing cannot be counted" in run.profile.attributes["sampling_problem"]
    assert milliseconds_of(run) >= 50


@pytest.mark.parametrize("guest", GUESTS)
def test_programs_do_not_notice(workshop: Workshop, tmp_path: Path, guest: str) -> None:
    body, milliseconds = GUESTS[guest]
    run = workshop.run(built(workshop, tmp_path, body), QUIPU_SAMPLE="1000", QUIPU_COUNTERS=COUNTED)
    if milliseconds is not None:
        check(run, milliseconds)


@pytest.mark.parametrize("guest", GUESTS)
def test_programs_do_not_notice_timers(workshop: Workshop, tmp_path: Path, without_events: Path, guest: str) -> None:
    body, milliseconds = GUESTS[guest]
    run = workshop.run(without_events, str(built(workshop, tmp_path, body)), QUIPU_SAMPLE="1000")
    assert run.profile.attributes["sampled_by"] == "timer"
    if milliseconds is not None:
        check(run, milliseconds)


def test_counters_that_are_forbidden_are_named(workshop: Workshop, tmp_path: Path, without_events: Path) -> None:
    program = built(workshop, tmp_path, "int main(void) { work(0.2); return 0; }")
    run = workshop.run(without_events, str(program), QUIPU_SAMPLE="1000", QUIPU_COUNTERS=COUNTED)
    assert "page_faults cannot be counted" in run.profile.attributes["sampling_problem"]
    assert run.tree["main", "work"]["task_clock"] >= 0.15e9  # some ticks of the kernel's go elsewhere
    assert run.stderr.count("\n") == 1


OF_CHILDREN = """static volatile sig_atomic_t ticks;
static void tick(int number) { (void)number; ticks++; }
/* A timer of the thread rings with that of the samples, at a tick of the kernel's: then samples are up to date. */
__attribute__((noinline)) void of_child(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    signal(SIGUSR1, tick);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) || timer_settime(timer, 0, &every, 0))
        exit(1);
    work(0.2);
    for (int before = ticks; ticks == before;)
        work(0.001);
    timer_delete(timer);
}
int main(void) {
    work(0.1);
    if (fork() == 0) {
        of_child();
        printf("%f\\n", seconds());
        return 0;
    }
    wait(0);
    work(0.3);
    return 0;
}
"""


@pytest.mark.parametrize("timers", [False, True], ids=["events", "timers"])
def test_children_of_fork_are_sampled_for_themselves(
    workshop: Workshop, tmp_path: Path, without_events: Path, timers: bool
) -> None:
    program = built(workshop, tmp_path, OF_CHILDREN)
    if timers:
        runs = workshop.run_all(without_events, str(program), QUIPU_SAMPLE="1000")
        assert {run.profile.attributes["sampled_by"] for run in runs} == {"timer"}
    else:
        runs = workshop.run_all(program, QUIPU_SAMPLE="1000", QUIPU_COUNTERS=COUNTED)
    parent, child = sorted(runs, key=milliseconds_of, reverse=True)
    check(parent, 400)
    check(child, 199)
    assert milliseconds_of(child) < 1000 * float(child.stdout) + 50  # its own time, and at its end some of the runtime
    parts = [values["task_clock"] for path, values in child.tree.items() if path[:2] == ("main", "of_child")]
    assert sum(parts) >= 0.2e9


LATE = """#include <sys/syscall.h>
static __thread int ends;
static void pass(void) {
    for (double end = seconds() + 0.02; ends && seconds() < end;)
        ;
}
/* The runtime's calls come here, too, where signals wait. */
int close(int file) { pass(); return syscall(SYS_close, file); }
int timer_delete(timer_t timer) {
    int (*real)(timer_t) = (int (*)(timer_t))dlsym(RTLD_NEXT, "timer_delete");
    pass();
    return real(timer);
}
static void *run(void *argument) { work(0.01); ends = 1; return argument; }
int main(void) {
    pthread_t thread;
    return pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0);
}
"""


@pytest.mark.parametrize("timers", [False, True], ids=["events", "timers"])
def test_a_sample_that_comes_while_its_thread_ends_is_not_lost(
    workshop: Workshop, tmp_path: Path, without_events: Path, timers: bool
) -> None:
    program = built(workshop, tmp_path, LATE)
    command = [without_events, str(program)] if timers else [program]
    attributes = workshop.run(*command, QUIPU_SAMPLE="1000").profile.attributes
    assert (attributes["samples_lost"], attributes.get("sampling_problem")) == ("0", None)


def test_functions_without_regions_are_found_by_address(workshop: Workshop, tmp_path: Path) -> None:
    from quipu.agent.merge.functions import flat_profile, with_functions

    body = """__attribute__((noinline)) void hidden(void) { work(0.05); }
    int main(void) { hidden(); return 0; }
    """
    program = built(workshop, tmp_path, body)
    run = workshop.run(program, QUIPU_SAMPLE="1000", QUIPU_SAMPLE_FUNCTIONS="1")
    found = {row["function"]: row for row in flat_profile([run.profile])}
    assert found["work"]["samples"] >= 0.15 * 50
    assert found["work"]["library"].endswith("program")
    extended = with_functions(run.profile)
    assert extended.parent.size >= run.profile.parent.size


def instructions_are_counted() -> bool:
    """Whether this machine has a PMU that the kernel offers: `perf stat -e instructions:u true` counts."""
    done = subprocess.run(
        ["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and done.stderr.split(",")[0].isdigit()


@pytest.mark.skipif(
    not shutil.which("perf") or not instructions_are_counted(),
    reason="not run: `perf stat -e instructions true` counts nothing here (no PMU)",
)
def test_instructions_of_the_processor(workshop: Workshop, tmp_path: Path) -> None:
    body = """int main(void) {
        for (volatile long i = 0; i < 100000000; i++)
            ;
        return 0;
    }
    """
    counters = "cpu_cycles=0:0;cpu_instructions=0:1"
    run = workshop.run(built(workshop, tmp_path, body), QUIPU_SAMPLE="1000", QUIPU_COUNTERS=counters)
    check(run, 0)
    assert 3e8 <= run.tree["main",]["cpu_instructions"] <= 9e8  # 4 to 6 per round
    assert run.tree["main",]["cpu_cycles"] > 5e7


def papi_knows_the_processor() -> bool:
    """Whether PAPI has events at all here: it has none on a processor that is newer than its libpfm."""
    found = library()
    return not isinstance(found, str) and found.PAPI_query_named_event(b"perf::PAGE-FAULTS") == 0


@needs("PAPI")
@pytest.mark.skipif(not papi_knows_the_processor(), reason="PAPI does not know this processor (libpfm4 has no PMU)")
def test_papi_counts_page_faults(workshop: Workshop, tmp_path: Path) -> None:
    body = """int main(void) {
        static char memory[1 << 24];
        for (size_t at = 0; at < sizeof memory; at += 4096)
            memory[at] = 1;
        work(0.05);
        return 0;
    }
    """
    program = built(workshop, tmp_path, body)
    run = workshop.run(program, QUIPU_SAMPLE="1000", QUIPU_COUNTERS="faults=@perf::PAGE-FAULTS;ns=@perf::TASK-CLOCK")
    check(run, 50)
    main = run.tree["main",]
    assert main["faults"] + run.tree["main", "work"]["faults"] >= 8
    named = workshop.run(program, QUIPU_SAMPLE="1000", QUIPU_COUNTERS="no=@PAPI_NO_SUCH_EVENT")
    assert "PAPI_NO_SUCH_EVENT cannot be counted" in named.profile.attributes["sampling_problem"]
