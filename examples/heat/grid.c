/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void grid_create(struct grid *grid, const int cells[3]) {
    const int periods[3] = {1, 1, 1};
    MPI_Comm_size(MPI_COMM_WORLD, &grid->ranks);
    for (int d = 0; d < 3; ++d) {
        grid->dims[d] = 0;
        grid->cells[d] = cells[d];
    }
    MPI_Dims_create(grid->ranks, 3, grid->dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, grid->dims, periods, 1, &grid->comm);
    MPI_Comm_rank(grid->comm, &grid->rank);
    MPI_Cart_coords(grid->comm, grid->rank, 3, grid->coords);
    for (int d = 0; d < 3; ++d)
        MPI_Cart_shift(grid->comm, d, 1, &grid->neighbor[d][0], &grid->neighbor[d][1]);

    grid->stride[2] = 1;
    grid->stride[1] = (size_t)cells[2] + 2;
    grid->stride[0] = ((size_t)cells[1] + 2) * grid->stride[1];
    grid->field_values = ((size_t)cells[0] + 2) * grid->stride[0];
}

void grid_free(struct grid *grid) { MPI_Comm_free(&grid->comm); }

int grid_global_cells(const struct grid *grid, int d) { return grid->dims[d] * grid->cells[d]; }

double *grid_new_field(const struct grid *grid) {
    double *field = calloc(grid->field_values, sizeof *field);
    if (!field) {
        fprintf(stderr, "heat: rank %d has no memory for a field of %zu values\n", grid->rank, grid->field_values);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return field;
}

/* sin(2 pi (i + 1/2) / N) for the cells of this rank in dimension d: 1-D factors keep sin() out of the n^3 loop. */
static double *sine_factor(const struct grid *grid, int d) {
    const int cells = grid->cells[d];
    const double scale = 2.0 * acos(-1.0) / grid_global_cells(grid, d);
    const int first = grid->coords[d] * cells;
    double *factor = malloc((size_t)cells * sizeof *factor);
    if (!factor) {
        fprintf(stderr, "heat: rank %d has no memory for %d values\n", grid->rank, cells);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    } else {
        for (int i = 0; i < cells; ++i)
            factor[i] = sin(scale * (first + i + 0.5));
    }
    return factor;
}

void grid_set_sine_mode(const struct grid *grid, double *field) {
    double *x = sine_factor(grid, 0);
    double *y = sine_factor(grid, 1);
    double *z = sine_factor(grid, 2);
    for (int i = 1; i <= grid->cells[0]; ++i)
        for (int j = 1; j <= grid->cells[1]; ++j) {
            const double xy = x[i - 1] * y[j - 1];
            double *row = field + grid_index(grid, i, j, 0);
            for (int k = 1; k <= grid->cells[2]; ++k)
                row[k] = xy * z[k - 1];
        }
    free(x);
    free(y);
    free(z);
}
