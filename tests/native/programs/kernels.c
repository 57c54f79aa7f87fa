/* SPDX-License-Identifier: Apache-2.0 */
// Hot loops whose vectorization must survive the counting.
#include <stddef.h>

void daxpy(size_t n, double a, const double *restrict x, double *restrict y) {
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

double dot(size_t n, const double *x, const double *y) {
#pragma clang fp reassociate(on)
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

void stencil(int n, const double *restrict in, double *restrict out) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            out[(size_t)i * n + j] =
                0.2 * (in[(size_t)i * n + j] + in[(size_t)(i - 1) * n + j] + in[(size_t)(i + 1) * n + j] +
                       in[(size_t)i * n + j - 1] + in[(size_t)i * n + j + 1]);
}

void csr(int rows, const int *start, const int *column, const double *value, const double *x, double *restrict y) {
#pragma clang fp reassociate(on)
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int k = start[row]; k < start[row + 1]; k++)
            sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}

void branchy(size_t n, const double *restrict x, double *restrict y) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] > 0.5)
            y[i] -= 3 * x[i];
    }
}

void triangle(int n, const double *restrict l, const double *restrict x, double *restrict y) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            y[j] += l[(size_t)i * n + j] * x[i];
}
