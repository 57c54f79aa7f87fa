/* SPDX-License-Identifier: Apache-2.0 */
#include "stencil.h"

#include <math.h>

void stencil_sweep(const struct grid *grid, const double *restrict now, double *restrict next, double ratio) {
    const size_t x = grid->stride[0];
    const size_t y = grid->stride[1];
    for (int i = 1; i <= grid->cells[0]; ++i)
        for (int j = 1; j <= grid->cells[1]; ++j) {
            const double *restrict in = now + grid_index(grid, i, j, 1);
            double *restrict out = next + grid_index(grid, i, j, 1);
            for (int k = 0; k < grid->cells[2]; ++k) {
                const double *cell = in + k;
                const double around =
                    (cell[-(ptrdiff_t)x] + cell[x]) + (cell[-(ptrdiff_t)y] + cell[y]) + (cell[-1] + cell[1]);
                out[k] = *cell + ratio * (around - 6.0 * *cell);
            }
        }
}

double stencil_distance(const struct grid *grid, const double *a, const double *b) {
    double local = 0.0;
    for (int i = 1; i <= grid->cells[0]; ++i)
        for (int j = 1; j <= grid->cells[1]; ++j) {
            const size_t row = grid_index(grid, i, j, 0);
            for (int k = 1; k <= grid->cells[2]; ++k) {
                const double difference = a[row + (size_t)k] - b[row + (size_t)k];
                local += difference * difference;
            }
        }
    double total = 0.0;
    MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, grid->comm);
    return sqrt(total);
}

double stencil_norm(const struct grid *grid, const double *a) {
    double local = 0.0;
    for (int i = 1; i <= grid->cells[0]; ++i)
        for (int j = 1; j <= grid->cells[1]; ++j) {
            const double *row = a + grid_index(grid, i, j, 0);
            for (int k = 1; k <= grid->cells[2]; ++k)
                local += row[k] * row[k];
        }
    double total = 0.0;
    MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, grid->comm);
    return sqrt(total);
}

double stencil_largest_error(const struct grid *grid, const double *a, const double *b, double scale) {
    double local = 0.0;
    for (int i = 1; i <= grid->cells[0]; ++i)
        for (int j = 1; j <= grid->cells[1]; ++j) {
            const size_t row = grid_index(grid, i, j, 0);
            for (int k = 1; k <= grid->cells[2]; ++k) {
                const double error = fabs(a[row + (size_t)k] - scale * b[row + (size_t)k]);
                /* Written so that a NaN counts as an error, which fmax would drop. */
                local = error <= local ? local : error;
            }
        }
    /* MPI_MAX leaves open what becomes of a NaN; infinity has an order. */
    if (isnan(local))
        local = INFINITY;
    double largest = 0.0;
    MPI_Allreduce(&local, &largest, 1, MPI_DOUBLE, MPI_MAX, grid->comm);
    return largest;
}

double stencil_mode_factor(const struct grid *grid, double ratio) {
    const double two_pi = 2.0 * acos(-1.0);
    double eigenvalue = 0.0;
    for (int d = 0; d < 3; ++d)
        eigenvalue += 2.0 * cos(two_pi / grid_global_cells(grid, d)) - 2.0;
    return 1.0 + ratio * eigenvalue;
}
