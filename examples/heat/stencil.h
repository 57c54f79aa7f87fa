/* SPDX-License-Identifier: Apache-2.0 */
/* The numerical kernels: one explicit Euler step of the heat equation, and norms. */
#ifndef HEAT_STENCIL_H
#define HEAT_STENCIL_H

#include "grid.h"

/* next = now + ratio * (7-point Laplacian of now) in the interior; ratio = alpha dt / h^2, stable up to 1/6. */
void stencil_sweep(const struct grid *grid, const double *restrict now, double *restrict next, double ratio);

/* L2 norm over the whole grid of a - b. Collective: one MPI_Allreduce of one double. */
double stencil_distance(const struct grid *grid, const double *a, const double *b);

/* L2 norm of a over the whole grid. Collective: one MPI_Allreduce of one double. */
double stencil_norm(const struct grid *grid, const double *a);

/* Largest |a - scale * b| over the whole grid. Collective: one MPI_Allreduce of one double. */
double stencil_largest_error(const struct grid *grid, const double *a, const double *b, double scale);

/* Factor by which one sweep multiplies the sine mode of grid_set_sine_mode: an eigenvector of the discrete
 * Laplacian, with eigenvalue sum over d of 2 cos(2 pi / N_d) - 2. */
double stencil_mode_factor(const struct grid *grid, double ratio);

#endif
