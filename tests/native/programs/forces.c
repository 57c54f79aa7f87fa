/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that an optimizing compiler makes one of: loops, straight lines, calls of each other, recursion. */
#include <stdio.h>
#include <stdlib.h>

static double pair(double a, double b) {
    const double d = a - b;
    return d / (d * d + 1.0);
}

static double forces(const double *x, double *f, int n) {
    double energy = 0;
    for (int i = 0; i < n; i++) {
        f[i] = 0;
        for (int j = 0; j < n; j++)
            f[i] += pair(x[i], x[j]);
        energy += f[i];
    }
    return energy;
}

static void sort(double *x, int n) {
    for (int i = 1; i < n; i++) {
        const double value = x[i];
        int j = i;
        for (; j > 0 && x[j - 1] > value; j--)
            x[j] = x[j - 1];
        x[j] = value;
    }
}

static int find(const double *x, int n, double value) {
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (x[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static long search(const double *x, const double *wanted, int n) {
    long found = 0;
    for (int i = 0; i < n; i++)
        found += find(x, n, wanted[i]);
    return found;
}

static long ways(int n) { return n < 2 ? 1 : ways(n - 1) + ways(n - 2); }

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 60;
    double *x = malloc(sizeof *x * (size_t)n), *f = malloc(sizeof *f * (size_t)n);
    for (int i = 0; i < n; i++)
        x[i] = (i * 7919) % 1000;
    const double energy = forces(x, f, n);
    sort(x, n);
    printf("%g %ld %ld\n", energy, search(x, f, n), ways(12));
    free(x);
    free(f);
    return 0;
}
