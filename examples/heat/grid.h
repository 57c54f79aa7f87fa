/* SPDX-License-Identifier: Apache-2.0 */
/* The block of the global grid that one rank owns, with one layer of ghost cells around it. */
#ifndef HEAT_GRID_H
#define HEAT_GRID_H

#include <mpi.h>
#include <stddef.h>

/* Dimensions are 0 = x, 1 = y, 2 = z; z is contiguous in memory. Direction 0 is the lower neighbour, 1 the upper. */
struct grid {
    MPI_Comm comm;       /* periodic Cartesian communicator */
    int rank;            /* in comm */
    int ranks;           /* of comm */
    int dims[3];         /* ranks per dimension */
    int coords[3];       /* of this rank */
    int neighbor[3][2];  /* ranks of the neighbours; this rank itself where dims is 1 */
    int cells[3];        /* interior cells of this rank per dimension */
    size_t stride[3];    /* distance of neighbouring cells in a field */
    size_t field_values; /* doubles in a field, ghost cells included */
};

/* Spread the ranks of MPI_COMM_WORLD over three dimensions; every rank gets a block of `cells` cells. */
void grid_create(struct grid *grid, const int cells[3]);
void grid_free(struct grid *grid);

/* Cells of the whole grid in dimension d. */
int grid_global_cells(const struct grid *grid, int d);

/* Position of interior cell (i, j, k), counted from 1 in each dimension, in a field. */
static inline size_t grid_index(const struct grid *grid, int i, int j, int k) {
    return (size_t)i * grid->stride[0] + (size_t)j * grid->stride[1] + (size_t)k;
}

/* A field of zeros; MPI_Abort if there is no memory. */
double *grid_new_field(const struct grid *grid);

/* Fill the interior with the lowest sine mode of the whole periodic grid, sampled at cell centres. */
void grid_set_sine_mode(const struct grid *grid, double *field);

#endif
