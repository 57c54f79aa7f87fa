/* SPDX-License-Identifier: Apache-2.0 */
// SPDX-License-Identifier: Apache-2.0
/* Prints the nanoseconds of an allocation and its release, of 16 to 527 bytes. Argument: how many pairs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) static void pairs(long count) {
    for (long i = 0; i < count; i++) {
        char *volatile block = malloc((size_t)(16 + i % 512));
        free(block);
    }
}

int main(int argc, char **argv) {
    const long count = argc > 1 ? atol(argv[1]) : 10000000;
    struct timespec begin, end;
    pairs(count / 10);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pairs(count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("%.3f\n", 1e9 * seconds / (double)count);
    return 0;
}
