/* SPDX-License-Identifier: Apache-2.0 */
/* Ten small functions with loops, static and called from one place: an optimizing compiler makes one function of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void fill(double *x, int n, unsigned seed) {
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (double)(seed >> 8) / (1 << 24);
    }
}

static double sum(const double *x, int n) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += x[i];
    return total;
}

static double dot(const double *x, const double *y, int n) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += x[i] * y[i];
    return total;
}

static void scale(double *x, int n, double by) {
    for (int i = 0; i < n; i++)
        x[i] *= by;
}

static void smooth(const double *x, double *y, int n) {
    for (int i = 1; i < n - 1; i++)
        y[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1];
}

static double pair(double a, double b) {
    const double distance = a - b;
    return distance / (distance * distance + 0.01);
}

static void forces(const double *x, double *f, int n) {
    for (int i = 0; i < n; i++) {
        f[i] = 0;
        for (int j = 0; j < n; j++)
            f[i] += pair(x[i], x[j]);
    }
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

static long histogram(const double *x, int n, int *bins, int size) {
    long outside = 0;
    for (int i = 0; i < n; i++) {
        const int bin = (int)(x[i] * size);
        if (bin >= 0 && bin < size)
            bins[bin]++;
        else
            outside++;
    }
    return outside;
}

static double roots(const double *x, int n) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += sqrt(fabs(x[i]) + 1);
    return total;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 2000, steps = argc > 2 ? atoi(argv[2]) : 60;
    double *x = malloc(sizeof *x * (size_t)n), *y = calloc((size_t)n, sizeof *y);
    int *bins = calloc(64, sizeof *bins);
    double total = 0;
    for (int step = 0; step < steps; step++) {
        fill(x, n, (unsigned)step);
        forces(x, y, n);
        scale(y, n, 0.001);
        smooth(x, y, n);
        sort(x, n);
        total += sum(x, n) + dot(x, y, n) + roots(y, n) + (double)histogram(x, n, bins, 64);
    }
    printf("%g %d\n", total, bins[7]);
    free(x);
    free(y);
    free(bins);
    return 0;
}
