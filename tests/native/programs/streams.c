/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that walk through memory and that do not; each with what it walks per iteration. */
#include <stdlib.h>
#include <string.h>

#define ALONE __attribute__((noinline))
struct three {
    double x, y, z;
};

ALONE double sum(const double *a, long n) { /* 8 */
    double s = 0;
    for (long i = 0; i < n; i++)
        s += a[i];
    return s;
}

ALONE double gather(const double *a, const int *index, long n) { /* 4: what the numbers point at is anywhere */
    double s = 0;
    for (long i = 0; i < n; i++)
        s += a[index[i]];
    return s;
}

ALONE void stencil(const double *restrict a, double *restrict b, long n) { /* 16: neighbours are on the same line */
    for (long i = 1; i < n + 1; i++)
        b[i] = a[i - 1] + a[i] + a[i + 1];
}

ALONE double backward(const struct three *a, long n) { /* 24 */
    double s = 0;
    for (unsigned i = (unsigned)n; i > 0; i--)
        s += a[i - 1].x * a[i - 1].z;
    return s;
}

ALONE double column(const double *a, long n, long width) { /* 0: no prefetcher knows how wide a row is */
    double s = 0;
    for (long i = 0; i < n; i++)
        s += a[i * width];
    return s;
}

ALONE double wide(const double (*a)[32], long n) { /* 64: a line */
    double s = 0;
    for (long i = 0; i < n; i++)
        s += a[i][3];
    return s;
}

/* A sparse matrix: 12 of each entry and 16 of each row, whose begin is loaded twice; not what is gathered. */
ALONE void multiply(const long *restrict begin, const int *restrict columns, const double *restrict values,
                    const double *restrict x, double *restrict y, long rows) {
    for (long row = 0; row < rows; row++) {
        double s = 0;
        for (long entry = begin[row]; entry < begin[row + 1]; entry++)
            s += values[entry] * x[columns[entry]];
        y[row] = s;
    }
}

ALONE void copy(char *to, const char *from, long bytes) { memcpy(to, from, (size_t)bytes); } /* both */

int main(int argc, char **argv) {
    const long n = argc > 1 ? atol(argv[1]) : 1000, entries = 3 * n;
    double *a = calloc((size_t)(32 * n + 32), sizeof *a), *b = calloc((size_t)(n + 2), sizeof *b);
    int *index = calloc((size_t)entries, sizeof *index);
    long *begin = calloc((size_t)(n + 1), sizeof *begin);
    if (!a || !b || !index || !begin)
        return 1;
    for (long i = 0; i <= n; i++)
        begin[i] = 3 * i;
    for (long i = 0; i < entries; i++)
        index[i] = (int)(i * 7919 % n);
    double s = sum(a, n) + gather(a, index, n) + backward((const struct three *)a, n) + column(a, n, 5) +
               wide((const double(*)[32])a, n);
    stencil(a, b, n);
    multiply(begin, index, a, a, b, n);
    copy((char *)b, (const char *)a, 8 * n);
    return s + b[n / 2] == 0 ? 0 : 2;
}
