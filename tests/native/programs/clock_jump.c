/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a clock that jumps once. JUMP=CLOCK,MILLISECONDS,SECONDS: so long after its first reading in a
 * process, CLOCK_REALTIME (0) or CLOCK_MONOTONIC (1) is so many seconds ahead. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int clock_id = -1;
static long after, seconds;
static struct timespec first;

static void read_clock(clockid_t id, struct timespec *now) { syscall(SYS_clock_gettime, id, now); }

__attribute__((constructor(101))) static void begin(void) {
    const char *text = getenv("JUMP");
    if (!text || sscanf(text, "%d,%ld,%ld", &clock_id, &after, &seconds) != 3)
        clock_id = -1;
    read_clock(CLOCK_MONOTONIC, &first);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    read_clock(id, now);
    if (id == clock_id) {
        struct timespec here;
        read_clock(CLOCK_MONOTONIC, &here);
        if ((here.tv_sec - first.tv_sec) * 1000 + (here.tv_nsec - first.tv_nsec) / 1000000 >= after)
            now->tv_sec += seconds;
    }
    return 0;
}
