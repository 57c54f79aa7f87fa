/* SPDX-License-Identifier: Apache-2.0 */
// A child of fork whose copy of the profile is made late: before its first mapping, a thread of the parent finds enough
// new call paths that the profile gets more room. "walk": then the child and a thread of it find call paths, too, and
// put them where the thread of the parent has put its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_paths.h"

enum state { START, BEGUN, FORKED, WALKED };
static _Atomic enum state *state; // of both processes
static pid_t parent;

// The runtime's calls come here, too.
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (parent && syscall(SYS_getpid) != parent && *state == BEGUN) {
        *state = FORKED;
        while (*state != WALKED)
            usleep(1000);
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

static KEEP void deepest(void) {
    *state = WALKED;
    for (;;)
        pause();
}

static KEEP void *other(void *nothing) {
    *state = BEGUN;
    while (*state != FORKED)
        usleep(1000);
    walk(59);
    deepest();
    return nothing;
}

static KEEP void of_child(void) {}

static KEEP void *walked(void *nothing) {
    walk(40);
    return nothing;
}

int main(int count, char **words) {
    (void)words;
    pthread_t thread;
    int status;
    state = mmap(0, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    parent = getpid();
    if (state == MAP_FAILED || pthread_create(&thread, 0, other, 0) != 0)
        return 2;
    while (*state != BEGUN)
        usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        of_child();
        if (count > 1) {
            walked(0);
            if (pthread_create(&thread, 0, walked, 0) != 0 || pthread_join(thread, 0) != 0)
                exit(4);
        }
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 3;
    return status != 0;
}
