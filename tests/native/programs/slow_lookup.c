/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for tests, in a library that is linked before all others: it goes on by a nanosecond whenever it is read, and
 * by 1000 s whenever somebody asks which libraries there are, as the runtime does for regions that it does not know. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <time.h>

static long now;

int sleep_for(long nanoseconds) {
    now += nanoseconds;
    return 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    (void)clock;
    now++;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

int dl_iterate_phdr(int (*look)(struct dl_phdr_info *, size_t, void *), void *data) {
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    now += 1000000000000;
    return real(look, data);
}
