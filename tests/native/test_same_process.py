# SPDX-License-Identifier: Apache-2.0
"""Programs that use what the runtime stands in front of: signals, system calls, the clock, descriptors."""

from __future__ import annotations

import platform
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from .conftest import Measured, Workshop, profiles_of, raw_folder, visits_of


@pytest.fixture
def without_sanitizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the normal runtime: a sanitizer needs system calls or the time stamp counter, which the program disables."""
    monkeypatch.delenv("QUIPU_HOME", raising=False)


def built(workshop: Workshop, text: str, *options: str) -> Path:
    source = workshop.folder / "guest.c"
    source.write_text(text)
    return workshop.build(source, "-O1", "--quipu-all", *options)


SIGNALS = """#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static volatile sig_atomic_t came;
__attribute__((noinline)) static void first(int number) { (void)number; came++; }
__attribute__((noinline)) static void second(int number) { (void)number; came += 10; }
/* What read() of an empty pipe says once the alarm has come: EINTR, or, if it starts again, what the alarm after that
 * writes. */
static int ends[2];
static void write_one(int number) { (void)number; if (write(ends[1], "x", 1) != 1) _exit(9); }
static const char *waits(void) {
    char byte;
    struct itimerval soon = {{0, 0}, {0, 20000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    if (read(ends[0], &byte, 1) == 1)
        return "goes on";
    return errno == EINTR && read(ends[0], &byte, 1) == 1 ? "ends" : "fails";
}
int main(void) {
    if (pipe(ends))
        return 1;
    printf("%d ", signal(SIGUSR1, first) == SIG_DFL);
    printf("%d ", signal(SIGUSR1, second) == first);
    raise(SIGUSR1);
    printf("%d ", signal(SIGUSR1, SIG_IGN) == second);
    raise(SIGUSR1);
    printf("%d ", (int)came);
    printf("%d\\n", signal(SIGKILL, first) == SIG_ERR && errno == EINVAL);
    signal(SIGALRM, write_one);
    printf("%s ", waits());
    siginterrupt(SIGALRM, 1);
    printf("%s ", waits());
    signal(SIGALRM, write_one);
    printf("%s\\n", waits());
    /* Signals that samples may use. */
    const int wanted[] = {SIGURG, SIGWINCH};
    came = 0;
    for (int i = 0; i < 2; i++) {
        printf("%d ", signal(wanted[i], first) == SIG_DFL);
        raise(wanted[i]);
        printf("%d ", signal(wanted[i], SIG_DFL) == first);
    }
    printf("%d\\n", (int)came);
    return 0;
}
"""


@pytest.mark.parametrize("samples", ["0", "500"])
@pytest.mark.parametrize("measured", [True, False])
def test_signal_is_that_of_the_c_library(workshop: Workshop, samples: str, measured: bool) -> None:
    """The program prints the same with and without Quipu: after `siginterrupt`, handlers interrupt system calls."""
    program = built(workshop, SIGNALS)
    settings: dict[str, Any] = {"QUIPU_SAMPLE": samples} if measured else {"QUIPU_DIR": ""}
    runs = workshop.run_all(program, **settings)
    assert [run.stdout for run in runs] == ["1 1 1 10 1\ngoes on ends ends\n1 1 1 1 2\n"] * measured


# Of system calls the filter allows the few that this program makes itself.
FILTER = """#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "many_paths.h"
int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    walk(1);
    if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 1;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 2;
    walk(40);
    write(1, "done\\n", 5);
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["shared", "static"])
@pytest.mark.parametrize("sample", ["0", "500"])
def test_a_filter_of_system_calls_by_syscall(
    workshop: Workshop, options: tuple[str, ...], sample: str, without_sanitizers: None
) -> None:
    program = built(workshop, FILTER, f"-I{Path(__file__).parent / 'programs'}", *options)
    run = workshop.run(program, QUIPU_SAMPLE=sample)
    assert run.stdout == "done\n"
    assert sum(values["blocks"] for values in run.tree.values()) > 60 * 41


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program has an instruction of x86-64")
def test_a_filter_that_an_instruction_of_the_program_loads(workshop: Workshop, without_sanitizers: None) -> None:
    """The runtime cannot see the call; effort counted before the filter ends the program is kept."""
    instruction = """static long call(long number, long a, const void *b, const void *c) {
    long result;
    __asm__ volatile("mov $0, %%r10\\nmov $0, %%r8\\nsyscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r8", "r10", "r11", "memory");
    return result;
}
int main(void) {"""
    text = FILTER.replace("int main(void) {", instruction)
    text = text.replace(
        "syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)", "call(SYS_prctl, PR_SET_NO_NEW_PRIVS, (void *)1, NULL)"
    )
    text = text.replace(
        "syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)",
        "call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, NULL, &program)",
    )
    program = built(workshop, text, f"-I{Path(__file__).parent / 'programs'}")
    run = workshop.run(program, ends_with=-signal.SIGSYS)
    assert sum(values["visits"] for path, values in run.tree.items() if path == ("main",)) == 1


NO_COUNTER = """#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile double sink;
__attribute__((noinline)) static void work(void) { for (int i = 0; i < 1000; i++) sink += i; }
int main(int count, char **words) {
    (void)words;
    for (int i = 0; i < 10; i++)
        work();
    if (count > 1 ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV) : prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
        return 1;
    for (int i = 0; i < 10; i++)
        work();
    puts("end");
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["shared", "static"])
@pytest.mark.parametrize("ways", [(), ("syscall",)], ids=["prctl", "syscall"])
def test_a_program_without_the_time_stamp_counter(
    workshop: Workshop, options: tuple[str, ...], ways: tuple[str, ...], without_sanitizers: None
) -> None:
    run = workshop.run(built(workshop, NO_COUNTER, *options), *ways, QUIPU_CLOCK="tsc")
    assert run.stdout == "end\n"
    assert run.tree[("main", "work")]["visits"] == 20
    assert any("time stamp counter" in problem for problem in run.profile.problems)


EMULATED = """#include <pthread.h>
#include <stdio.h>
static __thread int mine;
__attribute__((noinline)) static void work(int n) { mine += n; }
static void *thread(void *unused) {
    for (int i = 0; i < 7; i++)
        work(i);
    return unused;
}
int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    thread(NULL);
    printf("%d\\n", mine);
    return 0;
}
"""


def test_emulated_variables_of_threads(workshop: Workshop) -> None:
    run = workshop.run(built(workshop, EMULATED, "-femulated-tls"))
    assert run.stdout == "21\n"
    assert visits_of(run.profile, "work") == 14


FILES = """#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
enum { THREADS = 30 };
static pthread_barrier_t all;
static volatile double sink;
__attribute__((noinline)) static void work(void) { for (int i = 0; i < 300000; i++) sink += i; }
static void *thread(void *unused) {
    pthread_barrier_wait(&all);
    work();
    pthread_barrier_wait(&all);
    return unused;
}
int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&all, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, thread, NULL))
            return 2;
    pthread_barrier_wait(&all);
    int opened = 0;
    while (opened < 34 && open("/dev/null", O_RDONLY) >= 0)
        opened++;
    pthread_barrier_wait(&all);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("opened %d\\n", opened);
    return 0;
}
"""


def with_files(workshop: Workshop, soft: int, hard: int) -> Measured:
    program = built(workshop, FILES)
    limit = (soft, hard)
    done, (profile,) = profiles_of(
        raw_folder(workshop),
        program,
        limit=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
        QUIPU_SAMPLE="500",
        QUIPU_COUNTERS="page_faults=1:2k;context_switches=1:3k",
    )
    assert done.returncode == 0
    return Measured(done.stdout, done.stderr, done.returncode, profile)


def test_descriptors_are_left_to_the_program(workshop: Workshop) -> None:
    """The program needs 37 of 48 descriptors; two events for each of 31 threads need more than remain."""
    run = with_files(workshop, 48, 48)
    assert run.stdout == "opened 34\n"
    assert visits_of(run.profile, "work") == 30
    problem = run.profile.attributes["sampling_problem"]
    assert "Too many open files" in problem and "threads, whose counters are missing" in problem


def test_descriptors_above_the_limit_of_the_program(workshop: Workshop) -> None:
    """With a higher hard limit, all events are open at descriptors above the soft limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    run = with_files(workshop, 48, min(most, 4096))
    assert run.stdout == "opened 34\n"
    assert "sampling_problem" not in run.profile.attributes
