/* SPDX-License-Identifier: Apache-2.0 */
#include "face.h"

/* The two dimensions that span the face across dimension d, slower one first. */
static void face_dimensions(int d, int *outer, int *inner) {
    *outer = d == 0 ? 1 : 0;
    *inner = d == 2 ? 1 : 2;
}

size_t face_values(const struct grid *grid, int d) {
    int outer, inner;
    face_dimensions(d, &outer, &inner);
    return (size_t)grid->cells[outer] * (size_t)grid->cells[inner];
}

void face_pack(const struct grid *grid, const double *field, int d, int layer, double *buffer) {
    int outer, inner;
    face_dimensions(d, &outer, &inner);
    const double *face = field + (size_t)layer * grid->stride[d];
    for (int a = 1; a <= grid->cells[outer]; ++a) {
        const double *line = face + (size_t)a * grid->stride[outer];
        for (int b = 1; b <= grid->cells[inner]; ++b)
            *buffer++ = line[(size_t)b * grid->stride[inner]];
    }
}

void face_unpack(const struct grid *grid, double *field, int d, int layer, const double *buffer) {
    int outer, inner;
    face_dimensions(d, &outer, &inner);
    double *face = field + (size_t)layer * grid->stride[d];
    for (int a = 1; a <= grid->cells[outer]; ++a) {
        double *line = face + (size_t)a * grid->stride[outer];
        for (int b = 1; b <= grid->cells[inner]; ++b)
            line[(size_t)b * grid->stride[inner]] = *buffer++;
    }
}
