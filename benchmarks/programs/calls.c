/* SPDX-License-Identifier: Apache-2.0 */
/* What one call costs: N calls of an empty function, of four in turn, and N pairs of time stamps alone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((noinline)) void one(void) { __asm__ volatile(""); }
__attribute__((noinline)) void two(void) { __asm__ volatile(""); }
__attribute__((noinline)) void three(void) { __asm__ volatile(""); }
__attribute__((noinline)) void four(void) { __asm__ volatile(""); }

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 10000000;
    uint64_t sum = 0;
    double start = seconds();
    for (long i = 0; i < n; i++)
        one();
    double same = seconds();
    for (long i = 0; i < n; i += 4) {
        one();
        two();
        three();
        four();
    }
    double rotating = seconds();
    for (long i = 0; i < n; i++) {
#if defined(__x86_64__)
        sum += __builtin_ia32_rdtsc();
        __asm__ volatile("" ::: "memory");
        sum -= __builtin_ia32_rdtsc();
#endif
        __asm__ volatile("" ::: "memory");
    }
    double stamps = seconds();
    printf("%.3f %.3f %.3f %d\n", 1e9 * (same - start) / (double)n, 1e9 * (rotating - same) / (double)n,
           1e9 * (stamps - rotating) / (double)n, (int)(sum & 1));
    return 0;
}
