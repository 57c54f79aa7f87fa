/* SPDX-License-Identifier: Apache-2.0 */
// A time limit ends what is going on, again and again: its handler returns, jumps out, forks, or ends the process,
// wherever the program is. Meanwhile another thread goes on. Arguments: way, rounds, microseconds to the first alarm.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_paths.h"

static sigjmp_buf place;
static const char *way;
static int rounds;
static volatile sig_atomic_t alarms;
static atomic_int stop;
static pthread_t first;

static KEEP void in_handler(void) { alarms++; }

static void set_timer(long microseconds) {
    const struct itimerval once = {{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &once, 0);
}

static void handler(int number) {
    if (!pthread_equal(pthread_self(), first))
        return;
    in_handler();
    if (number == SIGALRM && alarms < rounds)
        set_timer(50 + alarms % 100);
    if (!strcmp(way, "return"))
        return;
    if (!strcmp(way, "jump"))
        siglongjmp(place, 1);
    if (!strcmp(way, "exit"))
        exit(0);
    pid_t child = fork();
    if (child == 0) {
        set_timer(0);
        in_handler();
        exit(0);
    }
    while (child > 0 && waitpid(child, 0, 0) < 0) {
    }
}

/* Runs out of stack, which the program notices. */
static KEEP int overflow(int n) {
    volatile char room[512];
    room[0] = (char)n;
    if (n % 16 == 0)
        functions[n / 16 % 60](n / 16 % 13);
    return overflow(n + 1) + room[0];
}

static KEEP void *other(void *nothing) {
    for (int depth = 0; !stop; depth = (depth + 1) % 60)
        walk(depth);
    return nothing;
}

int main(int argc, char **argv) {
    pthread_t thread;
    sigset_t set;
    if (argc < 3)
        return 2;
    rounds = atoi(argv[2]);
    way = argv[1];
    first = pthread_self();
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    if (pthread_create(&thread, 0, other, 0) != 0)
        return 3;
    pthread_sigmask(SIG_UNBLOCK, &set, 0);
    if (!strcmp(way, "overflow")) {
        stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        sigaltstack(&stack, 0);
        sigaction(SIGSEGV, &action, 0);
        way = "jump";
        for (volatile int round = 0; round < rounds; round++)
            if (!sigsetjmp(place, 1))
                overflow(round * 7);
    } else {
        signal(SIGALRM, handler);
        set_timer(argc > 3 ? atol(argv[3]) : 50);
        for (volatile int depth = 0; alarms < rounds; depth = (depth + 1) % 60)
            if (!sigsetjmp(place, 1))
                walk(depth);
        set_timer(0);
    }
    stop = 1;
    pthread_join(thread, 0);
    printf("%d\n", alarms >= rounds);
    return 0;
}
