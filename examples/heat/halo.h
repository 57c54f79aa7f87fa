/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange of the outermost cell layers with the six neighbours. */
#ifndef HEAT_HALO_H
#define HEAT_HALO_H

#include "grid.h"

/* Packed faces, one send and one receive buffer per dimension and direction. */
struct halo {
    double *send[3][2];
    double *receive[3][2];
    double *storage;
};

void halo_create(struct halo *halo, const struct grid *grid);
void halo_free(struct halo *halo);

/* Fill the ghost faces of `field` (not its edges and corners: the 7-point stencil reads none). Six messages out and
 * six in at any number of ranks: a rank that is its own neighbour sends to itself. */
void halo_exchange(struct halo *halo, const struct grid *grid, double *field);

#endif
