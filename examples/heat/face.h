/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between a layer of cells and a dense buffer. */
#ifndef HEAT_FACE_H
#define HEAT_FACE_H

#include "grid.h"

/* Interior cells in the layer across dimension d. */
size_t face_values(const struct grid *grid, int d);

/* Copy layer `layer` across dimension d into the buffer; 0 and cells[d] + 1 are the ghost layers. */
void face_pack(const struct grid *grid, const double *field, int d, int layer, double *buffer);
void face_unpack(const struct grid *grid, double *field, int d, int layer, const double *buffer);

#endif
