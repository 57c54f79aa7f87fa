/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose block counts are known: the pass replaces them by closed forms of the trip count. */
#include <stdio.h>
#include <stdlib.h>

#define KEEP __attribute__((noinline))

KEEP long counted(long n, const int *a) {
    long s = 0;
    for (long i = 0; i < n; i++)
        s += a[i & 15];
    return s;
}

KEEP long triangle(long n, const int *a) {
    long s = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            s += a[j & 15] * i;
    return s;
}

KEEP long until(long n, const int *a) {
    long s = 0;
    for (long i = 0; i < 1000000; i++) {
        if (i == n)
            break;
        s += a[i & 15];
    }
    return s;
}

KEEP unsigned collatz(unsigned n) {
    unsigned steps = 0;
    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 0;
    int a[16];
    for (int i = 0; i < 16; i++)
        a[i] = i + argc;
    printf("%ld %ld %ld %u\n", counted(n, a), triangle(n, a), until(n, a), collatz((unsigned)n + 1));
    return 0;
}
