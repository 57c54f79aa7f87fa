/* SPDX-License-Identifier: Apache-2.0 */
// SPDX-License-Identifier: Apache-2.0
// Teams of two threads in which one comes late: at a barrier inside of a region, at the end of a region, with a task.
#include <omp.h>

static double sink;

static void __attribute__((noinline)) turn(long n) {
    double sum = 1.0;
    for (long i = 0; i < n; i++)
        sum = sum * 0.5 + (double)i;
#pragma omp atomic
    sink += sum;
}

static void __attribute__((noinline)) even(void) { turn(200000); }
static void __attribute__((noinline)) before_barrier(void) { turn(5000000); }
static void __attribute__((noinline)) before_end(void) { turn(5000000); }
static void __attribute__((noinline)) in_task(void) { turn(5000000); }

static void __attribute__((noinline)) phases(void) {
#pragma omp parallel num_threads(2)
    {
        even();
        if (omp_get_thread_num() == 0)
            before_barrier();
#pragma omp barrier
        even();
        if (omp_get_thread_num() == 1)
            before_end();
    }
}

static void __attribute__((noinline)) tasks(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 3; i++) {
#pragma omp task
        if (i == 2)
            in_task();
        else
            even();
    }
}

int main(void) {
    for (int step = 0; step < 20; step++) {
        phases();
        tasks();
    }
    return sink < 0.0;
}
