/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that go on counting while the process ends: the main thread leaves main and does not wait for them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define THREADS 24 /* each has chunks of its own in the profile: sealing takes a while */

static atomic_int begun;
static volatile unsigned sum;

__attribute__((noinline)) static void step(unsigned number) { sum += number; }

static void *work(void *argument) {
    step(0);
    atomic_fetch_add(&begun, 1);
    for (unsigned i = 0;; i++)
        step(i);
    return argument;
}

int main(void) {
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 1;
    }
    while (atomic_load(&begun) < THREADS)
        step(1);
    return 0;
}
