# SPDX-License-Identifier: Apache-2.0
"""Sources of programs for tests of samples: each has work() with a given processor time, and one special property."""

from __future__ import annotations

from pathlib import Path

from .conftest import Workshop

WORK = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
__attribute__((noinline)) void work(double for_seconds) {
    volatile double x = 1;
    for (double end = seconds() + for_seconds; seconds() < end;)
        for (int i = 0; i < 20000; i++)
            x = x * 1.0000001 + 1e-9;
}
"""


def built(workshop: Workshop, folder: Path, body: str) -> Path:
    source = folder / "guest.c"
    source.write_text(WORK + body)
    return workshop.build(source, "-O1")


GUESTS = {
    "threads that come and go": (
        """static void *run(void *argument) { work(0.01); return argument; }
    int main(void) {
        for (int round = 0; round < 5; round++) {
            pthread_t thread[4];
            for (int i = 0; i < 4; i++)
                pthread_create(&thread[i], 0, run, 0);
            for (int i = 0; i < 4; i++)
                pthread_join(thread[i], 0);
        }
        return 0;
    }
    """,
        190,
    ),
    "timers of its own": (
        """static volatile sig_atomic_t rang;
    static void ring(int number) { (void)number; rang++; }
    int main(void) {
        struct itimerval every = {{0, 5000}, {0, 5000}};
        signal(SIGPROF, ring);
        signal(SIGVTALRM, ring);
        setitimer(ITIMER_PROF, &every, 0);
        setitimer(ITIMER_VIRTUAL, &every, 0);
        work(0.2);
        getitimer(ITIMER_PROF, &every);
        raise(SIGPROF);
        return rang < 1 || every.it_interval.tv_usec == 0;
    }
    """,
        200,
    ),
    "the signal of the samples": (
        """static volatile sig_atomic_t urgent;
    static void count(int number) { (void)number; urgent++; }
    int main(void) {
        work(0.05);
        if (signal(SIGURG, count) != SIG_DFL)
            return 1;
        work(0.1);
        raise(SIGURG);
        if (urgent != 1 || signal(SIGURG, SIG_IGN) != count)
            return 2;
        work(0.05);
        return 0;
    }
    """,
        200,
    ),
    "all signals that samples could use": (
        """static volatile sig_atomic_t count;
    static void handler(int number, siginfo_t *info, void *context) {
        (void)number; (void)info; (void)context;
        count++;
    }
    int main(void) {
        struct sigaction mine = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, old;
        work(0.05);
        if (sigaction(SIGURG, &mine, 0) || sigaction(SIGWINCH, &mine, 0))
            return 1;
        work(0.1);
        raise(SIGURG);
        raise(SIGWINCH);
        if (sigaction(SIGWINCH, 0, &old) || old.sa_sigaction != handler)
            return 2;
        return count != 2;
    }
    """,
        None,
    ),
    "a small stack for signals": (
        """static void jump(int number) { (void)number; work(0.02); }
    int main(void) {
        char *below = mmap(0, 65536 + 12288, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stack_t stack = {.ss_sp = below + 65536, .ss_size = MINSIGSTKSZ + 8192};
        mprotect(stack.ss_sp, 12288, PROT_READ | PROT_WRITE);
        struct sigaction action = {.sa_handler = jump, .sa_flags = SA_ONSTACK};
        sigaltstack(&stack, 0);
        sigaction(SIGUSR1, &action, 0);
        for (int i = 0; i < 5; i++) {
            work(0.02);
            raise(SIGUSR1);
        }
        return 0;
    }
    """,
        200,
    ),
    "handlers that jump": (
        """static sigjmp_buf place;
    static void jump(int number) { (void)number; siglongjmp(place, 1); }
    __attribute__((noinline)) static void forever(void) { for (;;) work(0.001); }
    int main(void) {
        struct itimerval every = {{0, 7000}, {0, 7000}};
        volatile int jumps = 0;
        signal(SIGPROF, jump);
        if (sigsetjmp(place, 1))
            jumps++;
        setitimer(ITIMER_PROF, &every, 0);
        if (jumps < 20)
            forever();
        return 0;
    }
    """,
        80,
    ),
    "signals that are blocked": (
        """int main(void) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, 0);
        work(0.1);
        sigemptyset(&all);
        pthread_sigmask(SIG_SETMASK, &all, 0);
        work(0.1);
        return 0;
    }
    """,
        200,
    ),
    "all handlers taken away": (
        """int main(void) {
        work(0.1);
        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_DFL);
        work(0.1);
        return 0;
    }
    """,
        None,
    ),
    "sleeps and pipes": (
        """int main(void) {
        int ends[2];
        if (pipe(ends))
            return 1;
        for (int i = 0; i < 20; i++) {
            struct timespec rest = {0, 3000000};
            work(0.008);
            if (nanosleep(&rest, 0))
                return 2;
            if (fork() == 0) {
                usleep(2000);
                _exit(write(ends[1], "x", 1) != 1);
            }
            char got;
            if (read(ends[0], &got, 1) != 1 || wait(0) < 0)
                return 3;
        }
        return 0;
    }
    """,
        150,
    ),
    "closed descriptors": (
        """int main(void) {
        work(0.05);
        for (int fd = 3; fd < 4200; fd++)
            close(fd);
        FILE *file[20];
        for (int i = 0; i < 20; i++)
            if (!(file[i] = tmpfile()))
                return 1;
        work(0.1);
        for (int i = 0; i < 20; i++)
            if (fputs("mine", file[i]) < 0 || fclose(file[i]))
                return 2;
        return 0;
    }
    """,
        None,
    ),
    "libraries that come and go": (
        """int main(void) {
        for (int i = 0; i < 20; i++) {
            void *library = dlopen("libm.so.6", RTLD_NOW);
            work(0.01);
            if (library)
                dlclose(library);
        }
        return 0;
    }
    """,
        200,
    ),
}
"""Programs whose behaviour samples must not change: the source, and the least milliseconds of work."""
