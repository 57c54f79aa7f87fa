/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps over an array of so many kibibytes in two ways: in order, and by lines in an order that no prefetcher knows.
 * One rank; what it computes is printed so that it is computed. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64 / sizeof(uint64_t), HUGE = 2 << 20 };

__attribute__((noinline)) static uint64_t in_order(const uint64_t *values, size_t many) {
    uint64_t sum = 0;
    for (size_t i = 0; i < many; i++)
        sum += values[i] ^ (sum >> 7);
    return sum;
}

/* Lines one after the other as a linear congruential generator of full period names them (Hull and Dobell 1962). */
__attribute__((noinline)) static uint64_t out_of_order(const uint64_t *values, size_t lines) {
    uint64_t sum = 0;
    size_t line = 0;
    for (size_t i = 0; i < lines; i++) {
        sum += values[line * LINE];
        line = (line * 5 + 12345) & (lines - 1);
    }
    return sum;
}

__attribute__((noinline)) static void fill(uint64_t *values, size_t many) {
    for (size_t i = 0; i < many; i++)
        values[i] = i;
}

int main(int argc, char **argv) {
    const size_t kibibytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 64;
    size_t lines = 16;
    while (lines * 64 < kibibytes * 1024)
        lines *= 2;
    uint64_t *values = aligned_alloc(HUGE, (lines * 64 + HUGE - 1) / HUGE * HUGE), sum = 0;
    if (values == NULL)
        return 1;
    madvise(values, lines * 64, MADV_HUGEPAGE);
    fill(values, lines * LINE);
    sum += in_order(values, lines * LINE);
    sum += out_of_order(values, lines);
    printf("%llu\n", (unsigned long long)sum);
    free(values);
    return 0;
}
