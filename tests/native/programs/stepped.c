/* SPDX-License-Identifier: Apache-2.0 */
// A signal at an instruction of the making of a call path: this process steps through a child, and sends it there.
//
// stepped WAY WINDOWS SEED: in each window the child enters a function for the first time, and again, and at one of the
// instructions of that, by chance, a handler runs, which returns, jumps out of the window, forks, or ends the process.
// WAY "each": a handler that returns runs at each instruction of a further visit, one window after the other, or, if
// the visit has more instructions than there are windows, at as many of them at equal distances. Prints how many
// handlers ran.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_paths.h"

enum { MEASURED = 2 }; // windows without a signal at the beginning, which show how long they are

static sigjmp_buf place;
static const char *way;
static volatile int *handled;

__attribute__((noinline)) static int in_handler(int n) {
    for (volatile int i = 0; i < 3; i++)
        n += i % 2;
    return n;
}
__attribute__((noinline)) static int in_handler_then(int n) { return in_handler(n) + 1; }

__attribute__((noinline)) static void visited(int n) {
    for (volatile int i = 0; i < 5; i++)
        n += i;
}

static void handler(int number) {
    ++*handled;
    in_handler(number);
    in_handler_then(number);
    if (!strcmp(way, "jump"))
        siglongjmp(place, 1);
    if (!strcmp(way, "exit"))
        exit(0);
    if (!strcmp(way, "fork")) {
        const pid_t child = fork();
        if (child == 0)
            _exit(in_handler(0) < 0);
        waitpid(child, 0, 0);
    }
}

__attribute__((noinline)) static void window(int number) {
    if (!strcmp(way, "each")) {
        visited(0);
        raise(SIGSTOP);
        visited(0);
    } else {
        raise(SIGSTOP);
        functions[number](0);
        functions[number](0);
    }
    raise(SIGTSTP);
}

static int stepped(int windows) {
    signal(SIGUSR1, handler);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
        return 3;
    for (volatile int number = 0; number < windows; number++)
        if (!sigsetjmp(place, 1))
            window(number);
    return 0;
}

static int is_stop(int status, int signal) { return WIFSTOPPED(status) && WSTOPSIG(status) == signal; }

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    const int windows = atoi(argv[2]);
    way = argv[1];
    srand((unsigned)atoi(argv[3]));
    handled = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t child = fork();
    if (child == 0)
        exit(stepped(windows));
    int status = 0, length = 0, begun = 0; /* what comes first takes longest */
    if (waitpid(child, &status, 0) != child)
        return 4;
    while (WIFSTOPPED(status)) {
        int signal = is_stop(status, SIGUSR1) ? SIGUSR1 : 0; /* it had to wait */
        if (is_stop(status, SIGSTOP)) { /* a window begins; those without a signal show how long they are */
            const int late = length * 7 / 8 - rand() % 200, each = !strcmp(way, "each");
            const int apart = 1 + length / (windows - MEASURED); /* a window ends some instructions after the visit */
            const int next = 1 + (begun - MEASURED) * apart;
            const int at = length == 0 ? 1 << 30 : each ? next : rand() % 2 ? rand() % length : late;
            int steps = 0;
            do {
                ptrace(PTRACE_SINGLESTEP, child, 0, 0);
                waitpid(child, &status, 0);
                steps++;
            } while (is_stop(status, SIGTRAP) && steps < at);
            signal = is_stop(status, SIGTRAP) ? SIGUSR1 : 0;
            if (each ? begun < MEASURED : !signal)
                length = begun < MEASURED - each ? 0 : steps;
            begun += each || !signal;
        }
        ptrace(PTRACE_CONT, child, 0, signal);
        waitpid(child, &status, 0);
    }
    printf("%d\n", *handled);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}
